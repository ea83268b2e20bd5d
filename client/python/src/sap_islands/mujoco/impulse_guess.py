"""Impulses of one step as the guess of the next."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from sap_islands.arrays import FloatArray, IntArray
from sap_islands.mujoco.assembly import BuiltProblem
from sap_islands.solution import Solution

_FIRST_OF_CONTACTS = int(mujoco.mjtConstraint.mjCNSTR_CONTACT_FRICTIONLESS)
# Members of mjContact that tell contacts apart, except those between the same two.
_SIDES = ("geom", "flex", "elem", "vert")


class ImpulseGuess:
    """Impulses of the last step of a state, by what touches.

    Near-rigid contacts that move then take fewer iterations: where an island is solved by the
    interior-point method, it starts from them. Contacts are matched by their geoms, or elements of
    flexes, rows by their constraint, several of one kind by their order; what is new has none.

        guess = sap_islands.mujoco.ImpulseGuess()
        while data.time < 3.0:
            sap_islands.mujoco.step(model, data, session, material=rigid, guess=guess)

    Steps then depend, within the tolerance, on the one before. One object is of one state.
    """

    def __init__(self) -> None:
        """Remembers nothing: the first step has no guess."""
        self._impulses: dict[bytes, FloatArray] = {}

    def give(self, data: mujoco.MjData, built: BuiltProblem) -> None:
        """Sets the guess of a problem.

        Args:
            data: The state from which `built` was built, unchanged since.
            built: The problem; changed.
        """
        if not self._impulses:
            return
        contacts, rows = built.problem.contacts, built.problem.rows
        names, turning = _names_of_contacts(data, built), _turning(built)
        if len(names):
            contacts.guess_impulse = self._found(names, 3)
        if turning.any():
            contacts.guess_angular_impulse = self._found(_of_turning(names[turning]), 3)
        names = _names_of_rows(data, built)
        if len(names):
            rows.guess_impulse = self._found(names, 1)[:, 0]

    def keep(self, data: mujoco.MjData, built: BuiltProblem, solution: Solution) -> None:
        """Remembers the impulses of a solution.

        Args:
            data: The state from which `built` was built, with its contacts.
            built: The problem.
            solution: Its solution, with all impulses.
        """
        names, turning = _names_of_contacts(data, built), _turning(built)
        named = (
            (names, solution.impulse),
            (_of_turning(names[turning]), solution.angular_impulse),
            (_names_of_rows(data, built), solution.row_impulse.reshape(-1, 1)),
        )
        self._impulses = {
            name.tobytes(): impulse
            for group, impulses in named
            for name, impulse in zip(group, impulses, strict=True)
        }

    def _found(self, names: IntArray, columns: int) -> FloatArray:
        none = np.zeros(columns)
        return np.array([self._impulses.get(name.tobytes(), none) for name in names])


def _turning(built: BuiltProblem) -> NDArray[np.bool_]:
    """[C] contacts that have angular impulses."""
    contacts = built.problem.contacts
    turning = np.zeros(len(built.contact), bool)
    if built.buffers.layout.turning:
        turning |= contacts.torsional_friction > 0
        turning |= (contacts.rolling_friction > 0).any(axis=1)
    return turning


def _names_of_contacts(data: mujoco.MjData, built: BuiltProblem) -> IntArray:
    """[C, 10] a name of each contact of the problem."""
    return _numbered(np.column_stack([*_sides(data, built.contact), np.ones(len(built.contact))]))


def _of_turning(names: IntArray) -> IntArray:
    """Names of the angular impulses of contacts."""
    return -names


def _names_of_rows(data: mujoco.MjData, built: BuiltProblem) -> IntArray:
    """[R, 11] a name of each row of the problem; those of actuators come last."""
    kind, number = data.efc_type[built.row], data.efc_id[built.row]
    of_contact = kind >= _FIRST_OF_CONTACTS
    sides = np.zeros((len(kind), 8), int)
    sides[of_contact] = np.column_stack(_sides(data, number[of_contact]))
    of_simulator = np.column_stack((sides, kind, np.where(of_contact, -1, number)))
    of_actuators = np.zeros((len(built.joint), 10), int)
    of_actuators[:, -2:] = np.column_stack((np.full(len(built.joint), -1), built.joint))
    return _numbered(np.concatenate((of_simulator, of_actuators)))


def _sides(data: mujoco.MjData, contact: IntArray) -> list[NDArray[Any]]:
    """[C, 2] each: the geoms, flexes, elements and vertices of contacts."""
    return [getattr(data.contact, side)[contact] for side in _SIDES]


def _numbered(names: NDArray[Any]) -> IntArray:
    """Names with the number of each among those that are equal to it."""
    names = names.astype(np.int64)
    if not len(names):
        return names
    order = np.lexsort(names.T)
    sorted_names = names[order]
    starts = np.ones(len(names), bool)
    starts[1:] = (sorted_names[1:] != sorted_names[:-1]).any(axis=1)
    place = np.arange(len(names))
    number = np.empty(len(names), np.int64)
    number[order] = place - np.maximum.accumulate(np.where(starts, place, 0))
    return np.column_stack((names, number))
