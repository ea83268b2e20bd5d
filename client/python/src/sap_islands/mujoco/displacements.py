"""Problems at states near a state, with the constraints of that state: differences of their arrays.

A difference of two problems is a direction of the inputs of the service only if both have the same
constraints. Where MuJoCo finds others at a displaced state, those of the nominal state count:

- A contact is the nearest one between the same geoms, if its point and frame are near. One that is
  not found there keeps both, and its distance changes with the motion of the bodies at this point.
- A row is the one of the same kind and object; one that is not found there keeps its arrays.
- A side of a central difference where something was not found counts only if that is so on both
  sides.
- Contacts and rows that are not in the nominal state do not count.
"""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any, NamedTuple

import mujoco
import numpy as np

from sap_islands.arrays import FloatArray
from sap_islands.mujoco.assembly import BuiltProblem, assemble_problem
from sap_islands.mujoco.material import Material
from sap_islands.mujoco.native_calls import Stage, compute
from sap_islands.problem import ConstraintRows, Contacts, Problem, Trees

_REACH = 1e3  # change of point and frame [m, -] that a contact may have, over the displacement
_PYRAMIDAL = int(mujoco.mjtConstraint.mjCNSTR_CONTACT_PYRAMIDAL)
_ROW_LAWS = (
    "regularization",
    "target_velocity",
    "force_lower",
    "force_upper",
    "force_offset",
)
_TREE_ARRAYS = ("dynamics_matrix", "free_motion_velocity")
_CONTACT_ARRAYS = (
    "jacobian",
    "angular_jacobian",
    "signed_distance",
    "stiffness",
    "regularization_t",
    "regularization_n",
    "relaxation_time",
    "surface_velocity",
    "target_velocity",
    "target_angular_velocity",
)


class Side(NamedTuple):
    """A problem at a displaced state, or at the nominal one.

    Attributes:
        problem: The problem.
        J: [R, nv] matrix of the rows.
        laws: Arrays of the rows by name, those of `_ROW_LAWS`.
        complete: Whether all constraints of the nominal state were found.
    """

    problem: Problem
    J: FloatArray
    laws: dict[str, FloatArray]
    complete: bool


class Direction(NamedTuple):
    """A derivative of the arrays of a problem.

    Attributes:
        trees: By name.
        contacts: By name.
        laws: Of the rows, by name.
        entry: Indices of the entries of J that change, in the matrix [R, nv] of the rows.
        J: Derivatives of these.
    """

    trees: dict[str, FloatArray]
    contacts: dict[str, FloatArray]
    laws: dict[str, FloatArray]
    entry: Any
    J: FloatArray


class Nominal:
    """The problem of a state, and what is needed to find its constraints in displaced states."""

    def __init__(
        self,
        model: mujoco.MjModel,
        data: mujoco.MjData,
        built: BuiltProblem,
        material: Material,
        eps: float,
    ) -> None:
        """Takes a state from which `built` was built. `data` is displaced afterwards."""
        self.model, self.law, self.material = model, built.law, material
        self._reach = _REACH * eps
        self._contacts = [copy.copy(contact) for contact in data.contact]
        self._geoms, self._places = data.contact.geom.copy(), _places(data)
        self._exclude = data.contact.exclude.copy()
        self._J_n = _normal_jacobian(model, data)
        self._objects = _objects_of_rows(data, built)
        self.side = _side_of(built, np.arange(self._objects.shape[1]), model.nv, complete=True)

    def at_positions(self, data: mujoco.MjData, dof: int, displacement: float) -> Side:
        """The problem after `data.qpos` was displaced along a dof."""
        self._compute(data, Stage.POSITIONS)
        complete = self._hold_contacts(data, dof, displacement)
        mujoco.mj_fwdVelocity(self.model, data)
        return self._side(data, complete)

    def at_velocities(self, data: mujoco.MjData) -> Side:
        """The problem after something else than positions was displaced."""
        mujoco.mj_fwdVelocity(self.model, data)
        return self._side(data, complete=True)

    def _compute(self, data: mujoco.MjData, stage: Stage) -> None:
        compute(self.model, data, self.law != "mujoco", stage)

    def _side(self, data: mujoco.MjData, complete: bool) -> Side:
        self._compute(data, Stage.FORCES)
        built = assemble_problem(self.model, data, self.law, self.material)
        objects = _objects_of_rows(data, built)
        if np.array_equal(objects, self._objects):
            return _side_of(built, np.arange(objects.shape[1]), self.model.nv, complete)
        place = {key: row for row, key in enumerate(_keys(objects))}
        rows = np.array([place.get(key, -1) for key in _keys(self._objects)], np.int64)
        side = _side_of(built, rows, self.model.nv, complete and bool((rows >= 0).all()))
        for row in np.flatnonzero(rows < 0):
            side.J[row] = self.side.J[row]
            for name, values in side.laws.items():
                values[row] = self.side.laws[name][row]
        return side

    def _hold_contacts(self, data: mujoco.MjData, dof: int, displacement: float) -> bool:
        """Gives `data` the contacts of the nominal state; returns whether all were found."""
        found = self._find(data.contact.geom, _places(data))
        is_same = len(found) == data.ncon and (found == np.arange(data.ncon)).all()
        if is_same and (data.contact.exclude == self._exclude).all():
            return True
        contacts = [copy.copy(contact) for contact in data.contact]
        data.ncon = 0
        for i, (nominal, j) in enumerate(zip(self._contacts, found, strict=True)):
            contact = copy.copy(contacts[j] if j >= 0 else nominal)
            contact.exclude = nominal.exclude
            if j < 0:
                contact.dist += displacement * self._J_n[i, dof]
            mujoco.mj_addContact(self.model, data, contact)
        self._compute(data, Stage.CONSTRAINTS)
        return bool((found >= 0).all())

    def _find(self, geoms: Any, places: FloatArray) -> Any:
        """For each nominal contact the index of the displaced one; -1: there is none."""
        is_same = np.array_equal(geoms, self._geoms)
        if is_same and (abs(places - self._places) <= self._reach).all():
            return np.arange(len(places))
        found = np.full(len(self._geoms), -1)
        is_free = np.ones(len(geoms), bool)
        for i, (pair, place) in enumerate(zip(self._geoms, self._places, strict=True)):
            candidates = np.flatnonzero(is_free & (geoms == pair).all(axis=1))
            if not len(candidates):
                continue
            distance = abs(places[candidates] - place).max(axis=1)
            if distance.min() <= self._reach:
                found[i] = candidates[distance.argmin()]
                is_free[found[i]] = False
        return found


def direction(one: Side, other: Side, displacement: float) -> Direction:
    """The difference of two problems over the displacement from the other to the one."""
    scale = 1.0 / displacement
    change = (one.J - other.J).ravel()
    entry = np.flatnonzero(change)
    return Direction(
        _changes(one.problem.trees, other.problem.trees, _TREE_ARRAYS, scale),
        _changes(one.problem.contacts, other.problem.contacts, _CONTACT_ARRAYS, scale),
        {name: _change(one.laws[name], other.laws[name], scale) for name in _ROW_LAWS},
        entry,
        scale * change[entry],
    )


def problem_and_tangents(
    nominal: Side, directions: list[Direction]
) -> tuple[Problem, list[Problem]]:
    """The problem, its rows with all entries that change in a direction; and the directions."""
    J = nominal.J
    pattern = J.ravel() != 0.0
    for each in directions:
        pattern[each.entry] = True
    kept = np.flatnonzero(pattern)
    rows, columns = np.divmod(kept, max(J.shape[1], 1))
    given = nominal.problem.rows
    problem = copy.copy(nominal.problem)
    if len(J):
        problem.rows = copy.copy(given)
        problem.rows.entries = np.bincount(rows, minlength=len(J))
        problem.rows.velocity_index = columns
        problem.rows.coefficient = J.ravel()[kept]
    tangents = []
    for each in directions:
        laws = {k: v for k, v in each.laws.items() if len(v) and getattr(given, k).size}
        if len(each.entry):
            laws["coefficient"] = np.zeros(len(kept))
            laws["coefficient"][np.searchsorted(kept, each.entry)] = each.J
        tangents.append(
            Problem(
                0.0,
                trees=Trees.from_wire_arrays(**each.trees),
                contacts=Contacts.from_wire_arrays(**each.contacts),
                rows=ConstraintRows.from_wire_arrays(**laws),
            )
        )
    return problem, tangents


def _places(data: mujoco.MjData) -> FloatArray:
    """[C, 12] point and frame of each contact. Frames may turn by 90 degrees about the normal."""
    return np.hstack((data.contact.pos, data.contact.frame))


def _side_of(built: BuiltProblem, rows: Any, nv: int, complete: bool) -> Side:
    given = built.problem.rows
    J = np.zeros((given.count + 1, nv))  # the last row is that of index -1
    J[np.repeat(np.arange(given.count), given.entries), given.velocity_index] = given.coefficient
    laws = {}
    for name in _ROW_LAWS:
        values = getattr(given, name)
        laws[name] = np.append(values, 0.0)[rows] if values.size else np.zeros(len(rows))
    return Side(built.problem, J[rows], laws, complete)


def _objects_of_rows(data: mujoco.MjData, built: BuiltProblem) -> Any:
    """[2, R] kind and object of each row of a problem; of kind -1: an actuator and its joint."""
    kinds = np.append(data.efc_type[built.row], np.full(len(built.joint), -1))
    return np.stack((kinds, np.append(data.efc_id[built.row], built.joint)))


def _keys(objects: Any) -> list[tuple[int, ...]]:
    """Keys that identify each row: kind, object, and which of how many rows of these it is."""
    pairs = list(zip(*objects.tolist(), strict=True))
    count, seen = Counter(pairs), Counter[tuple[int, ...]]()
    keys: list[tuple[int, ...]] = []
    for pair in pairs:
        keys.append((*pair, seen[pair], count[pair]))
        seen[pair] += 1
    return keys


def _normal_jacobian(model: mujoco.MjModel, data: mujoco.MjData) -> FloatArray:
    """[C, nv] normal velocity of each contact; 0 for those without constraint."""
    J_n = np.zeros((data.ncon, model.nv))
    unit, row = np.zeros(data.nefc), np.zeros(model.nv)
    for i, address in enumerate(data.contact.efc_address):
        if address < 0:
            continue
        # The edges n + mu t and n - mu t of a pyramid have the normal as their mean.
        edges = 2 if data.efc_type[address] == _PYRAMIDAL else 1
        unit[address : address + edges] = 1.0 / edges
        mujoco.mj_mulJacTVec(model, data, row, unit)
        J_n[i], unit[:] = row, 0.0
    return J_n


def _changes(one: Any, other: Any, names: tuple[str, ...], scale: float) -> dict[str, FloatArray]:
    changes = {}
    for name in names:
        a, b = getattr(one, name), getattr(other, name)
        change = _change(a if a.size else 0.0 * b, b if b.size else 0.0 * a, scale)
        if len(change):
            changes[name] = change
    return changes


def _change(one: FloatArray, other: FloatArray, scale: float) -> FloatArray:
    """The scaled difference; empty if there is none. Infinite bounds stay as they are."""
    differs = one != other
    if not differs.any():
        return np.empty(0)
    change = np.zeros(one.shape)
    change[differs] = scale * (one[differs] - other[differs])
    return change
