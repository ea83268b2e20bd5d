"""Dynamics matrix A and free-motion velocity v* of a MuJoCo model, tree by tree.

MuJoCo's own problem has A = M and v* = v_0 + δt M^-1 τ_0, with τ_0 all smooth forces at the
beginning of the step. In that of SAP, springs, dampers and servos of joints and tendons, which are
linear in position and velocity, act with their forces at the end of the step, τ = τ_0 - D (v - v_0)
- δt K v:

    A v* = A v_0 + δt (τ_0 - τ_r - δt K v_0),   A = M + δt D + δt² K

where τ_r are the forces of those that are constraint rows. Other forces are explicit: they keep
their value at the beginning of the step. A tree without springs, dampers and servos has v* = v_0 +
δt M^-1 τ_0, as MuJoCo computes it.
"""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np

from sap_islands.arrays import FloatArray
from sap_islands.mujoco.layout import LAYOUT, MODEL, STATE
from sap_islands.mujoco.servos import Servos, add_servos
from sap_islands.mujoco.tendons import add_tendons
from sap_islands.numba_kernels import (
    FlagArray,
    IndexArray,
    compiled,
    indices,
    integers,
    reals,
    solve_in_place,
)

# MuJoCo before 3.4 has one flag for springs and dampers.
_FLAGS = mujoco.mjtDisableBit
_NO_SPRINGS = int(getattr(_FLAGS, "mjDSBL_SPRING", None) or _FLAGS.mjDSBL_PASSIVE)
_NO_DAMPERS = int(getattr(_FLAGS, "mjDSBL_DAMPER", None) or _FLAGS.mjDSBL_PASSIVE)
_HINGE, _SLIDE = int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE)


class Dynamics(NamedTuple):
    """A and v* of one step.

    Attributes:
        blocks: [sum n_t²] A_t of each tree, row-major, concatenated.
        v_star: [nv] velocity at the end of the step without contact [m/s, rad/s].
    """

    blocks: FloatArray
    v_star: FloatArray


@compiled
def evaluate(
    model: IndexArray,
    state: IndexArray,
    layout: IndexArray,
    dt: float,
    disabled: int,
    disabled_groups: int,
    implicit: bool,
    blocks: FloatArray,
    v_star: FloatArray,
    servos: Servos,
) -> None:
    """Writes A to `blocks` and v* to `v_star`, for a state whose smooth forces are computed.

    Args:
        model: `ModelArrays`.
        state: `StateArrays`.
        layout: `LayoutArrays`.
        dt: δt [s].
        disabled: `disableflags` of the model.
        disabled_groups: `disableactuator` of the model.
        implicit: Whether springs, dampers and servos are implicit; False: A = M.
        blocks: Output [sum n_t²].
        v_star: Output [nv].
        servos: Output.
    """
    _fill_blocks(state, layout, blocks)
    velocity, acceleration = reals(state, STATE.qvel), reals(state, STATE.qacc_smooth)
    for i in range(len(v_star)):
        v_star[i] = velocity[i] + dt * acceleration[i]
    if not implicit:
        return
    withheld = np.zeros(len(v_star))
    is_implicit = np.zeros(len(indices(layout, LAYOUT.sizes)), np.uint8)
    _add_dampers_and_springs(model, state, layout, dt, disabled, blocks, withheld, is_implicit)
    add_servos(
        model, state, layout, dt, disabled, disabled_groups, blocks, withheld, is_implicit, servos
    )
    add_tendons(
        model,
        state,
        layout,
        dt,
        not disabled & _NO_SPRINGS,
        not disabled & _NO_DAMPERS,
        blocks,
        withheld,
        is_implicit,
        servos,
    )
    trees = indices(layout, LAYOUT.tree_of_dof)
    for dof in range(len(withheld)):
        if withheld[dof] != 0.0:
            is_implicit[trees[dof]] = 1
    for tree in range(len(is_implicit)):
        if is_implicit[tree]:
            _move_freely(state, layout, tree, dt, blocks, withheld, v_star)


@compiled
def _fill_blocks(state: IndexArray, layout: IndexArray, blocks: FloatArray) -> None:
    mass = reals(state, STATE.M)
    entries = indices(layout, LAYOUT.entries)
    blocks[:] = 0.0
    for i in range(len(mass)):
        blocks[entries[i]] = mass[i]
        blocks[entries[len(mass) + i]] = mass[i]


@compiled
def _add_dampers_and_springs(
    model: IndexArray,
    state: IndexArray,
    layout: IndexArray,
    dt: float,
    disabled: int,
    blocks: FloatArray,
    withheld: FloatArray,
    is_implicit: FlagArray,
) -> None:
    """Adds δt D + δt² K of joints to the blocks of A and δt K v_0 to `withheld`."""
    tree_of_dof = indices(layout, LAYOUT.tree_of_dof)
    if not disabled & _NO_DAMPERS:
        damping = reals(model, MODEL.dof_damping)
        for dof in range(len(damping)):
            if damping[dof] != 0.0:
                is_implicit[tree_of_dof[dof]] = 1
                blocks[_diagonal(layout, dof)] += dt * damping[dof]
    if disabled & _NO_SPRINGS:
        return
    stiffness, kinds = reals(model, MODEL.jnt_stiffness), integers(model, MODEL.jnt_type)
    velocity = reals(state, STATE.qvel)
    for joint in range(len(stiffness)):
        if stiffness[joint] != 0.0 and (kinds[joint] == _HINGE or kinds[joint] == _SLIDE):
            dof = integers(model, MODEL.jnt_dofadr)[joint]
            is_implicit[tree_of_dof[dof]] = 1
            blocks[_diagonal(layout, dof)] += dt * dt * stiffness[joint]
            withheld[dof] += dt * stiffness[joint] * velocity[dof]


@compiled
def _diagonal(layout: IndexArray, dof: int) -> int:
    """Index of the diagonal entry of a dof in the blocks."""
    tree = indices(layout, LAYOUT.tree_of_dof)[dof]
    row = dof - indices(layout, LAYOUT.first_dof)[tree]
    place: int = indices(layout, LAYOUT.block_start)[tree]
    return place + row * (indices(layout, LAYOUT.sizes)[tree] + 1)


@compiled
def _move_freely(
    state: IndexArray,
    layout: IndexArray,
    tree: int,
    dt: float,
    blocks: FloatArray,
    withheld: FloatArray,
    v_star: FloatArray,
) -> None:
    """Writes v* of a tree with implicit forces."""
    n, first = indices(layout, LAYOUT.sizes)[tree], indices(layout, LAYOUT.first_dof)[tree]
    start = indices(layout, LAYOUT.block_start)[tree]
    force, velocity = reals(state, STATE.qfrc_smooth), reals(state, STATE.qvel)
    change = np.empty(n)
    for i in range(n):
        change[i] = dt * (force[first + i] - withheld[first + i])
    solve_in_place(blocks[start : start + n * n].copy().reshape((n, n)), change)
    for i in range(n):
        v_star[first + i] = velocity[first + i] + change[i]
