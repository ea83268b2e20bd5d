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
from numpy.typing import NDArray

from sap_islands.arrays import FloatArray
from sap_islands.jacobian import IndexArray, JacobianPlan, at_origin, contact_wrenches
from sap_islands.mujoco.layout import Layout
from sap_islands.mujoco.limits import Limits
from sap_islands.mujoco.material import Material, constants, stiffness_and_relaxation
from sap_islands.problem import WORLD, Contacts

_IN_GAP = 1  # of MuJoCo's reasons to leave a contact out; for the service it may close in this step
_TANGENTS_FIRST = np.array([3, 4, 5, 6, 7, 8, 0, 1, 2])
_WITH_FRICTION = 3  # rows of a contact that has friction


class _Touching(NamedTuple):
    """C contacts that the service is to solve: what follows from which geoms touch.

    Attributes:
        which: [C] of `data.contact`.
        kept: What picks them there: everything, or `which`.
        plan: Places in the Jacobian.
        dofs: For each group of it, the dofs that move the bodies [g, n].
        constants: [9, C] of the material.
        weight: [C] Â [1/kg].
        has_friction: [C].
    """

    which: IndexArray
    kept: slice | IndexArray
    plan: JacobianPlan
    dofs: list[IndexArray]
    constants: FloatArray
    weight: FloatArray
    has_friction: NDArray[np.bool_]


def make_contacts(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    layout: Layout,
    material: Material,
    limits: Limits | None,
) -> tuple[Contacts, IndexArray]:
    """Contacts of the state, and which of `data.contact` each of the first is [C]; then limits."""
    touching = _touching(model, data, layout)
    count = len(touching.which)
    if not count and limits is None:
        return Contacts(), touching.which
    contact, kept, plan = data.contact, touching.kept, touching.plan
    tree_a, tree_b, parameters, weight = (
        plan.tree_a,
        plan.tree_b,
        touching.constants,
        touching.weight,
    )
    jacobian = _jacobian(data, layout, touching)
    distance = contact.dist[kept] - contact.includemargin[kept]
    friction = contact.friction[kept, 0] * touching.has_friction
    if limits is not None:
        more = len(limits.tree)
        tree_a = np.concatenate((tree_a, limits.tree))
        tree_b = np.concatenate((tree_b, np.full(more, WORLD, np.int32)))
        jacobian = np.concatenate((jacobian, limits.jacobian))
        distance = np.concatenate((distance, limits.distance))
        parameters = np.concatenate((parameters, limits.constants), axis=1)
        weight = np.concatenate((weight, limits.weight))
        friction = np.concatenate((friction, np.zeros(more)))
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
    if count and getattr(model, "flg_surfacevel", False) and hasattr(contact, "surfacevel"):
        moving = np.zeros((len(distance), 3))
        moving[:count, :2] = contact.surfacevel[kept, :2]
        contacts.surface_velocity = moving
    return contacts, touching.which


def _touching(model: mujoco.MjModel, data: mujoco.MjData, layout: Layout) -> _Touching:
    """Which contacts there are; found out anew when others touch than in the last step."""
    contact = data.contact
    key = (
        contact.geom.tobytes(),
        contact.exclude.tobytes(),
        contact.dim.tobytes(),
        contact.solref.tobytes(),
        contact.solimp.tobytes(),
        model.body_invweight0.tobytes(),
        model.opt.timestep,
        model.opt.disableflags,
    )
    return layout.remember("touching", key, lambda: _find_touching(model, data, layout))


def _find_touching(model: mujoco.MjModel, data: mujoco.MjData, layout: Layout) -> _Touching:
    contact = data.contact
    geom = contact.geom.reshape(-1, 2)
    bodies = model.geom_bodyid.take(np.maximum(geom, 0) if model.nflex else geom)
    trees = layout.tree_of_body.take(bodies)
    # Both are -1 where neither moves.
    included = (contact.exclude <= _IN_GAP) & ((trees[:, 0] & trees[:, 1]) >= 0)
    if model.nflex:
        included &= geom.min(axis=1) >= 0
    which = included.nonzero()[0]
    # Nothing needs to be picked where all are there, which is the rule.
    kept: slice | IndexArray = slice(None) if len(which) == len(trees) else which
    bodies = bodies[kept]
    plan = JacobianPlan(layout.sizes, layout.moving_dofs, trees[kept])
    body_of_side = bodies.ravel()
    weights = model.body_invweight0[:, 0].take(bodies)
    return _Touching(
        which,
        kept,
        plan,
        [
            layout.moving_dofs[n].take(body_of_side.take(sides), axis=0)
            for n, sides, _ in plan.groups
        ],
        _constants(model, layout, contact.solref[kept], contact.solimp[kept]),
        weights[:, 0] + weights[:, 1],
        contact.dim[kept] >= _WITH_FRICTION,
    )


def _jacobian(data: mujoco.MjData, layout: Layout, touching: _Touching) -> FloatArray:
    contact = data.contact
    # MuJoCo's frames have the normal first, from the first geom to the second.
    frame = contact.frame.reshape(-1, 9).take(_TANGENTS_FIRST, axis=1)[touching.kept]
    wrenches = contact_wrenches(contact.pos[touching.kept], frame.reshape(-1, 3, 3))
    axes, center = data.cdof, data.subtree_com.take(layout.root_of_dof, axis=0)
    motion = at_origin(axes[:, :3], axes[:, 3:], center)
    blocks = []
    for (_, sides, every), dofs in zip(touching.plan.groups, touching.dofs, strict=True):
        of_contacts = wrenches if every else wrenches.take(sides, axis=0)
        of_bodies = motion.take(dofs, axis=0).transpose(0, 2, 1)
        blocks.append(np.matmul(of_contacts, of_bodies))
    return touching.plan.assemble(blocks)


def _constants(
    model: mujoco.MjModel, layout: Layout, solref: FloatArray, solimp: FloatArray
) -> FloatArray:
    """Of the material of each contact; made once for all where all are equal."""
    rule = (model.opt.timestep, model.opt.disableflags)
    first, first_solimp, count = solref[:1].tobytes(), solimp[:1].tobytes(), len(solref)
    if not count or first * count != solref.tobytes() or first_solimp * count != solimp.tobytes():
        return constants(*rule, solref, solimp)
    key = (first, first_solimp, *rule)
    one = layout.remember("material", key, lambda: constants(*rule, solref[:1], solimp[:1]))
    return one.repeat(count, axis=1)
