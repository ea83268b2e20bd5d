"""Contacts and joint limits of a MuJoCo state, as contacts of a problem.

The velocity of b relative to a at a contact point p, in the contact's frame, is

    v_c = F (J_b(p) - J_a(p)) v,   columns of J: c_lin + c_ang × (p - c_0)

with c the motion axes that MuJoCo has for every degree of freedom, about the center of mass c_0 of
its tree. A joint limit is a contact without friction whose only row is that of the joint.
"""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np

from sap_islands.arrays import FloatArray, IntArray
from sap_islands.jacobian import ContactJacobian, IndexArray, at_origin, contact_wrenches
from sap_islands.mujoco.layout import Layout
from sap_islands.mujoco.limits import Limits
from sap_islands.mujoco.material import Material, constants, stiffness_and_relaxation
from sap_islands.problem import WORLD, Contacts

_IN_GAP = 1  # of MuJoCo's reasons to leave a contact out; for the service it may close in this step
_TANGENTS_FIRST = np.array([3, 4, 5, 6, 7, 8, 0, 1, 2])
_NO_MOTION = np.zeros((1, 6))
_WITH_FRICTION = 3  # rows of a contact that has friction


class _Touching(NamedTuple):
    """C contacts that the service is to solve.

    Attributes:
        which: [C] of `data.contact`.
        tree_a, tree_b: [C].
        jacobian: Blocks of all.
        distance: [C] φ0 [m].
        constants: [9, C] of the material, or [9, 1].
        weight: [C] Â [1/kg].
        friction: [C] μ [-].
        surface_velocity: [C, 3], or empty [m/s].
    """

    which: IndexArray
    tree_a: IntArray
    tree_b: IntArray
    jacobian: FloatArray
    distance: FloatArray
    constants: FloatArray
    weight: FloatArray
    friction: FloatArray
    surface_velocity: FloatArray


_NONE, _NO_TREE = np.empty(0), np.empty(0, np.int32)
_NOTHING = _Touching(
    np.empty(0, np.int64),
    _NO_TREE,
    _NO_TREE,
    _NONE,
    _NONE,
    constants(1.0, 0, np.empty((0, 2)), np.empty((0, 5))),
    _NONE,
    _NONE,
    _NONE,
)


def make_contacts(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    layout: Layout,
    material: Material,
    limits: Limits | None,
) -> tuple[Contacts, IndexArray]:
    """Contacts of the state, and which of `data.contact` each of the first is [C]; then limits."""
    touching = _find_touching(model, data, layout) if data.ncon else _NOTHING
    count = len(touching.which)
    if not count and limits is None:
        return Contacts(), touching.which
    tree_a, tree_b, jacobian, distance, parameters, weight, friction = touching[1:8]
    if limits is not None:
        zeros = np.zeros(len(limits.tree))
        tree_a = np.concatenate((tree_a, limits.tree))
        tree_b = np.concatenate((tree_b, np.full(len(zeros), WORLD, np.int32)))
        jacobian = np.concatenate((jacobian, limits.jacobian))
        distance = np.concatenate((distance, limits.distance))
        parameters = np.broadcast_to(parameters, (len(parameters), count))
        parameters = np.concatenate((parameters, limits.constants), axis=1)
        weight = np.concatenate((weight, limits.weight))
        friction = np.concatenate((friction, zeros))
    stiffness, relaxation = stiffness_and_relaxation(parameters, distance, weight)
    for given, derived in (
        (material.stiffness, stiffness),
        (material.relaxation_time, relaxation),
        (material.friction, friction),
    ):
        if given is not None:
            derived[:count] = given
    contacts = Contacts(
        tree_a=tree_a,
        tree_b=tree_b,
        jacobian=jacobian,
        signed_distance=distance,
        stiffness=stiffness,
        relaxation_time=relaxation,
        friction=friction,
    )
    if len(touching.surface_velocity):
        moving = np.zeros((len(distance), 3))
        moving[:count] = touching.surface_velocity
        contacts.surface_velocity = moving
    return contacts, touching.which


def _find_touching(model: mujoco.MjModel, data: mujoco.MjData, layout: Layout) -> _Touching:
    contact = data.contact
    geom = contact.geom
    bodies = model.geom_bodyid.take(np.maximum(geom, 0) if model.nflex else geom)
    trees = layout.tree_of_body.take(bodies)
    # Both are -1 where neither moves.
    included = (contact.exclude <= _IN_GAP) & ((trees[:, 0] & trees[:, 1]) >= 0)
    if model.nflex:
        included &= geom.min(axis=1) >= 0
    which = included.nonzero()[0]
    if not len(which):
        return _NOTHING
    # Nothing needs to be picked where all are there, which is the rule.
    kept = slice(None) if len(which) == len(trees) else which
    bodies, trees = bodies[kept], trees[kept]

    # MuJoCo's frames have the normal first, from the first geom to the second.
    frame = contact.frame.take(_TANGENTS_FIRST, axis=1)[kept].reshape(-1, 3, 3)
    wrenches = contact_wrenches(contact.pos[kept], frame)
    motion = _motion_axes(data, layout)
    jacobian = ContactJacobian(layout.sizes, trees)
    body_of_side = bodies.ravel()
    for n, sides in jacobian.groups(layout.moving_dofs):
        dofs = layout.moving_dofs[n].take(body_of_side.take(sides), axis=0)
        of_contacts = wrenches if len(sides) == len(wrenches) else wrenches.take(sides, axis=0)
        of_bodies = motion.take(dofs, axis=0).transpose(0, 2, 1)
        jacobian.add(sides, np.matmul(of_contacts, of_bodies))

    weights = model.body_invweight0[:, 0].take(bodies)
    moving = np.empty(0)
    if getattr(model, "flg_surfacevel", False) and hasattr(contact, "surfacevel"):
        moving = contact.surfacevel[kept]
        moving = np.column_stack((moving[:, :2], np.zeros(len(which))))
    return _Touching(
        which,
        jacobian.tree_a,
        jacobian.tree_b,
        jacobian.values,
        contact.dist[kept] - contact.includemargin[kept],
        _constants(model, layout, contact.solref[kept], contact.solimp[kept]),
        weights[:, 0] + weights[:, 1],
        contact.friction[kept, 0] * (contact.dim[kept] >= _WITH_FRICTION),
        moving,
    )


def _motion_axes(data: mujoco.MjData, layout: Layout) -> FloatArray:
    """Motion axes of all dofs at the origin of the world, and of one that does not move."""
    axes, center = data.cdof, data.subtree_com.take(layout.root_of_dof, axis=0)
    return np.concatenate((at_origin(axes[:, :3], axes[:, 3:], center), _NO_MOTION))


def _constants(
    model: mujoco.MjModel, layout: Layout, solref: FloatArray, solimp: FloatArray
) -> FloatArray:
    """Of the material of each contact, or [9, 1] of all where they are equal."""
    rule = (model.opt.timestep, model.opt.disableflags)
    first, first_solimp, count = solref[:1].tobytes(), solimp[:1].tobytes(), len(solref)
    if first * count != solref.tobytes() or first_solimp * count != solimp.tobytes():
        return constants(*rule, solref, solimp)
    key = (first, first_solimp, *rule)
    return layout.remember("material", key, lambda: constants(*rule, solref[:1], solimp[:1]))
