"""Actuators whose force is affine in length and velocity of their transmission: implicit.

An actuator with moment arms m, length l and velocity l̇ = m' v has at the end of the step the force

    f = clamp(f_0 - δt k_p m' v - k_v (m' v - l̇_0), lower, upper),   k_p = -∂f/∂l,   k_v = -∂f/∂l̇

k_p and k_v are used only if positive, that is stabilizing. Without limits, and in one tree, such a
force is part of A. With limits of its own or of its tendon (`forcerange`, `actuatorfrcrange`), or
over several trees, it is a constraint row,

    J = m',   R = 1 / (δt (δt k_p + k_v)),   v̂ = 0,   u = f_0 + k_v l̇_0,   bounds = limits

which is exact. If a joint has `actuatorfrcrange`, one row has the sum of all forces on it.

Limits of exactness: an actuator keeps its force of the beginning of the step (a) if it acts through
a tendon or a site on a joint with `actuatorfrcrange`, (b) if it shares a tendon with
`actuatorfrcrange` with others, (c) if it is at its own limit and shares a joint with
`actuatorfrcrange` with others, or has a delay. Two servos of one such joint that start the step
within their own limits are limited by those of the joint only.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import mujoco
import numpy as np

from sap_islands.arrays import FloatArray, IntArray
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
_NO_ACTUATION = int(mujoco.mjtDisableBit.mjDSBL_ACTUATION)
_JOINT, _TENDON = int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_TENDON)
_JOINT_IN_PARENT = int(mujoco.mjtTrn.mjTRN_JOINTINPARENT)
_HINGE, _SLIDE = int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE)
_MAX_GROUPS = 31  # actuator groups that disableactuator has bits for

# How an actuator enters the problem.
_EXPLICIT, _IN_A, _OWN_ROW, _JOINT_ROW = range(4)


class Servos(NamedTuple):
    """The implicit actuators of one step, and implicit forces that are rows.

    Attributes:
        mode: [nu] how each actuator enters the problem.
        gains: [5, nu] k_p, k_v, f_0 without limits, lower and upper limit of each actuator.
        rows: Number of rows.
        joint: [rows] joint whose actuators the row has; -1: none.
        entries: [rows] non-zeros.
        column: [non-zeros] dof.
        value: [non-zeros] m.
        law: [4, rows] R, u, lower and upper limit.
    """

    mode: FlagArray
    gains: FloatArray
    rows: IndexArray
    joint: IndexArray
    entries: IndexArray
    column: IndexArray
    value: FloatArray
    law: FloatArray


def new_servos(actuators: int, rows: int, non_zeros: int) -> Servos:
    """Arrays for a number of actuators and at most that many rows and non-zeros."""
    return Servos(
        np.zeros(actuators, np.uint8),
        np.empty((5, actuators)),
        np.zeros(1, np.int64),
        np.empty(rows, np.int64),
        np.empty(rows, np.int64),
        np.empty(non_zeros, np.int64),
        np.empty(non_zeros),
        np.empty((4, rows)),
    )


@compiled
def add_servos(
    model: IndexArray,
    state: IndexArray,
    layout: IndexArray,
    dt: float,
    disabled: int,
    disabled_groups: int,
    blocks: FloatArray,
    withheld: FloatArray,
    is_implicit: FlagArray,
    servos: Servos,
) -> None:
    """Adds δt D + δt² K to the blocks of A, and writes the rows.

    Adds to `withheld` [nv] what the smooth forces must lack: δt K v_0, and the forces of the rows.
    Marks the trees whose A changes. For the other arguments see `dynamics.evaluate`.
    """
    if disabled & _NO_ACTUATION:
        return
    members = np.zeros(len(integers(model, MODEL.jnt_type)), np.int64)
    _classify(model, state, layout, dt, disabled, disabled_groups, servos, members)
    for actuator in range(len(servos.mode)):
        mode, output = servos.mode[actuator], indices(layout, LAYOUT.output)[actuator]
        k_p, k_v, f_0, lower, upper = servos.gains[:, actuator]
        if mode == _IN_A:
            dofs, moment = moment_arms(state, output)
            add_gains(state, layout, dt, k_p, k_v, dofs, moment, blocks, withheld, is_implicit)
        elif mode == _OWN_ROW:
            dofs, moment = moment_arms(state, output)
            force = reals(state, STATE.actuator_force)[output]
            offset = f_0 + k_v * reals(state, STATE.actuator_velocity)[output]
            gain = dt * (k_v + dt * k_p)
            add_row(servos, withheld, dofs, moment, force, gain, offset, lower, upper)
    for joint in range(len(members)):
        if members[joint] > 0:
            _add_joint_row(model, state, layout, dt, joint, withheld, servos)


@compiled
def moment_arms(state: IndexArray, output: int) -> tuple[IntArray, FloatArray]:
    """Dofs and moment arms of a row of actuator_moment."""
    first = integers(state, STATE.moment_rowadr)[output]
    last = first + integers(state, STATE.moment_rownnz)[output]
    dofs = integers(state, STATE.moment_colind)[first:last]
    return dofs, reals(state, STATE.actuator_moment)[first:last]


@compiled
def _classify(
    model: IndexArray,
    state: IndexArray,
    layout: IndexArray,
    dt: float,
    disabled: int,
    disabled_groups: int,
    servos: Servos,
    members: IndexArray,
) -> None:
    """Writes mode and gains of every actuator; `members` [njnt] counts those in joint rows."""
    outputs = indices(layout, LAYOUT.output)
    targets = integers(model, MODEL.actuator_trnid)
    for actuator in range(len(servos.mode)):
        servos.mode[actuator] = _EXPLICIT
        gains = servos.gains[:, actuator]
        if outputs[actuator] < 0:
            continue
        gains[0], gains[1] = _slopes(model, state, layout, dt, disabled, disabled_groups, actuator)
        if gains[0] > 0.0 or gains[1] > 0.0:
            mode = _mode_of(model, state, layout, actuator)
            servos.mode[actuator] = mode
            if mode == _JOINT_ROW:
                members[targets[2 * actuator]] += 1
            gains[3], gains[4] = _limits(model, layout, actuator)
            gains[2] = reals(state, STATE.actuator_force)[outputs[actuator]]
    for actuator in range(len(servos.mode)):
        gains = servos.gains[:, actuator]
        if servos.mode[actuator] == _EXPLICIT or (gains[3] == -math.inf and gains[4] == math.inf):
            continue
        joint = targets[2 * actuator]
        shared = servos.mode[actuator] == _JOINT_ROW and members[joint] > 1
        is_delayed = indices(layout, LAYOUT.delayed)[actuator] != 0
        if (shared or is_delayed) and not gains[3] < gains[2] < gains[4]:
            if servos.mode[actuator] == _JOINT_ROW:
                members[joint] -= 1
            servos.mode[actuator] = _EXPLICIT
        elif not is_delayed:
            gains[2] = _force_without_limits(model, state, layout, dt, disabled, actuator)


@compiled
def _mode_of(model: IndexArray, state: IndexArray, layout: IndexArray, actuator: int) -> int:
    kind = integers(model, MODEL.actuator_trntype)[actuator]
    target = integers(model, MODEL.actuator_trnid)[2 * actuator]
    output = indices(layout, LAYOUT.output)[actuator]
    dofs, _ = moment_arms(state, output)
    if len(dofs) == 0:
        return _EXPLICIT
    if kind in (_JOINT, _JOINT_IN_PARENT) and _is_limited_joint(model, target):
        return _JOINT_ROW
    for dof in dofs:
        if _is_limited_joint(model, integers(model, MODEL.dof_jntid)[dof]):
            return _EXPLICIT
    if kind == _TENDON and flags(model, MODEL.tendon_actfrclimited)[target]:
        return _OWN_ROW if _actuators_of_tendon(model, target) == 1 else _EXPLICIT
    if flags(model, MODEL.actuator_forcelimited)[output] or not is_in_one_tree(layout, dofs):
        return _OWN_ROW
    return _IN_A


@compiled
def _is_limited_joint(model: IndexArray, joint: int) -> bool:
    kind = integers(model, MODEL.jnt_type)[joint]
    limited = flags(model, MODEL.jnt_actfrclimited)[joint] != 0
    return limited and kind in (_HINGE, _SLIDE)


@compiled
def _actuators_of_tendon(model: IndexArray, tendon: int) -> int:
    kinds, targets = integers(model, MODEL.actuator_trntype), integers(model, MODEL.actuator_trnid)
    count = 0
    for actuator in range(len(kinds)):
        count += kinds[actuator] == _TENDON and targets[2 * actuator] == tendon
    return count


@compiled
def _slopes(
    model: IndexArray,
    state: IndexArray,
    layout: IndexArray,
    dt: float,
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
    length = PARAMETERS * actuator + 1  # parameters: constant, slope of length, slope of velocity
    if has_bias:
        bias = reals(model, MODEL.actuator_biasprm)
        k_p, k_v = -bias[length], -bias[length + 1]
    if has_gain:
        gain = reals(model, MODEL.actuator_gainprm)
        control = _control(model, state, layout, dt, disabled, actuator)
        k_p -= gain[length] * control
        k_v -= gain[length + 1] * control
    return max(k_p, 0.0), max(k_v, 0.0)


@compiled
def _limits(model: IndexArray, layout: IndexArray, actuator: int) -> tuple[float, float]:
    """Limits of the force of an actuator: its own, within those of its tendon."""
    output = indices(layout, LAYOUT.output)[actuator]
    lower, upper = -math.inf, math.inf
    if flags(model, MODEL.actuator_forcelimited)[output]:
        force_range = reals(model, MODEL.actuator_forcerange)
        lower, upper = force_range[2 * output], force_range[2 * output + 1]
    tendon = integers(model, MODEL.actuator_trnid)[2 * actuator]
    is_tendon = integers(model, MODEL.actuator_trntype)[actuator] == _TENDON
    if is_tendon and flags(model, MODEL.tendon_actfrclimited)[tendon]:
        force_range = reals(model, MODEL.tendon_actfrcrange)
        least, largest = force_range[2 * tendon], force_range[2 * tendon + 1]
        lower = min(max(lower, least), largest)
        upper = min(max(upper, least), largest)
    return lower, upper


@compiled
def _force_without_limits(
    model: IndexArray,
    state: IndexArray,
    layout: IndexArray,
    dt: float,
    disabled: int,
    actuator: int,
) -> float:
    """Gain * input + bias, as MuJoCo has it before limits."""
    length = reals(state, STATE.actuator_length)[indices(layout, LAYOUT.output)[actuator]]
    velocity = reals(state, STATE.actuator_velocity)[indices(layout, LAYOUT.output)[actuator]]
    first = PARAMETERS * actuator
    gain = reals(model, MODEL.actuator_gainprm)[first : first + 3]
    slope = gain[0]
    if integers(model, MODEL.actuator_gaintype)[actuator] == _AFFINE_GAIN:
        slope += gain[1] * length + gain[2] * velocity
    force = slope * _control(model, state, layout, dt, disabled, actuator)
    if integers(model, MODEL.actuator_biastype)[actuator] == _AFFINE_BIAS:
        bias = reals(model, MODEL.actuator_biasprm)[first : first + 3]
        force += bias[0] + bias[1] * length + bias[2] * velocity
    return force


@compiled
def _control(
    model: IndexArray,
    state: IndexArray,
    layout: IndexArray,
    dt: float,
    disabled: int,
    actuator: int,
) -> float:
    """Input of an actuator: its last activation if it has any, otherwise its clamped control."""
    activations = integers(model, MODEL.actuator_actnum)[actuator]
    if activations > 0:
        last = integers(model, MODEL.actuator_actadr)[actuator] + activations - 1
        activation = reals(state, STATE.act)[last]
        if flags(model, MODEL.actuator_actearly)[actuator]:
            activation += dt * reals(state, STATE.act_dot)[last]
            if flags(model, MODEL.actuator_actlimited)[actuator]:
                ends = reals(model, MODEL.actuator_actrange)[2 * actuator : 2 * actuator + 2]
                activation = min(max(activation, ends[0]), ends[1])
        return activation
    place = indices(layout, LAYOUT.control)[actuator]
    control = reals(state, STATE.ctrl)[place]
    if flags(model, MODEL.actuator_ctrllimited)[place] and not disabled & _NO_CLAMPING:
        control_range = reals(model, MODEL.actuator_ctrlrange)
        control = min(max(control, control_range[2 * place]), control_range[2 * place + 1])
    return control


@compiled
def is_in_one_tree(layout: IndexArray, dofs: IntArray) -> bool:
    """Whether all dofs, of which there is at least one, are in one tree."""
    trees = indices(layout, LAYOUT.tree_of_dof)
    others = 0
    for dof in dofs:
        others += trees[dof] != trees[dofs[0]]
    return others == 0


@compiled
def add_gains(
    state: IndexArray,
    layout: IndexArray,
    dt: float,
    k_p: float,
    k_v: float,
    dofs: IntArray,
    moment: FloatArray,
    blocks: FloatArray,
    withheld: FloatArray,
    is_implicit: FlagArray,
) -> None:
    """Adds m (δt k_v + δt² k_p) m' to the block of one tree, and δt k_p m m' v_0 to `withheld`."""
    velocity = reals(state, STATE.qvel)
    tree = indices(layout, LAYOUT.tree_of_dof)[dofs[0]]
    first = indices(layout, LAYOUT.first_dof)[tree]
    n = indices(layout, LAYOUT.sizes)[tree]
    block_start = indices(layout, LAYOUT.block_start)[tree]
    is_implicit[tree] = 1
    for left in range(len(dofs)):
        row = block_start + (dofs[left] - first) * n - first
        for right in range(len(dofs)):
            square = moment[left] * moment[right]
            blocks[row + dofs[right]] += dt * (k_v + dt * k_p) * square
            withheld[dofs[left]] += dt * k_p * square * velocity[dofs[right]]


@compiled
def add_row(
    servos: Servos,
    withheld: FloatArray,
    dofs: IntArray,
    moment: FloatArray,
    force: float,
    gain: float,
    offset: float,
    lower: float,
    upper: float,
) -> None:
    """Writes a row of moment arms.

    Args:
        servos: Output.
        withheld: [nv] output: `force` along the moment arms is added.
        dofs: Dofs of the moment arms.
        moment: The moment arms.
        force: Force at the beginning of the step, which the smooth forces have.
        gain: 1 / R.
        offset: u.
        lower: Least force.
        upper: Largest force.
    """
    row = servos.rows[0]
    place = servos.entries[:row].sum()
    for k in range(len(dofs)):
        servos.column[place + k], servos.value[place + k] = dofs[k], moment[k]
        withheld[dofs[k]] += force * moment[k]
    servos.joint[row], servos.entries[row] = -1, len(dofs)
    servos.law[0, row], servos.law[1, row] = 1.0 / gain, offset
    servos.law[2, row], servos.law[3, row] = lower, upper
    servos.rows[0] += 1


@compiled
def _add_joint_row(
    model: IndexArray,
    state: IndexArray,
    layout: IndexArray,
    dt: float,
    joint: int,
    withheld: FloatArray,
    servos: Servos,
) -> None:
    """Writes the row of all forces on a joint with `actuatorfrcrange`."""
    dof = integers(model, MODEL.jnt_dofadr)[joint]
    ends = reals(model, MODEL.jnt_actfrcrange)[2 * joint : 2 * joint + 2]
    rest = _other_force(model, state, layout, joint, dof, servos)
    gain, force, alone = 0.0, rest, -1
    members = 0
    for actuator in range(len(servos.mode)):
        if not _acts_on(model, servos, actuator, joint):
            continue
        output = indices(layout, LAYOUT.output)[actuator]
        m = reals(state, STATE.actuator_moment)[integers(state, STATE.moment_rowadr)[output]]
        k_p, k_v, f_0 = (
            servos.gains[0, actuator],
            servos.gains[1, actuator],
            servos.gains[2, actuator],
        )
        gain += m * m * dt * (k_v + dt * k_p)
        force += m * (f_0 + k_v * reals(state, STATE.actuator_velocity)[output])
        members += 1
        alone = actuator
    lower, upper = ends[0], ends[1]
    if members == 1:  # within the limits of its only servo
        output = indices(layout, LAYOUT.output)[alone]
        m = reals(state, STATE.actuator_moment)[integers(state, STATE.moment_rowadr)[output]]
        one, other = rest + m * servos.gains[3, alone], rest + m * servos.gains[4, alone]
        lower = min(max(min(one, other), ends[0]), ends[1])
        upper = min(max(max(one, other), ends[0]), ends[1])
    total = reals(state, STATE.qfrc_actuator)[dof]
    dofs, unit = np.full(1, dof, np.int32), np.ones(1)
    add_row(servos, withheld, dofs, unit, total, gain, force, lower, upper)
    servos.joint[servos.rows[0] - 1] = joint


@compiled
def _acts_on(model: IndexArray, servos: Servos, actuator: int, joint: int) -> bool:
    target = integers(model, MODEL.actuator_trnid)[2 * actuator]
    return servos.mode[actuator] == _JOINT_ROW and target == joint


@compiled
def _other_force(
    model: IndexArray, state: IndexArray, layout: IndexArray, joint: int, dof: int, servos: Servos
) -> float:
    """Force on a joint of all its actuators but those in its row, before the joint's limits."""
    force = 0.0
    if flags(model, MODEL.jnt_actgravcomp)[joint]:
        force += reals(state, STATE.qfrc_gravcomp)[dof]
    moment, dofs = reals(state, STATE.actuator_moment), integers(state, STATE.moment_colind)
    forces = reals(state, STATE.actuator_force)
    for output in range(len(forces)):
        first = integers(state, STATE.moment_rowadr)[output]
        for k in range(first, first + integers(state, STATE.moment_rownnz)[output]):
            if dofs[k] == dof:
                force += moment[k] * forces[output]
    for actuator in range(len(servos.mode)):
        if _acts_on(model, servos, actuator, joint):
            output = indices(layout, LAYOUT.output)[actuator]
            first = integers(state, STATE.moment_rowadr)[output]
            force -= moment[first] * forces[output]
    return force


@compiled
def store_forces(
    model: IndexArray,
    state: IndexArray,
    layout: IndexArray,
    dt: float,
    velocity: FloatArray,
    row_impulse: FloatArray,
    servos: Servos,
) -> None:
    """Writes the forces at the end of the step to actuator_force and qfrc_actuator.

    Args:
        model: `ModelArrays`.
        state: `StateArrays`.
        layout: `LayoutArrays`.
        dt: δt [s].
        velocity: [nv] solution.
        row_impulse: [rows] solution.
        servos: Servos of the step.
    """
    moment, dofs = reals(state, STATE.actuator_moment), integers(state, STATE.moment_colind)
    forces, total = reals(state, STATE.actuator_force), reals(state, STATE.qfrc_actuator)
    for actuator in range(len(servos.mode)):
        if servos.mode[actuator] == _EXPLICIT:
            continue
        output = indices(layout, LAYOUT.output)[actuator]
        first = integers(state, STATE.moment_rowadr)[output]
        last = first + integers(state, STATE.moment_rownnz)[output]
        speed = 0.0
        for k in range(first, last):
            speed += moment[k] * velocity[dofs[k]]
        k_p, k_v, f_0, lower, upper = servos.gains[:, actuator]
        change = speed - reals(state, STATE.actuator_velocity)[output]
        force = min(max(f_0 - dt * k_p * speed - k_v * change, lower), upper)
        for k in range(first, last):
            total[dofs[k]] += moment[k] * (force - forces[output])
        forces[output] = force
    for row in range(servos.rows[0]):
        if servos.joint[row] >= 0:
            total[integers(model, MODEL.jnt_dofadr)[servos.joint[row]]] = row_impulse[row] / dt
