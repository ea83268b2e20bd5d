"""Converts the constraints that MuJoCo assembled for a step to rows and contacts of a problem.

MuJoCo minimizes 1/2 |a - a_smooth|²_M + s(J a - a_ref) over accelerations, with the regularization
R of every row. In velocities, v = v_0 + δt a, that is a problem of this service with

    R as it is,   v̂ = J v_0 + δt a_ref,   impulse = δt force,   bounds by the kind of the row

| row | bounds of its force |
|---|---|
| equality | none |
| friction loss of a joint or tendon | -+ frictionloss |
| limit of a joint or tendon, contact of condim 1, edge of a pyramid | >= 0 |
| contact of condim 3, 4 or 6 with an elliptic cone | the cone; R_t is that of its first axis |

In the law of SAP every contact with friction has its cone. Edges n ± μ_j t_j of a pyramid give back
J_n and J_j as half their sum and difference; the normal R is that of all 2 (condim - 1) edges
together, R_edge / (2 (condim - 1)), so that bodies rest as deep as in MuJoCo. Friction has v̂ = -s
with s the velocity of the surface, and the R_t of the service, so that what is held stays held.
Friction loss of joints and tendons has v̂ = 0 and R = σ w.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import mujoco
import numpy as np

from sap_islands.arrays import FloatArray, IntArray, UIntArray
from sap_islands.mujoco.layout import LAYOUT
from sap_islands.numba_kernels import (
    IndexArray,
    address_of,
    block_trees,
    compiled,
    indices,
    reals_at,
)

_EQUALITY = int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
_FRICTION_DOF = int(mujoco.mjtConstraint.mjCNSTR_FRICTION_DOF)
_FRICTION_TENDON = int(mujoco.mjtConstraint.mjCNSTR_FRICTION_TENDON)
_PYRAMIDAL = int(mujoco.mjtConstraint.mjCNSTR_CONTACT_PYRAMIDAL)
_ELLIPTIC = int(mujoco.mjtConstraint.mjCNSTR_CONTACT_ELLIPTIC)

_STATES = mujoco.mjtConstraintState
_SATISFIED = int(_STATES.mjCNSTRSTATE_SATISFIED)
_QUADRATIC = int(_STATES.mjCNSTRSTATE_QUADRATIC)
_AT_LARGEST = int(_STATES.mjCNSTRSTATE_LINEARNEG)
_AT_LEAST = int(_STATES.mjCNSTRSTATE_LINEARPOS)
_SLIDING = int(_STATES.mjCNSTRSTATE_CONE)
_ROUNDING = 1e-9  # relative distance from the surface of the cone at which a contact slides

# Line (t1, t2, n) of the linear or angular Jacobian for each axis of a contact in MuJoCo's order:
# normal, t1, t2; spin, roll 1, roll 2.
_LINES = (2, 0, 1, 2, 0, 1)
_AXES = 6
_TINY = 1e-15  # lower bound of divisors


class Assembled(NamedTuple):
    """The constraints of one step as MuJoCo assembled them, n rows of J and C contacts.

    Attributes:
        kind: [n] mjtConstraint.
        start: [n] index of the first value of each row in `J`.
        length: [n] number of values of each row.
        J: Values of all rows.
        column: Dof of each value; empty: rows have all nv values.
        R: [n].
        a_ref: [n].
        velocity: [n] J v_0.
        surface: [n] velocity of the surface, which MuJoCo adds to J v_0.
        KBIP: [n, 4] stiffness, damping and impedance.
        loss: [n] largest friction force.
        gap: [n] position minus margin.
        dim: [C] condim.
        address: [C] first row of each contact; -1: it has none.
        geom: [C, 2].
        friction: [C, 5] coefficients.
    """

    kind: IntArray
    start: IntArray
    length: IntArray
    J: FloatArray
    column: IntArray
    R: FloatArray
    a_ref: FloatArray
    velocity: FloatArray
    surface: FloatArray
    KBIP: FloatArray
    loss: FloatArray
    gap: FloatArray
    dim: IntArray
    address: IntArray
    geom: IntArray
    friction: FloatArray


class RowArrays(NamedTuple):
    """Arrays of `ConstraintRows`, R rows with E non-zeros."""

    entries: UIntArray
    velocity_index: UIntArray
    coefficient: FloatArray
    force_lower: FloatArray
    force_upper: FloatArray
    regularization: FloatArray
    target_velocity: FloatArray
    slip_parameter: FloatArray
    force_offset: FloatArray


class ContactArrays(NamedTuple):
    """Arrays of `Contacts`, C contacts of which N have an angular Jacobian.

    Attributes:
        trees: [2, C] tree_a, tree_b.
        jacobian: All linear blocks.
        angular: All angular blocks.
        friction: [5, C] coefficients along t1, t2, about n, t1, t2.
        R: [2, C] R_t and R_n.
        target: [C, 3] v̂.
        target_angular: [N, 3].
        physical: [3, C] signed distance, stiffness, relaxation time of the same normal force.
    """

    trees: IntArray
    jacobian: FloatArray
    angular: FloatArray
    friction: FloatArray
    R: FloatArray
    target: FloatArray
    target_angular: FloatArray
    physical: FloatArray


def assembled(model: mujoco.MjModel, data: mujoco.MjData) -> Assembled:
    """Views of the constraints of a state; they are valid until the next step."""
    n, contact = data.nefc, data.contact
    if mujoco.mj_isSparse(model):
        start, length, column = data.efc_J_rowadr, data.efc_J_rownnz, data.efc_J_colind
    else:
        start = np.arange(0, n * model.nv, max(model.nv, 1), dtype=np.int32)[:n]
        length, column = np.full(n, model.nv, np.int32), np.empty(0, np.int32)
    velocity = np.zeros(n)
    if n:
        mujoco.mj_mulJacVec(model, data, velocity, data.qvel)
    return Assembled(
        data.efc_type,
        start,
        length,
        data.efc_J.reshape(-1),
        column,
        data.efc_R,
        data.efc_aref,
        velocity,
        data.efc_vel - velocity,
        data.efc_KBIP.reshape(-1, 4),
        data.efc_frictionloss,
        data.efc_pos - data.efc_margin,
        # Views into an array of structures; for few contacts they may be contiguous or not.
        np.ascontiguousarray(contact.dim),
        np.ascontiguousarray(contact.efc_address),
        np.ascontiguousarray(contact.geom),
        np.ascontiguousarray(contact.friction),
    )


@compiled
def count(
    made: Assembled, layout: IndexArray, as_cones: bool, rows: IndexArray, contacts: IndexArray
) -> tuple[int, int, int, int, int, int]:
    """Selects what becomes a row and what a contact.

    Args:
        made: Constraints of the step.
        layout: `LayoutArrays`.
        as_cones: Whether contacts with pyramidal cones become contacts; False: rows.
        rows: Output [n]: indices of the rows.
        contacts: Output [C]: indices of the contacts.

    Returns:
        Numbers of rows, of their non-zeros, of contacts, of values in the linear and in the angular
        Jacobian, and of contacts with an angular Jacobian.
    """
    kept = entries = 0
    for row in range(len(made.kind)):
        if made.kind[row] == _ELLIPTIC or (as_cones and made.kind[row] == _PYRAMIDAL):
            continue
        non_zeros = 0
        for k in range(made.start[row], made.start[row] + made.length[row]):
            non_zeros += made.J[k] != 0.0
        if non_zeros > 0:
            rows[kept] = row
            kept += 1
            entries += non_zeros
    sizes = indices(layout, LAYOUT.sizes)
    cones = linear = angular = turning = 0
    for contact in range(len(made.dim)):
        address = made.address[contact]
        if address < 0:
            continue
        if made.kind[address] != _ELLIPTIC and not (as_cones and made.kind[address] == _PYRAMIDAL):
            continue
        tree_a, tree_b = _trees(made, layout, contact)
        values = 3 * (sizes[tree_a] + (sizes[tree_b] if tree_b >= 0 else 0))
        contacts[cones] = contact
        cones += 1
        linear += values
        if made.dim[contact] > 3:
            angular += values
            turning += 1
    return kept, entries, cones, linear, angular, turning


@compiled
def _trees(made: Assembled, layout: IndexArray, contact: int) -> tuple[int, int]:
    trees = indices(layout, LAYOUT.tree_of_geom)
    return block_trees(trees[made.geom[contact, 0]], trees[made.geom[contact, 1]])


@compiled
def write_rows(
    made: Assembled, rows: IndexArray, dt: float, sigma: float, written: RowArrays
) -> int:
    """Writes the selected rows; returns the number of their non-zeros.

    Args:
        made: Constraints of the step.
        rows: Indices of the rows.
        dt: δt [s].
        sigma: Slip parameter of friction loss; 0: MuJoCo's R and v̂.
        written: Output; longer arrays are left as they are behind the rows.
    """
    place = 0
    for i in range(len(rows)):
        row = rows[i]
        first = place
        for k in range(made.length[row]):
            value = made.J[made.start[row] + k]
            if value != 0.0:
                column = made.column[made.start[row] + k] if len(made.column) > 0 else k
                written.velocity_index[place], written.coefficient[place] = column, value
                place += 1
        kind = made.kind[row]
        has_loss = kind in (_FRICTION_DOF, _FRICTION_TENDON)
        written.entries[i] = place - first
        written.force_lower[i], written.force_upper[i] = _bounds(made, row)
        written.force_offset[i] = 0.0
        if has_loss and sigma > 0.0:
            written.regularization[i], written.slip_parameter[i] = 0.0, sigma
            written.target_velocity[i] = 0.0
        else:
            written.regularization[i], written.slip_parameter[i] = made.R[row], 0.0
            written.target_velocity[i] = made.velocity[row] + dt * made.a_ref[row]
    return place


@compiled
def _bounds(made: Assembled, row: int) -> tuple[float, float]:
    """Least and largest force of a row."""
    kind = made.kind[row]
    if kind == _EQUALITY:
        return -math.inf, math.inf
    if kind in (_FRICTION_DOF, _FRICTION_TENDON):
        return -made.loss[row], made.loss[row]
    return 0.0, math.inf


@compiled
def write_contacts(
    made: Assembled,
    layout: IndexArray,
    contacts: IndexArray,
    dt: float,
    as_sap: bool,
    written: ContactArrays,
) -> None:
    """Writes the selected contacts.

    Args:
        made: Constraints of the step.
        layout: `LayoutArrays`.
        contacts: Indices of the contacts.
        dt: δt [s].
        as_sap: Whether v̂ of friction is that of SAP; False: MuJoCo's.
        written: Output.
    """
    written.jacobian[:], written.angular[:] = 0.0, 0.0
    written.friction[:] = 0.0
    linear, angular = _values(written.jacobian), _values(written.angular)
    J, column = _values(made.J), made.column
    sizes, first_dof = indices(layout, LAYOUT.sizes), indices(layout, LAYOUT.first_dof)
    place = angular_place = turning = 0
    v_hat = np.empty(_AXES)
    for i in range(len(contacts)):
        contact = contacts[i]
        first, dim = made.address[contact], made.dim[contact]
        is_pyramid = made.kind[first] == _PYRAMIDAL
        tree_a, tree_b = _trees(made, layout, contact)
        n_a, n_b = sizes[tree_a], sizes[tree_b] if tree_b >= 0 else 0
        begin_b = first_dof[tree_b] if tree_b >= 0 else 0
        v_hat[:] = 0.0
        for axis in range(dim):
            mu = made.friction[contact, max(axis - 1, 0)]
            one, other, factor, second = _rows_of_axis(first, is_pyramid, axis, mu)
            rest = as_sap and axis > 0
            v_hat[axis] = factor * _target(made, one, dt, rest)
            v_hat[axis] += second * _target(made, other, dt, rest)
            if axis > 0:
                written.friction[axis - 1, i] = mu
            blocks, at = (linear, place) if axis < 3 else (angular, angular_place)
            a = (at + _LINES[axis] * n_a, first_dof[tree_a], n_a)
            b = (at + 3 * n_a + _LINES[axis] * n_b, begin_b, n_b)
            for row, scale in ((one, factor), (other, second)):
                if scale != 0.0:
                    _add_row(J, column, made.start[row], made.length[row], scale, blocks, a, b)
        written.trees[0, i], written.trees[1, i] = tree_a, tree_b
        R_n = made.R[first] / (2 * (dim - 1)) if is_pyramid else made.R[first]
        written.R[0, i], written.R[1, i] = made.R[first + 1], R_n
        for axis in range(3):
            written.target[i, _LINES[axis]] = v_hat[axis]
        place += 3 * (n_a + n_b)
        if dim > 3:
            for axis in range(3, _AXES):
                written.target_angular[turning, _LINES[axis]] = v_hat[axis]
            turning += 1
            angular_place += 3 * (n_a + n_b)
        k = max(made.KBIP[first, 0] * made.KBIP[first, 2], _TINY)
        written.physical[0, i] = made.gap[first]
        written.physical[1, i], written.physical[2, i] = k / R_n, made.KBIP[first, 1] / k


@compiled
def _target(made: Assembled, row: int, dt: float, rest: bool) -> float:
    """v̂ of a row: at rest on its surface, or MuJoCo's."""
    if rest:
        return -made.surface[row]
    return made.velocity[row] + dt * made.a_ref[row]


@compiled
def _values(array: FloatArray) -> FloatArray:
    """The same array without a reference count, which every call would update atomically."""
    return reals_at(address_of(array), len(array))


@compiled
def _rows_of_axis(
    first: int, is_pyramid: bool, axis: int, mu: float
) -> tuple[int, int, float, float]:
    """Two rows, and factors with which they add up to an axis of a contact."""
    if not is_pyramid:
        return first + axis, first + axis, 1.0, 0.0
    if axis == 0:
        return first, first + 1, 0.5, 0.5
    return first + 2 * axis - 2, first + 2 * axis - 1, 0.5 / mu, -0.5 / mu


@compiled
def _add_row(
    J: FloatArray,
    column: IntArray,
    start: int,
    length: int,
    factor: float,
    blocks: FloatArray,
    a: tuple[int, int, int],
    b: tuple[int, int, int],
) -> None:
    """Adds a row to lines of two blocks: each at a place, of a tree with dofs from a first one."""
    at_a, begin_a, n_a = a
    at_b, begin_b, n_b = b
    for k in range(length):
        dof = column[start + k] if len(column) > 0 else k
        if begin_a <= dof < begin_a + n_a:
            blocks[at_a + dof - begin_a] += factor * J[start + k]
        elif begin_b <= dof < begin_b + n_b:
            blocks[at_b + dof - begin_b] += factor * J[start + k]


@compiled
def store_forces(
    made: Assembled,
    rows: IndexArray,
    contacts: IndexArray,
    dt: float,
    row_impulse: FloatArray,
    impulse: FloatArray,
    angular_impulse: FloatArray,
    friction: FloatArray,
    force: FloatArray,
    state: IntArray,
) -> None:
    """Writes the forces of a solution as efc_force and efc_state.

    A force in the cone is written to the edges of a pyramid as f_n / (2 (condim - 1)) ± f_j / (2
    μ_j). Edges may become negative, but MuJoCo adds them up to the same force.

    Args:
        made: Constraints of the step.
        rows: Indices of the rows.
        contacts: Indices of the contacts.
        dt: δt [s].
        row_impulse: At least [rows].
        impulse: [C, 3].
        angular_impulse: [N, 3].
        friction: [5, C] coefficients of the contacts in the problem.
        force: Output [n].
        state: Output [n].
    """
    force[:] = made.a_ref / made.R  # of rows without non-zeros, which are not in the problem
    for i in range(len(rows)):
        force[rows[i]] = row_impulse[i] / dt
    for row in range(len(force)):
        lower, upper = _bounds(made, row)
        force[row] = min(max(force[row], lower), upper)
        state[row] = _state_of_row(made, row, force[row])
    turning = 0
    axes = np.empty(_AXES)
    for i in range(len(contacts)):
        contact = contacts[i]
        first, dim = made.address[contact], made.dim[contact]
        for axis in range(dim):
            impulses = impulse[i] if axis < 3 else angular_impulse[turning]
            axes[axis] = impulses[_LINES[axis]] / dt
        turning += dim > 3
        square = 0.0
        for axis in range(1, dim):
            if friction[axis - 1, i] > 0.0:
                square += (axes[axis] / friction[axis - 1, i]) ** 2
        how = _SATISFIED
        if axes[0] > 0.0:
            how = _SLIDING if math.sqrt(square) > (1.0 - _ROUNDING) * axes[0] else _QUADRATIC
        if made.kind[first] == _ELLIPTIC:
            for axis in range(dim):
                force[first + axis], state[first + axis] = axes[axis], how
            continue
        for axis in range(1, dim):
            half = 0.5 * axes[axis] / made.friction[contact, axis - 1]
            both = 0.5 * axes[0] / (dim - 1)
            edge = first + 2 * axis - 2
            force[edge], force[edge + 1] = both + half, both - half
            state[edge] = state[edge + 1] = _SATISFIED if how == _SATISFIED else _QUADRATIC


@compiled
def _state_of_row(made: Assembled, row: int, force: float) -> int:
    kind = made.kind[row]
    if kind in (_FRICTION_DOF, _FRICTION_TENDON):
        if force >= made.loss[row]:
            return _AT_LARGEST
        return _AT_LEAST if force <= -made.loss[row] else _QUADRATIC
    return _QUADRATIC if kind == _EQUALITY or force > 0.0 else _SATISFIED
