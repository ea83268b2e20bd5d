"""Assembles the problem of a MuJoCo state in two compiled calls.

The first computes A and v* and counts contacts and limits. The caller then allocates arrays of the
right lengths, and the second call fills them.
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
    """Writes A and v*; selects the contacts and joint limits of the problem.

    Args:
        model: `ModelArrays`.
        state: `StateArrays`.
        layout: `LayoutArrays`.
        dt: δt [s].
        disabled: `disableflags` of the model.
        disabled_groups: `disableactuator` of the model.
        with_limits: Whether joint limits are part of the problem.
        distances: `data.contact.dist`.
        selected: Output of `find_contacts`.
        near_limits: Output of `find_limits`.
        blocks: Output [sum n_t²]: A.
        v_star: Output [nv]: v*.

    Returns:
        Numbers of contacts, of limits, and of values in the Jacobian of both.
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
    """Writes C contacts, then L joint limits.

    Args:
        model: `ModelArrays`.
        state: `StateArrays`.
        layout: `LayoutArrays`.
        dt: δt [s].
        disabled: `disableflags` of the model.
        distances: `data.contact.dist`.
        selected: [C] from `find_contacts`.
        near_limits: [L] from `find_limits`.
        trees: Output [2, C + L]: tree_a and tree_b.
        jacobian: Output: the Jacobian blocks, concatenated.
        parameters: Output [4, C + L]: signed distance, stiffness, relaxation time, friction.
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
    """Whether watched arrays of the model, or eq_active of the state, changed since the last call.

    Args:
        watched: [n, 2] address and size [bytes] of each array.
        state: `StateArrays`.
        seen: Contents of these arrays at the last call; updated.
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
