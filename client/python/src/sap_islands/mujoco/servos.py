"""Adds to A the actuators whose force is affine in length and velocity of their transmission.

An actuator with force f, moment arms m, length l and velocity l̇ = m' v has the derivative

    ∂τ = -m (k_p m' ∂q + k_v m' ∂v),   k_p = -∂f/∂l,   k_v = -∂f/∂l̇

k_p and k_v are used only if positive, that is stabilizing. They are 0 if the force is at a limit of
forcerange, or if the actuator's group is disabled. An actuator that moves two trees is explicit:
its force is that at the beginning of the step.

Limit: the actuator force range of joints and of tendons, and the flag that disables all actuation,
are not considered: their actuators keep their gains.
"""

from __future__ import annotations

import mujoco

from sap_islands.arrays import FloatArray
from sap_islands.mujoco.layout import LAYOUT, MODEL, PARAMETERS, STATE
from sap_islands.numba_kernels import (
    FlagArray,
    IndexArray,
    compiled,
    flags,
    indices,
    integers,
    reals,
)

_AFFINE_GAIN = int(mujoco.mjtGain.mjGAIN_AFFINE)
_FIXED_GAIN = int(mujoco.mjtGain.mjGAIN_FIXED)
_AFFINE_BIAS = int(mujoco.mjtBias.mjBIAS_AFFINE)
_NO_CLAMPING = int(mujoco.mjtDisableBit.mjDSBL_CLAMPCTRL)
_MAX_GROUPS = 31  # actuator groups that disableactuator has bits for


@compiled
def add_servos(
    model: IndexArray,
    state: IndexArray,
    layout: IndexArray,
    dt: float,
    disabled: int,
    disabled_groups: int,
    blocks: FloatArray,
    K_v0: FloatArray,
    is_implicit: FlagArray,
) -> None:
    """Adds δt D + δt² K to the blocks of A and K v_0 to `K_v0` [nv]; marks their trees.

    For the other arguments see `dynamics.evaluate`.
    """
    for actuator in range(len(integers(model, MODEL.actuator_group))):
        k_p, k_v = _slopes(model, state, layout, disabled, disabled_groups, actuator)
        if k_p > 0.0 or k_v > 0.0:
            output = indices(layout, LAYOUT.output)[actuator]
            tree = _tree_of(state, layout, output)
            if tree >= 0:
                is_implicit[tree] = 1
                _add_gains(state, layout, output, tree, dt * (k_v + dt * k_p), k_p, blocks, K_v0)


@compiled
def _slopes(
    model: IndexArray,
    state: IndexArray,
    layout: IndexArray,
    disabled: int,
    disabled_groups: int,
    actuator: int,
) -> tuple[float, float]:
    """k_p and k_v of an actuator, each 0 if it is not positive."""
    gain_type = integers(model, MODEL.actuator_gaintype)[actuator]
    has_gain = gain_type == _AFFINE_GAIN
    has_bias = integers(model, MODEL.actuator_biastype)[actuator] == _AFFINE_BIAS
    k_p = k_v = 0.0
    if not (has_gain or (has_bias and gain_type == _FIXED_GAIN)):
        return k_p, k_v
    group = integers(model, MODEL.actuator_group)[actuator]
    if 0 <= group < _MAX_GROUPS and disabled_groups >> group & 1:
        return k_p, k_v
    if _is_at_limit(model, state, layout, actuator):
        return k_p, k_v
    length = PARAMETERS * actuator + 1  # parameters: constant, slope of length, slope of velocity
    if has_bias:
        bias = reals(model, MODEL.actuator_biasprm)
        k_p, k_v = -bias[length], -bias[length + 1]
    if has_gain:
        gain = reals(model, MODEL.actuator_gainprm)
        control = _control(model, state, layout, disabled, actuator)
        k_p -= gain[length] * control
        k_v -= gain[length + 1] * control
    return max(k_p, 0.0), max(k_v, 0.0)


@compiled
def _is_at_limit(model: IndexArray, state: IndexArray, layout: IndexArray, actuator: int) -> bool:
    output = indices(layout, LAYOUT.output)[actuator]
    if not flags(model, MODEL.actuator_forcelimited)[output]:
        return False
    force = reals(state, STATE.actuator_force)[output]
    force_range = reals(model, MODEL.actuator_forcerange)
    return force <= force_range[2 * output] or force >= force_range[2 * output + 1]


@compiled
def _control(
    model: IndexArray, state: IndexArray, layout: IndexArray, disabled: int, actuator: int
) -> float:
    """Input of an actuator: its last activation if it has any, otherwise its clamped control."""
    activations = integers(model, MODEL.actuator_actnum)[actuator]
    if activations > 0:
        first = integers(model, MODEL.actuator_actadr)[actuator]
        return reals(state, STATE.act)[first + activations - 1]
    place = indices(layout, LAYOUT.control)[actuator]
    control = reals(state, STATE.ctrl)[place]
    if flags(model, MODEL.actuator_ctrllimited)[place] and not disabled & _NO_CLAMPING:
        control_range = reals(model, MODEL.actuator_ctrlrange)
        control = min(max(control, control_range[2 * place]), control_range[2 * place + 1])
    return control


@compiled
def _tree_of(state: IndexArray, layout: IndexArray, output: int) -> int:
    """The tree that an actuator moves; -1: none, or more than one tree."""
    start = integers(state, STATE.moment_rowadr)[output]
    dofs = integers(state, STATE.moment_colind)
    trees = indices(layout, LAYOUT.tree_of_dof)
    tree = -1
    for k in range(start, start + integers(state, STATE.moment_rownnz)[output]):
        if k > start and trees[dofs[k]] != tree:
            return -1
        tree = trees[dofs[k]]
    return tree


@compiled
def _add_gains(
    state: IndexArray,
    layout: IndexArray,
    output: int,
    tree: int,
    gain: float,
    k_p: float,
    blocks: FloatArray,
    K_v0: FloatArray,
) -> None:
    start = integers(state, STATE.moment_rowadr)[output]
    stop = start + integers(state, STATE.moment_rownnz)[output]
    dofs = integers(state, STATE.moment_colind)
    moment = reals(state, STATE.actuator_moment)
    velocity = reals(state, STATE.qvel)
    first = indices(layout, LAYOUT.first_dof)[tree]
    n = indices(layout, LAYOUT.sizes)[tree]
    block_start = indices(layout, LAYOUT.block_start)[tree]
    for left in range(start, stop):
        row = block_start + (dofs[left] - first) * n - first
        for right in range(start, stop):
            square = moment[left] * moment[right]
            blocks[row + dofs[right]] += gain * square
            K_v0[dofs[left]] += k_p * square * velocity[dofs[right]]
