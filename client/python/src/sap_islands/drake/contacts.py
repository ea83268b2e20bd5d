"""Converts contact points of a Drake state to contacts of a problem.

The normal points from geometry A to geometry B, and v_c = J_B v - J_A v at the contact point with

    J v = V + ω × (p - p_o),   V: velocity of the body's origin p_o
"""

from __future__ import annotations

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import BodyIndex, JacobianWrtVariable
from pydrake.systems.framework import Context

from sap_islands._library.c_library import pointer_to
from sap_islands.arrays import FloatArray, IndexArray
from sap_islands.drake.contact_points import Points
from sap_islands.drake.layout import Layout
from sap_islands.drake.native_calls import load_native_calls, struct_of
from sap_islands.drake.surface_speeds import surface_velocities
from sap_islands.problem import ContactLaw, Contacts, HuntCrossley

SIGMA = 1e-3  # of Drake's discrete solver, so that the solutions agree with Drake's
# By name, since a version of Drake does not have all of them.
_LAWS = {
    "kSap": ContactLaw.SAP,
    "kSimilar": ContactLaw.HUNT_CROSSLEY_SIMILAR,
    "kLagged": ContactLaw.HUNT_CROSSLEY_LAGGED,
}
_ORIGIN = np.zeros(3)
_PARAMETERS = 8  # per contact, of sap_drake_write_contacts


def make_contacts(
    plant: MultibodyPlant,
    context: Context,
    layout: Layout,
    diagonal: FloatArray,
    points: Points,
) -> tuple[Contacts, FloatArray]:
    """Makes the contacts at `points`; also returns their frames with rows t1, t2, n [C, 3, 3].

    Args:
        plant: The plant.
        context: Its context.
        layout: Its layout.
        diagonal: Diagonal of A, with which Drake estimates w.
        points: Contact points.
    """
    calls, count = load_native_calls(), len(points.bodies)
    needs_jacobian = np.zeros(plant.num_bodies(), np.uint8)
    bodies, flags = pointer_to(points.bodies), pointer_to(needs_jacobian)
    values = calls.measure_contacts(layout.as_struct, count, bodies, flags)
    others = needs_jacobian.nonzero()[0]
    trees, jacobian = np.empty((2, count), np.int32), np.empty(values)
    parameters, frames = np.empty((_PARAMETERS, count)), np.empty((count, 3, 3))
    state = (diagonal, plant.GetPositions(context), plant.GetVelocities(context))
    jacobians = body_jacobians(plant, context, others)
    calls.write_contacts(
        layout.as_struct,
        count,
        struct_of("points", *points),
        struct_of("state", *state, len(others), others, jacobians),
        struct_of("contacts", trees, jacobian, parameters, frames),
    )
    distance, stiffness, relaxation_time, friction, weight, force, dissipation, n_0 = parameters
    contacts = Contacts.from_wire_arrays(
        tree_a=trees[0],
        tree_b=trees[1],
        jacobian=jacobian,
        signed_distance=distance,
        stiffness=stiffness,
        relaxation_time=relaxation_time,
        friction=friction,
        delassus_estimate=weight,
    )
    if count:
        contacts.surface_velocity = surface_velocities(plant, context, points.bodies, frames)
    # Another one is only here if it is ignored.
    approximation = plant.get_discrete_contact_approximation().name
    law = _LAWS.get(approximation, ContactLaw.HUNT_CROSSLEY_LAGGED)
    if count and law != ContactLaw.SAP:
        contacts.law = np.full(count, law, np.uint8)
        contacts.hunt_crossley = HuntCrossley.from_wire_arrays(
            elastic_force=force, dissipation=dissipation, lagged_normal_impulse=n_0
        )
    return contacts, frames


def body_jacobians(plant: MultibodyPlant, context: Context, bodies: IndexArray) -> FloatArray:
    """Origins and Jacobians of bodies [bodies, 3 + 6 nv].

    A row has p_o, then the Jacobian of (ω, V) with respect to Drake's v, [6, nv] row-major.
    """
    rows = np.empty((len(bodies), 3 + 6 * plant.num_velocities()))
    world = plant.world_frame()
    for row, index in zip(rows, bodies.tolist(), strict=True):
        body = plant.get_body(BodyIndex(index))
        row[:3] = plant.EvalBodyPoseInWorld(context, body).translation()
        row[3:] = plant.CalcJacobianSpatialVelocity(
            context, JacobianWrtVariable.kV, body.body_frame(), _ORIGIN, world, world
        ).ravel()
    return rows
