"""Converts the joint limits of a MuJoCo state that may be reached within two steps to contacts.

A hinge or slide joint has the distances q - q_min and q_max - q to its limits, a ball joint the
maximum angle minus its angle. A limit whose distance is below the joint's margin, or below the
distance covered in two steps, becomes a frictionless contact. Only its normal row is not zero: ±1
in the dof of the joint, or minus the axis of rotation of a ball joint.
"""

from __future__ import annotations

import math

import mujoco

from sap_islands.arrays import FloatArray, IntArray
from sap_islands.mujoco.layout import LAYOUT, MODEL, STATE
from sap_islands.mujoco.material import stiffness_and_relaxation
from sap_islands.numba_kernels import IndexArray, compiled, flags, indices, integers, reals
from sap_islands.problem import WORLD

_REACH = 2.0  # steps within which a limit may be reached
_NO_LIMITS = int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
_FREE, _BALL = int(mujoco.mjtJoint.mjJNT_FREE), int(mujoco.mjtJoint.mjJNT_BALL)
_MIN_SINE = 1e-15


@compiled
def find_limits(
    model: IndexArray,
    state: IndexArray,
    layout: IndexArray,
    dt: float,
    disabled: int,
    v_star: FloatArray,
    near_limits: IntArray,
) -> tuple[int, int]:
    """Selects the joint limits that may be reached within two steps.

    Args:
        model: `ModelArrays`.
        state: `StateArrays`.
        layout: `LayoutArrays`.
        dt: δt [s].
        disabled: `disableflags` of the model.
        v_star: [nv] v*.
        near_limits: Output [2 njnt]: 2 joint for a lower limit, 2 joint + 1 for an upper one.

    Returns:
        Number of selected limits, and of values in their Jacobian.
    """
    count = values = 0
    if disabled & _NO_LIMITS:
        return count, values
    kinds, limited = integers(model, MODEL.jnt_type), flags(model, MODEL.jnt_limited)
    for joint in range(len(kinds)):
        if not limited[joint] or kinds[joint] == _FREE:
            continue
        dof = integers(model, MODEL.jnt_dofadr)[joint]
        is_ball = kinds[joint] == _BALL
        speed = _speed(state, v_star, dof, 3 if is_ball else 1)
        reach = max(reals(model, MODEL.jnt_margin)[joint], _REACH * dt * speed)
        for upper in range(1 if is_ball else 2):
            if _distance(model, state, joint, upper) <= reach:
                near_limits[count] = 2 * joint + upper
                count += 1
                tree = indices(layout, LAYOUT.tree_of_dof)[dof]
                values += 3 * indices(layout, LAYOUT.sizes)[tree]
    return count, values


@compiled
def _speed(state: IndexArray, v_star: FloatArray, dof: int, count: int) -> float:
    velocity = reals(state, STATE.qvel)
    speed = 0.0
    for i in range(dof, dof + count):
        speed = max(speed, abs(velocity[i]), abs(v_star[i]))
    return speed


@compiled
def _distance(model: IndexArray, state: IndexArray, joint: int, upper: int) -> float:
    """Distance to the lower (0) or upper (1) limit of a joint, negative beyond it [m or rad]."""
    ends = reals(model, MODEL.jnt_range)
    place = integers(model, MODEL.jnt_qposadr)[joint]
    if integers(model, MODEL.jnt_type)[joint] == _BALL:
        angle, _, _, _ = _ball_rotation(state, place)
        return max(ends[2 * joint], ends[2 * joint + 1]) - angle
    distance = reals(state, STATE.qpos)[place] - ends[2 * joint + upper]
    return -distance if upper else distance


@compiled
def _ball_rotation(state: IndexArray, place: int) -> tuple[float, float, float, float]:
    """Rotation angle of a ball joint, 0 to π [rad], and its axis (x, y, z)."""
    position = reals(state, STATE.qpos)
    w, x, y, z = position[place], position[place + 1], position[place + 2], position[place + 3]
    sine = math.sqrt(x * x + y * y + z * z)
    scale = (-1.0 if w < 0.0 else 1.0) / max(sine, _MIN_SINE)
    return 2.0 * math.atan2(sine, abs(w)), scale * x, scale * y, scale * z


@compiled
def add_limits(
    model: IndexArray,
    state: IndexArray,
    layout: IndexArray,
    dt: float,
    disabled: int,
    near_limits: IntArray,
    trees: IntArray,
    jacobian: FloatArray,
    parameters: FloatArray,
) -> None:
    """Writes the limits that are near [L] as contacts; for the rest see `add_contacts`."""
    solref, solimp = reals(model, MODEL.jnt_solref), reals(model, MODEL.jnt_solimp)
    place = 0
    for i in range(len(near_limits)):
        joint, upper = near_limits[i] // 2, near_limits[i] % 2
        dof = integers(model, MODEL.jnt_dofadr)[joint]
        tree = indices(layout, LAYOUT.tree_of_dof)[dof]
        n = indices(layout, LAYOUT.sizes)[tree]
        trees[0, i], trees[1, i] = tree, WORLD
        jacobian[place : place + 3 * n] = 0.0
        normal = place + 2 * n + dof - indices(layout, LAYOUT.first_dof)[tree]
        if integers(model, MODEL.jnt_type)[joint] == _BALL:
            _, x, y, z = _ball_rotation(state, integers(model, MODEL.jnt_qposadr)[joint])
            jacobian[normal], jacobian[normal + 1], jacobian[normal + 2] = -x, -y, -z
        else:
            jacobian[normal] = -1.0 if upper else 1.0
        place += 3 * n
        distance = _distance(model, state, joint, upper)
        stiffness, relaxation_time = stiffness_and_relaxation(
            solref[2 * joint : 2 * joint + 2],
            solimp[5 * joint : 5 * joint + 5],
            dt,
            disabled,
            distance,
            reals(model, MODEL.dof_invweight0)[dof],
        )
        parameters[0, i], parameters[1, i] = distance, stiffness
        parameters[2, i], parameters[3, i] = relaxation_time, 0.0
