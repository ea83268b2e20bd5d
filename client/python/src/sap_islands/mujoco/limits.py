"""Joint limits of a MuJoCo state that may be reached within two steps.

A hinge or slide has the distances q - q_min and q_max - q, a ball the largest angle less its own.
Those below the margin of the joint, or what its speed covers in two steps, become contacts without
friction: one row, ±1 for the dof of the joint, or minus the axis of rotation of a ball.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from sap_islands.arrays import FloatArray, IntArray
from sap_islands.jacobian import IndexArray
from sap_islands.mujoco.layout import Layout
from sap_islands.mujoco.material import constants

_REACH = 2.0  # steps within which a limit may be reached


@dataclass(frozen=True)
class Limits:
    """L limits that are near.

    Attributes:
        tree: [L].
        jacobian: Blocks [3, n_t] of all, with the last row alone.
        distance: [L] [m or rad].
        constants: [9, L] of the material.
        weight: [L] Â.
    """

    tree: IntArray
    jacobian: FloatArray
    distance: FloatArray
    constants: FloatArray
    weight: FloatArray


@dataclass(frozen=True)
class _Ends:
    """E ends of the ranges of joints: two of each hinge and slide, one of each ball, last.

    Attributes:
        position: [E] where q is; of a ball where its quaternion starts.
        end: [E] of the range.
        sign: [E] 1: distances grow with q.
        dofs: [E, 3] what moves; of hinges and slides three times the same.
        place: [E, 3] where these are in the Jacobian's row.
        balls: how many of them are of balls.
    """

    position: IndexArray
    end: FloatArray
    sign: FloatArray
    dofs: IndexArray
    place: IndexArray
    tree: IntArray
    margin: FloatArray
    constants: FloatArray
    balls: int


def find_limits(
    model: mujoco.MjModel, data: mujoco.MjData, layout: Layout, v_star: FloatArray
) -> Limits | None:
    """The limits that are near; None: there are none."""
    ends = _ends_of(model, layout)
    if ends is None:
        return None
    distance = (data.qpos.take(ends.position) - ends.end) * ends.sign
    speed = np.maximum(np.abs(data.qvel), np.abs(v_star))
    if ends.balls:
        axis, angle = _ball_rotations(data, ends)
        distance[-ends.balls :] = ends.end[-ends.balls :] - angle
        reached = speed[ends.dofs].max(axis=1)
    else:
        reached = speed.take(ends.dofs[:, 0])
    reach = np.maximum(ends.margin, _REACH * model.opt.timestep * reached)
    near = (distance <= reach).nonzero()[0]
    if not len(near):
        return None
    tree = ends.tree[near]
    size = 3 * layout.sizes[tree]
    stop = size.cumsum()
    jacobian = np.zeros(stop[-1])
    start = stop - size
    jacobian[start + ends.place[near, 0]] = ends.sign[near]
    if ends.balls:
        ball = near >= len(ends.sign) - ends.balls
        place = start[ball][:, None] + ends.place[near[ball]]
        jacobian[place] = -axis[near[ball] - len(ends.sign)]
    weight = model.dof_invweight0[ends.dofs[near, 0]]
    return Limits(tree, jacobian, distance[near], ends.constants[:, near], weight)


def _ends_of(model: mujoco.MjModel, layout: Layout) -> _Ends | None:
    if model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_LIMIT):
        return None
    key = (
        model.jnt_limited.tobytes(),
        model.jnt_range.tobytes(),
        model.jnt_margin.tobytes(),
        model.jnt_solref.tobytes(),
        model.jnt_solimp.tobytes(),
        model.opt.timestep,
        model.opt.disableflags,
    )
    return layout.remember("limits", key, lambda: _find_ends(model, layout))


def _find_ends(model: mujoco.MjModel, layout: Layout) -> _Ends | None:
    limited = model.jnt_limited.astype(bool)
    simple = layout.simple_joints[limited[layout.simple_joints]]
    ball = layout.ball_joints[limited[layout.ball_joints]]
    joint = np.concatenate((simple, simple, ball))
    if not len(joint):
        return None
    dofs = model.jnt_dofadr[joint].astype(np.int64)[:, None] + np.zeros(3, np.int64)
    dofs[len(joint) - len(ball) :] += np.arange(3)
    tree = layout.tree_of_dof[dofs[:, 0]]
    low, high = model.jnt_range[joint].T
    is_low = np.arange(len(joint)) < len(simple)
    is_ball = np.arange(len(joint)) >= 2 * len(simple)
    return _Ends(
        position=model.jnt_qposadr[joint].astype(np.int64),
        end=np.where(is_low, low, np.where(is_ball, np.maximum(low, high), high)),
        sign=np.where(is_low, 1.0, -1.0),
        dofs=dofs,
        place=(2 * layout.sizes[tree] - layout.first_dof[tree])[:, None] + dofs,
        tree=tree.astype(np.int32),
        margin=model.jnt_margin[joint],
        constants=constants(
            model.opt.timestep,
            model.opt.disableflags,
            model.jnt_solref[joint],
            model.jnt_solimp[joint],
        ),
        balls=len(ball),
    )


def _ball_rotations(data: mujoco.MjData, ends: _Ends) -> tuple[FloatArray, FloatArray]:
    """Axes [n, 3] and angles [n] of the rotations of ball joints, angles from 0 to π."""
    quaternion = data.qpos[ends.position[-ends.balls :][:, None] + np.arange(4)]
    quaternion = np.where(quaternion[:, :1] < 0, -quaternion, quaternion)
    sine = np.linalg.norm(quaternion[:, 1:], axis=1)
    angle = 2 * np.arctan2(sine, quaternion[:, 0])
    return quaternion[:, 1:] / np.maximum(sine, 1e-15)[:, None], angle
