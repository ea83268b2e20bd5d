"""Dynamics matrix and free motion of a MuJoCo model, tree by tree.

Forces of springs, dampers and servos are linear in positions and velocities, and count at the end
of the step: τ = τ_0 - D (v - v_0) - δt K v. Hence

    A v* = A v_0 + δt (τ_0 - δt K v_0),   A = M + δt D + δt² K

with τ_0 all smooth forces at the beginning of the step. Forces that are not linear, or that couple
two trees, count with their value at the beginning.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field

import mujoco
import numpy as np
from numpy.typing import NDArray

from sap_islands.arrays import FloatArray, UIntArray

IndexArray = NDArray[np.int64]

_SIMPLE_JOINTS = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))


@dataclass(frozen=True)
class Layout:
    """Where things are; fixed for a model.

    Attributes:
        dofs: [T] degrees of freedom of each tree.
        first_dof: [T] number of its first one.
        tree_of_dof: [nv].
        tree_of_body: [nbody], -1: fixed to the world.
        block_start: [T + 1] where A_t starts in the array of all blocks.
        lower, upper: where each entry of MuJoCo's sparse M goes in the blocks.
        diagonal: [nv] where the diagonal is in the blocks.
        moves: [nbody, nv] whether a dof moves a body.
        simple_joints: hinges and slides.
        ball_joints: balls.
        servos: actuators whose force may be affine in length and velocity.
        groups: trees of equal size together.
        checked: what of the model has been found to be supported.
    """

    dofs: UIntArray
    first_dof: IndexArray
    tree_of_dof: IndexArray
    tree_of_body: IndexArray
    block_start: IndexArray
    lower: IndexArray
    upper: IndexArray
    diagonal: IndexArray
    moves: NDArray[np.bool_]
    simple_joints: IndexArray
    ball_joints: IndexArray
    servos: IndexArray
    groups: list[_EqualTrees]
    checked: set[object] = field(default_factory=set)

    def index(self, row: IndexArray, column: IndexArray) -> IndexArray:
        """Where the entries of pairs of dofs of the same tree are in the array of blocks."""
        tree = self.tree_of_dof[row]
        first = self.first_dof[tree]
        place: IndexArray = self.block_start[tree] + column - first
        return place + (row - first) * self.dofs[tree]


@dataclass(frozen=True)
class _EqualTrees:
    """Trees of n degrees of freedom: their dofs [g, n], and where their blocks are [g, n²]."""

    n: int
    dofs: IndexArray
    block: IndexArray


_layouts: weakref.WeakKeyDictionary[mujoco.MjModel, Layout] = weakref.WeakKeyDictionary()


def layout_of(model: mujoco.MjModel) -> Layout:
    """The layout of a model, which is found out once."""
    layout = _layouts.get(model)
    if layout is None:
        layout = _layouts[model] = _make_layout(model)
    return layout


def _make_layout(model: mujoco.MjModel) -> Layout:
    dofs = model.tree_dofnum.astype(np.int64)
    block_start = np.concatenate(([0], np.cumsum(dofs**2)))
    tree_of_body = model.body_treeid.astype(np.int64)
    first_dof = model.tree_dofadr.astype(np.int64)
    groups = []
    for n in np.unique(dofs).tolist():
        trees = np.flatnonzero(dofs == n)
        span = np.arange(n * n)
        groups.append(
            _EqualTrees(n, first_dof[trees][:, None] + span[:n], block_start[trees][:, None] + span)
        )
    layout = Layout(
        dofs=dofs.astype(np.uint32),
        first_dof=first_dof,
        tree_of_dof=model.dof_treeid.astype(np.int64),
        tree_of_body=tree_of_body,
        block_start=block_start,
        lower=np.empty(0, np.int64),
        upper=np.empty(0, np.int64),
        diagonal=np.empty(0, np.int64),
        moves=_dofs_that_move(model),
        simple_joints=np.flatnonzero(np.isin(model.jnt_type, _SIMPLE_JOINTS)),
        ball_joints=np.flatnonzero(model.jnt_type == int(mujoco.mjtJoint.mjJNT_BALL)),
        servos=_affine_actuators(model),
        groups=groups,
    )
    row = np.repeat(np.arange(model.nv), model.M_rownnz)
    column = model.M_colind.astype(np.int64)
    every = np.arange(model.nv)
    places = {
        "lower": layout.index(row, column),
        "upper": layout.index(column, row),
        "diagonal": layout.index(every, every),
    }
    return Layout(**{**vars(layout), **places})


def _dofs_that_move(model: mujoco.MjModel) -> NDArray[np.bool_]:
    moves = np.zeros((model.nbody, model.nv), bool)
    for body in range(1, model.nbody):  # parents come first
        moves[body] = moves[model.body_parentid[body]]
        first = model.body_dofadr[body]
        moves[body, first : first + model.body_dofnum[body]] = True
    return moves


@dataclass(frozen=True)
class Dynamics:
    """A and v* of one step.

    Attributes:
        blocks: [sum n_t²] A_t of each tree, row-major, one after the other.
        v_star: [nv] velocity at the end of the step if there were no contact.
    """

    blocks: FloatArray
    v_star: FloatArray


def evaluate(model: mujoco.MjModel, data: mujoco.MjData, layout: Layout) -> Dynamics:
    """A and v* at the state of `data`, whose smooth forces have been computed."""
    dt = model.opt.timestep
    blocks = np.zeros(layout.block_start[-1])
    blocks[layout.lower] = data.M
    blocks[layout.upper] = data.M
    stiffness = np.zeros_like(blocks)
    damping = np.zeros_like(blocks)
    _add_joints(model, layout, stiffness, damping)
    _add_servos(model, data, layout, stiffness, damping)
    blocks += dt * damping + dt**2 * stiffness

    v_0 = data.qvel
    impulse = dt * (data.qfrc_smooth - dt * _multiply(stiffness, v_0, layout))
    v_star = v_0 + _solve(blocks, impulse, layout)
    return Dynamics(blocks, v_star)


def generalized_impulse(dynamics: Dynamics, velocity: FloatArray, layout: Layout) -> FloatArray:
    """J' γ = A (v - v*) [nv]."""
    return _multiply(dynamics.blocks, velocity - dynamics.v_star, layout)


def _add_joints(
    model: mujoco.MjModel, layout: Layout, stiffness: FloatArray, damping: FloatArray
) -> None:
    disabled = model.opt.disableflags
    flags = mujoco.mjtDisableBit
    # Versions before 3.4 have one flag for both.
    spring_flag = getattr(flags, "mjDSBL_SPRING", None) or flags.mjDSBL_PASSIVE
    damper_flag = getattr(flags, "mjDSBL_DAMPER", None) or flags.mjDSBL_PASSIVE
    if not disabled & int(damper_flag):
        damping[layout.diagonal] += model.dof_damping
    if not disabled & int(spring_flag):
        dofs = model.jnt_dofadr[layout.simple_joints]
        stiffness[layout.diagonal[dofs]] += model.jnt_stiffness[layout.simple_joints].ravel()


def _add_servos(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    layout: Layout,
    stiffness: FloatArray,
    damping: FloatArray,
) -> None:
    """Gains of actuators whose force is affine in the length and velocity of their transmission."""
    if model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_ACTUATION):
        return
    for actuator, by_length, by_velocity in _linear_gains(model, data, layout.servos):
        row = _output(model, actuator)
        start = data.moment_rowadr[row]
        dofs = data.moment_colind[start : start + data.moment_rownnz[row]].astype(np.int64)
        moment = data.actuator_moment[start : start + len(dofs)]
        if not len(dofs) or np.any(layout.tree_of_dof[dofs] != layout.tree_of_dof[dofs[0]]):
            continue
        where = layout.index(np.repeat(dofs, len(dofs)), np.tile(dofs, len(dofs)))
        square = np.outer(moment, moment).ravel()
        stiffness[where] += by_length * square
        damping[where] += by_velocity * square


def _affine_actuators(model: mujoco.MjModel) -> IndexArray:
    affine_gain = model.actuator_gaintype == int(mujoco.mjtGain.mjGAIN_AFFINE)
    fixed_gain = model.actuator_gaintype == int(mujoco.mjtGain.mjGAIN_FIXED)
    affine_bias = model.actuator_biastype == int(mujoco.mjtBias.mjBIAS_AFFINE)
    return np.flatnonzero(affine_gain | (fixed_gain & affine_bias))


def _linear_gains(
    model: mujoco.MjModel, data: mujoco.MjData, servos: IndexArray
) -> list[tuple[int, float, float]]:
    """Actuators with -df/dlength and -df/dvelocity, as far as these are stabilizing."""
    gains = []
    for actuator in servos.tolist():
        by_length = by_velocity = 0.0
        if model.actuator_biastype[actuator] == int(mujoco.mjtBias.mjBIAS_AFFINE):
            by_length -= float(model.actuator_biasprm[actuator, 1])
            by_velocity -= float(model.actuator_biasprm[actuator, 2])
        if model.actuator_gaintype[actuator] == int(mujoco.mjtGain.mjGAIN_AFFINE):
            control = _input(model, data, actuator)
            by_length -= control * float(model.actuator_gainprm[actuator, 1])
            by_velocity -= control * float(model.actuator_gainprm[actuator, 2])
        by_length, by_velocity = max(by_length, 0.0), max(by_velocity, 0.0)
        if (by_length or by_velocity) and not _is_saturated(model, data, actuator):
            gains.append((actuator, by_length, by_velocity))
    return gains


def _output(model: mujoco.MjModel, actuator: int) -> int:
    """Row of the actuator's force and moment; versions before 4 have one each."""
    return int(model.actuator_outadr[actuator]) if hasattr(model, "actuator_outadr") else actuator


def _input(model: mujoco.MjModel, data: mujoco.MjData, actuator: int) -> float:
    if model.actuator_actnum[actuator] > 0:
        last = model.actuator_actadr[actuator] + model.actuator_actnum[actuator] - 1
        return float(data.act[last])
    control = int(getattr(model, "actuator_ctrladr", np.arange(model.nu))[actuator])
    value = float(data.ctrl[control])
    if model.actuator_ctrllimited.ravel()[control]:
        value = float(np.clip(value, *model.actuator_ctrlrange.reshape(-1, 2)[control]))
    return value


def _is_saturated(model: mujoco.MjModel, data: mujoco.MjData, actuator: int) -> bool:
    """Whether the force is at its limit, so that it changes with nothing."""
    row = _output(model, actuator)
    if not model.actuator_forcelimited.ravel()[row]:
        return False
    low, high = model.actuator_forcerange.reshape(-1, 2)[row]
    return bool(not low < data.actuator_force[row] < high)


def _multiply(blocks: FloatArray, v: FloatArray, layout: Layout) -> FloatArray:
    product = np.empty_like(v)
    for group in layout.groups:
        matrices = blocks[group.block].reshape(-1, group.n, group.n)
        product[group.dofs] = np.matmul(matrices, v[group.dofs][..., None])[..., 0]
    return product


def _solve(blocks: FloatArray, b: FloatArray, layout: Layout) -> FloatArray:
    solution = np.empty_like(b)
    for group in layout.groups:
        matrices = blocks[group.block].reshape(-1, group.n, group.n)
        solution[group.dofs] = np.linalg.solve(matrices, b[group.dofs][..., None])[..., 0]
    return solution
