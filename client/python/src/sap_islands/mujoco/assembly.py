"""The problem of a MuJoCo state, in two compiled calls with an allocation between them.

The first finds out A, v*, and how many contacts and limits there are; the second writes these into
arrays of their lengths.
"""

from __future__ import annotations

from sap_islands.arrays import FloatArray, IntArray
from sap_islands.mujoco.contacts import add_contacts, find_contacts
from sap_islands.mujoco.dynamics import evaluate
from sap_islands.mujoco.joint_limits import add_limits, find_limits
from sap_islands.mujoco.layout import STATE
from sap_islands.numba_kernels import FlagArray, IndexArray, address_of, bytes_at, compiled, flags


@compiled
def evaluate_and_count(
    model: IndexArray,
    state: IndexArray,
    layout: IndexArray,
    dt: float,
    disabled: int,
    disabled_groups: int,
    with_limits: bool,
    distances: FloatArray,
    selected: IndexArray,
    near_limits: IntArray,
    blocks: FloatArray,
    v_star: FloatArray,
) -> tuple[int, int, int]:
    """Writes A and v*; returns the numbers of contacts, of limits, and of values of the Jacobian.

    Args:
        model: `ModelArrays`.
        state: `StateArrays`.
        layout: `LayoutArrays`.
        dt: δt [s].
        disabled: `disableflags` of the model.
        disabled_groups: `disableactuator` of the model.
        with_limits: Whether joints have limits.
        distances: `data.contact.dist`.
        selected: As `find_contacts`.
        near_limits: As `find_limits`.
        blocks: [sum n_t²] for A.
        v_star: [nv].
    """
    evaluate(model, state, layout, dt, disabled, disabled_groups, blocks, v_star)
    first = address_of(distances)
    contacts, values = find_contacts(model, layout, first, len(distances), selected)
    limits = 0
    if with_limits:
        limits, more = find_limits(model, state, layout, dt, disabled, v_star, near_limits)
        values += more
    return contacts, limits, values


@compiled
def write_constraints(
    model: IndexArray,
    state: IndexArray,
    layout: IndexArray,
    dt: float,
    disabled: int,
    distances: FloatArray,
    selected: IndexArray,
    near_limits: IntArray,
    trees: IntArray,
    jacobian: FloatArray,
    parameters: FloatArray,
) -> None:
    """Writes C contacts, then L limits.

    Args:
        model: `ModelArrays`.
        state: `StateArrays`.
        layout: `LayoutArrays`.
        dt: δt [s].
        disabled: `disableflags` of the model.
        distances: `data.contact.dist`.
        selected: [C] as `find_contacts` has found them.
        near_limits: [L] as `find_limits` has found them.
        trees: [2, C + L] for the trees of each.
        jacobian: For the blocks of all.
        parameters: [4, C + L] for signed distance, stiffness, relaxation time and friction.
    """
    first = address_of(distances)
    end = add_contacts(
        model, state, layout, dt, disabled, first, selected, trees, jacobian, parameters
    )
    count = len(selected)
    add_limits(
        model,
        state,
        layout,
        dt,
        disabled,
        near_limits,
        trees[:, count:],
        jacobian[end:],
        parameters[:, count:],
    )


@compiled
def has_changed(watched: IndexArray, state: IndexArray, seen: FlagArray) -> bool:
    """Whether watched arrays of a model, and the state's equalities, are others than last time.

    Args:
        watched: Address and bytes of each [n, 2].
        state: `StateArrays`.
        seen: All bytes of the last time, which become those of this time.
    """
    differences = place = 0
    for i in range(len(watched)):
        differences += _replace(bytes_at(watched[i, 0], watched[i, 1]), seen[place:])
        place += watched[i, 1]
    return differences + _replace(flags(state, STATE.eq_active), seen[place:]) > 0


@compiled
def _replace(now: FlagArray, seen: FlagArray) -> int:
    differences = 0
    for i in range(len(now)):
        differences += now[i] != seen[i]
        seen[i] = now[i]
    return differences
