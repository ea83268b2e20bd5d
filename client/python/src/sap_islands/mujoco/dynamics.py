"""Dynamics matrix and free motion of a MuJoCo model, tree by tree.

Forces of springs, dampers and servos are linear in positions and velocities, and count at the end
of the step: τ = τ_0 - D (v - v_0) - δt K v. Hence

    A v* = A v_0 + δt (τ_0 - δt K v_0),   A = M + δt D + δt² K

with τ_0 all smooth forces at the beginning of the step. Forces that are not linear, or that couple
two trees, count with their value at the beginning. Trees that have none of these move as MuJoCo
says, v* = v_0 + δt M^-1 τ_0.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from sap_islands.arrays import FloatArray
from sap_islands.mujoco.layout import EqualTrees, Layout
from sap_islands.mujoco.servos import Servos, servos_of

# Versions before 3.4 have one flag for both.
_FLAGS = mujoco.mjtDisableBit
_NO_SPRINGS = int(getattr(_FLAGS, "mjDSBL_SPRING", None) or _FLAGS.mjDSBL_PASSIVE)
_NO_DAMPERS = int(getattr(_FLAGS, "mjDSBL_DAMPER", None) or _FLAGS.mjDSBL_PASSIVE)


@dataclass(frozen=True)
class Dynamics:
    """A and v* of one step.

    Attributes:
        blocks: [sum n_t²] A_t of each tree, row-major, one after the other.
        v_star: [nv] velocity at the end of the step if there were no contact.
    """

    blocks: FloatArray
    v_star: FloatArray


@dataclass(frozen=True)
class _Implicit:
    """What counts at the end of the step.

    Attributes:
        stiffness: [nv] that of joints.
        diagonal: [nv] δt D + δt² K of joints.
        servos: Actuators with gains, None: there are none.
        groups: The trees that have any of these, of equal size together.
    """

    stiffness: FloatArray
    diagonal: FloatArray
    servos: Servos | None
    groups: list[EqualTrees]


def evaluate(model: mujoco.MjModel, data: mujoco.MjData, layout: Layout) -> Dynamics:
    """A and v* at the state of `data`, whose smooth forces have been computed."""
    dt = model.opt.timestep
    blocks = np.zeros(layout.block_start[-1])
    mass = data.M
    blocks[layout.entries[: len(mass)]] = mass
    blocks[layout.entries[len(mass) :]] = mass
    v_0 = data.qvel
    v_star = v_0 + dt * data.qacc_smooth
    implicit = _implicit_forces(model, data, layout, dt)
    if implicit.groups:
        blocks[layout.diagonal] += implicit.diagonal
        pull = implicit.stiffness * v_0
        if implicit.servos is not None:
            implicit.servos.add(model, data, dt, blocks, pull)
        impulse = dt * (data.qfrc_smooth - dt * pull)
        for group in implicit.groups:
            matrices = blocks[group.block].reshape(-1, group.n, group.n)
            change = np.linalg.solve(matrices, impulse[group.dofs][..., None])
            v_star[group.dofs] = v_0[group.dofs] + change[..., 0]
    return Dynamics(blocks, v_star)


def generalized_impulse(dynamics: Dynamics, velocity: FloatArray, layout: Layout) -> FloatArray:
    """J' γ = A (v - v*) [nv]."""
    change = velocity - dynamics.v_star
    impulse = np.empty_like(change)
    for group in layout.groups:
        matrices = dynamics.blocks[group.block].reshape(-1, group.n, group.n)
        impulse[group.dofs] = np.matmul(matrices, change[group.dofs][..., None])[..., 0]
    return impulse


def _implicit_forces(
    model: mujoco.MjModel, data: mujoco.MjData, layout: Layout, dt: float
) -> _Implicit:
    servos = servos_of(model, data, layout)
    flags = model.opt.disableflags
    key = (dt, flags, servos, model.dof_damping.tobytes(), model.jnt_stiffness.tobytes())
    return layout.remember(
        "implicit forces", key, lambda: _make_implicit(model, layout, servos, dt)
    )


def _make_implicit(
    model: mujoco.MjModel, layout: Layout, servos: Servos | None, dt: float
) -> _Implicit:
    damping = np.zeros(model.nv)
    stiffness = np.zeros(model.nv)
    if not model.opt.disableflags & _NO_DAMPERS:
        damping += model.dof_damping.ravel()
    if not model.opt.disableflags & _NO_SPRINGS:
        dofs = model.jnt_dofadr[layout.simple_joints]
        stiffness[dofs] = model.jnt_stiffness.ravel()[layout.simple_joints]
    has_any: NDArray[np.bool_] = (damping != 0) | (stiffness != 0)
    if servos is not None:
        has_any[servos.left_dof] = True
    trees = np.unique(layout.tree_of_dof[has_any])
    groups = layout.group_trees(trees)
    return _Implicit(stiffness, dt * damping + dt**2 * stiffness, servos, groups)
