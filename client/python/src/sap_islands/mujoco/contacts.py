"""Contacts and joint limits of a MuJoCo state, as contacts of a problem.

The velocity of b relative to a at a contact point p, in the contact's frame, is

    v_c = F (J_b(p) - J_a(p)) v,   columns of J: c_lin + c_ang × (p - c_0)

with c the motion axes that MuJoCo has for every degree of freedom, about the center of mass c_0 of
its tree. A joint limit is a contact without friction whose only row is that of the joint.
"""

from __future__ import annotations

import mujoco
import numpy as np

from sap_islands.arrays import FloatArray
from sap_islands.jacobian import ContactJacobian, cross
from sap_islands.mujoco.dynamics import IndexArray, Layout
from sap_islands.mujoco.material import Material, stiffness_and_relaxation
from sap_islands.problem import WORLD, Contacts

_IN_GAP = 1  # of MuJoCo's reasons to leave a contact out; for the service it may close in this step
_LIMIT_REACH = 2.0  # steps within which a limit may be reached


def find_contacts(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    layout: Layout,
    material: Material,
) -> tuple[Contacts, IndexArray]:
    """Contacts of the state, and which of `data.contact` each of them is [C]."""
    contact = data.contact
    bodies = model.geom_bodyid[np.maximum(contact.geom.reshape(-1, 2), 0)]
    trees = layout.tree_of_body[bodies]
    included = (contact.exclude <= _IN_GAP) & np.any(trees >= 0, axis=1)
    which = np.flatnonzero(included & np.all(contact.geom.reshape(-1, 2) >= 0, axis=1))
    bodies, trees = bodies[which], trees[which]

    # MuJoCo's frames have the normal first, from the first geom to the second.
    frame = contact.frame[which].reshape(-1, 3, 3)[:, [1, 2, 0]]
    position = contact.pos[which]
    jacobian = ContactJacobian(layout.dofs, trees)
    for side, n, rows in jacobian.sides():
        velocity = _point_jacobian(data, model, layout, bodies[rows, side], n, position[rows])
        jacobian.add(side, rows, (2 * side - 1) * np.matmul(frame[rows], velocity))

    distance = contact.dist[which] - contact.includemargin[which]
    weight = model.body_invweight0[bodies[:, 0], 0] + model.body_invweight0[bodies[:, 1], 0]
    stiffness, relaxation = stiffness_and_relaxation(
        model, contact.solref[which], contact.solimp[which], distance, weight
    )
    friction = np.where(contact.dim[which] >= 3, contact.friction[which, 0], 0.0)
    contacts = Contacts(
        tree_a=jacobian.tree_a,
        tree_b=jacobian.tree_b,
        jacobian=jacobian.values,
        signed_distance=distance,
        stiffness=_chosen(material.stiffness, stiffness),
        relaxation_time=_chosen(material.relaxation_time, relaxation),
        friction=_chosen(material.friction, friction),
    )
    if len(which) and hasattr(contact, "surfacevel") and model.flg_surfacevel:
        moving = contact.surfacevel[which]
        contacts.surface_velocity = np.column_stack((moving[:, :2], np.zeros(len(which))))
    return contacts, which


def _chosen(given: float | None, derived: FloatArray) -> FloatArray:
    return derived if given is None else np.full(len(derived), given)


def _point_jacobian(
    data: mujoco.MjData,
    model: mujoco.MjModel,
    layout: Layout,
    body: IndexArray,
    n: int,
    position: FloatArray,
) -> FloatArray:
    """Velocities of points of bodies for the n dofs of their trees, in world axes [g, 3, n]."""
    dofs = layout.first_dof[layout.tree_of_body[body]][:, None] + np.arange(n)
    axes = (data.cdof[dofs] * layout.moves[body[:, None], dofs][..., None]).transpose(0, 2, 1)
    arm = position - data.subtree_com[model.body_rootid[body]]
    velocity: FloatArray = axes[:, 3:] + cross(axes[:, :3], arm)
    return velocity


def find_limits(
    model: mujoco.MjModel, data: mujoco.MjData, layout: Layout, v_star: FloatArray
) -> Contacts:
    """Joint limits that may be reached within two steps, as contacts without friction."""
    limited = model.jnt_limited.astype(bool)
    if model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_LIMIT) or not limited.any():
        return Contacts()
    simple = layout.simple_joints[limited[layout.simple_joints]]
    ball = layout.ball_joints[limited[layout.ball_joints]]
    q = data.qpos[model.jnt_qposadr[simple]]
    dof = model.jnt_dofadr[simple].astype(np.int64)
    ball_dofs = model.jnt_dofadr[ball][:, None].astype(np.int64) + np.arange(3)
    ball_axis, ball_angle = _ball_rotation(model, data, ball)

    # One entry for each end of a range, one for each ball; rows of up to three dofs.
    joint = np.concatenate((simple, simple, ball))
    distance = np.concatenate(
        (
            q - model.jnt_range[simple, 0],
            model.jnt_range[simple, 1] - q,
            model.jnt_range[ball].max(axis=1, initial=-np.inf) - ball_angle,
        )
    )
    dofs = np.concatenate((np.column_stack((dof,) * 3),) * 2 + (ball_dofs,))
    ones = np.column_stack((np.ones(len(simple)), np.zeros((len(simple), 2))))
    direction = np.concatenate((ones, -ones, -ball_axis))

    speed = np.abs(np.stack((data.qvel, v_star)))[:, dofs].max(axis=(0, 2), initial=0.0)
    reach = np.maximum(model.jnt_margin[joint], _LIMIT_REACH * model.opt.timestep * speed)
    near = np.flatnonzero(distance <= reach)
    if not near.size:
        return Contacts()
    return _limit_contacts(model, layout, joint[near], distance[near], dofs[near], direction[near])


def _ball_rotation(
    model: mujoco.MjModel, data: mujoco.MjData, joints: IndexArray
) -> tuple[FloatArray, FloatArray]:
    """Axes [n, 3] and angles [n] of the rotations of ball joints, angles from 0 to π."""
    quaternion = data.qpos[model.jnt_qposadr[joints][:, None] + np.arange(4)]
    quaternion = np.where(quaternion[:, :1] < 0, -quaternion, quaternion)
    sine = np.linalg.norm(quaternion[:, 1:], axis=1)
    angle = 2 * np.arctan2(sine, quaternion[:, 0])
    return quaternion[:, 1:] / np.maximum(sine, 1e-15)[:, None], angle


def _limit_contacts(
    model: mujoco.MjModel,
    layout: Layout,
    joint: IndexArray,
    distance: FloatArray,
    dofs: IndexArray,
    direction: FloatArray,
) -> Contacts:
    tree = layout.tree_of_dof[dofs[:, 0]]
    size = layout.dofs[tree].astype(np.int64)
    start = np.concatenate(([0], np.cumsum(3 * size)))
    jacobian = np.zeros(start[-1])
    normal_row = start[:-1] + 2 * size
    place = normal_row[:, None] + dofs - layout.first_dof[tree][:, None]
    # The dof of a hinge or slide comes three times, with the directions (±1, 0, 0).
    np.add.at(jacobian, place.ravel(), direction.ravel())
    weight = model.dof_invweight0[dofs[:, 0]]
    stiffness, relaxation = stiffness_and_relaxation(
        model, model.jnt_solref[joint], model.jnt_solimp[joint], distance, weight
    )
    return Contacts(
        tree_a=tree,
        tree_b=np.full(len(joint), WORLD),
        jacobian=jacobian,
        signed_distance=distance,
        stiffness=stiffness,
        relaxation_time=relaxation,
        friction=np.zeros(len(joint)),
    )


def join(first: Contacts, second: Contacts) -> Contacts:
    """Contacts of both, in this order."""
    if not second.count:
        return first
    moving = first.surface_velocity
    if moving.size:
        moving = np.concatenate((moving, np.zeros((second.count, 3))))
    return Contacts(
        **{
            name: np.concatenate((getattr(first, name), getattr(second, name)))
            for name in (
                "tree_a",
                "tree_b",
                "jacobian",
                "signed_distance",
                "stiffness",
                "relaxation_time",
                "friction",
            )
        },
        surface_velocity=moving,
    )
