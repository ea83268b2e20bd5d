"""Converts contact points of a Drake state to contacts of a problem.

The normal points from geometry A to geometry B, and v_c = J_B v - J_A v at the contact point with

    J v = V + ω × (p - p_o),   V: velocity of the body's origin p_o
"""

from __future__ import annotations

import math

import numpy as np
from pydrake.multibody.plant import DiscreteContactApproximation, MultibodyPlant
from pydrake.multibody.tree import BodyIndex, JacobianWrtVariable
from pydrake.systems.framework import Context

from sap_islands.arrays import FloatArray, IntArray
from sap_islands.drake.contact_points import POINT, Points
from sap_islands.drake.layout import Layout
from sap_islands.numba_kernels import IndexArray, block_trees, compiled
from sap_islands.problem import ContactLaw, Contacts, HuntCrossley

SIGMA = 1e-3  # of Drake's discrete solver, so that the solutions agree with Drake's
_LAWS = {
    DiscreteContactApproximation.kTamsi: ContactLaw.HUNT_CROSSLEY_LAGGED,  # only if ignored
    DiscreteContactApproximation.kSap: ContactLaw.SAP,
    DiscreteContactApproximation.kSimilar: ContactLaw.HUNT_CROSSLEY_SIMILAR,
    DiscreteContactApproximation.kLagged: ContactLaw.HUNT_CROSSLEY_LAGGED,
}
_MAX_NORMAL_X = 0.6  # largest |n_x| with which the tangents are made from the x axis
_ORIGIN = np.zeros(3)
_PARAMETERS = 8  # rows of `parameters` in `_write`


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
    count = len(points.bodies)
    where = (layout.first, layout.tree_of_body, layout.position_of_free)
    values, others = _size_jacobian(*where, points.bodies)
    trees, jacobian = np.empty((2, count), np.int32), np.empty(values)
    parameters, frames = np.empty((_PARAMETERS, count)), np.empty((count, 3, 3))
    _write(
        *where,
        layout.velocities,
        plant.time_step(),
        diagonal,
        plant.GetPositions(context),
        plant.GetVelocities(context),
        others,
        body_jacobians(plant, context, others),
        points.rows,
        points.bodies,
        trees,
        jacobian,
        parameters,
        frames,
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
    law = _LAWS[plant.get_discrete_contact_approximation()]
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


@compiled
def _size_jacobian(
    first: IndexArray,
    tree_of_body: IntArray,
    position_of_free: IndexArray,
    bodies: IntArray,
) -> tuple[int, IndexArray]:
    """Number of values in the Jacobian, and the bodies in contact whose Jacobians Drake computes.

    These are the bodies that can move but are not free bodies.
    """
    values = 0
    is_other = np.zeros(len(tree_of_body), np.uint8)
    for i in range(len(bodies)):
        tree_a, tree_b = block_trees(tree_of_body[bodies[i, 0]], tree_of_body[bodies[i, 1]])
        values += 3 * (first[tree_a + 1] - first[tree_a])
        if tree_b >= 0:
            values += 3 * (first[tree_b + 1] - first[tree_b])
        for body in bodies[i]:
            if tree_of_body[body] >= 0 and position_of_free[body] < 0:
                is_other[body] = 1
    return values, is_other.nonzero()[0]


@compiled
def _write(
    first: IndexArray,
    tree_of_body: IntArray,
    position_of_free: IndexArray,
    velocities: IndexArray,
    dt: float,
    diagonal: FloatArray,
    position: FloatArray,
    v_0: FloatArray,
    others: IndexArray,
    jacobians: FloatArray,
    points: FloatArray,
    bodies: IntArray,
    trees: IntArray,
    jacobian: FloatArray,
    parameters: FloatArray,
    frames: FloatArray,
) -> None:
    """Writes contacts to `trees` [2, C], `jacobian`, `parameters` [8, C] and `frames` [C, 3, 3].

    The rows of `parameters` are signed distance, stiffness, relaxation time, friction, w, elastic
    force, dissipation, and n_0, the normal impulse of Hunt & Crossley at v_0.
    """
    jacobian[:] = 0.0
    place = 0
    delassus = np.empty((3, 3))
    for i in range(len(points)):
        tree_a, tree_b = block_trees(tree_of_body[bodies[i, 0]], tree_of_body[bodies[i, 1]])
        trees[0, i], trees[1, i] = tree_a, tree_b
        begin, second = place, place + 3 * (first[tree_a + 1] - first[tree_a])
        place = second
        if tree_b >= 0:
            place += 3 * (first[tree_b + 1] - first[tree_b])
        frame = frames[i]
        _write_frame(points[i, 3:6], frame)
        for side in range(2):
            body = bodies[i, side]
            tree = tree_of_body[body]
            if tree < 0:
                continue
            block = jacobian[begin:second] if tree == tree_a else jacobian[second:place]
            sign, at = 2.0 * side - 1.0, position_of_free[body]
            if at >= 0:
                _add_free(frame, points[i, :3] - position[at : at + 3], sign, block)
            else:
                row = jacobians[np.searchsorted(others, body)]
                dofs = velocities[first[tree] : first[tree + 1]]
                _add_other(frame, points[i, :3] - row[:3], sign, row[3:], dofs, block)
        delassus[:] = 0.0
        _add_delassus(jacobian[begin:second], diagonal[first[tree_a] :], delassus)
        v_n = _normal_velocity(jacobian[begin:second], velocities[first[tree_a] :], v_0)
        if tree_b >= 0:
            _add_delassus(jacobian[second:place], diagonal[first[tree_b] :], delassus)
            v_n += _normal_velocity(jacobian[second:place], velocities[first[tree_b] :], v_0)
        weight = math.sqrt(np.square(delassus).sum()) / 3.0
        _set_parameters(points[i], dt, weight, v_n, parameters[:, i])


@compiled
def _normal_velocity(block: FloatArray, velocities: IndexArray, v_0: FloatArray) -> float:
    """Contribution of one tree to the normal velocity at v_0, which is in Drake's order."""
    n = len(block) // 3
    total = 0.0
    for j in range(n):
        total += block[2 * n + j] * v_0[velocities[j]]
    return total


@compiled
def _set_parameters(
    point: FloatArray, dt: float, weight: float, v_n: float, parameters: FloatArray
) -> None:
    k, d = point[POINT.stiffness], point[POINT.dissipation]
    force = -k * point[POINT.signed_distance]
    parameters[0], parameters[1] = point[POINT.signed_distance], k
    parameters[2], parameters[3] = point[POINT.relaxation_time], point[POINT.friction]
    parameters[4], parameters[5], parameters[6] = weight, force, d
    parameters[7] = dt * max(0.0, force) * max(0.0, 1.0 - d * v_n)


@compiled
def _write_frame(normal: FloatArray, frame: FloatArray) -> None:
    """Writes a contact frame with the rows t1, t2, n [3, 3].

    t1 is normal to n and to the x axis, or to the y axis if |n_x| > 0.6. The solution does not
    depend on the choice.
    """
    x, y, z = normal[0], normal[1], normal[2]
    frame[0] = 0.0
    # n × e_x or n × e_y
    if abs(x) <= _MAX_NORMAL_X:
        frame[0, 1], frame[0, 2] = z, -y
    else:
        frame[0, 0], frame[0, 2] = -z, x
    frame[0] /= math.sqrt(np.square(frame[0]).sum())
    a, b, c = frame[0, 0], frame[0, 1], frame[0, 2]
    frame[1, 0], frame[1, 1], frame[1, 2] = y * c - z * b, z * a - x * c, x * b - y * a
    frame[2] = normal


@compiled
def _add_free(frame: FloatArray, arm: FloatArray, sign: float, block: FloatArray) -> None:
    """Adds the Jacobian of a free body with velocities (ω, V) in world axes: f · (V + ω × r)."""
    for k in range(3):
        f_x, f_y, f_z = sign * frame[k, 0], sign * frame[k, 1], sign * frame[k, 2]
        row = block[6 * k : 6 * k + 6]
        row[0] += arm[1] * f_z - arm[2] * f_y
        row[1] += arm[2] * f_x - arm[0] * f_z
        row[2] += arm[0] * f_y - arm[1] * f_x
        row[3] += f_x
        row[4] += f_y
        row[5] += f_z


@compiled
def _add_other(
    frame: FloatArray,
    arm: FloatArray,
    sign: float,
    axes: FloatArray,
    dofs: IndexArray,
    block: FloatArray,
) -> None:
    """As `_add_free` for a body whose (ω, V) depends on Drake's v by the Jacobian `axes` [6 nv]."""
    n, nv = len(dofs), len(axes) // 6
    for j in range(n):
        v = dofs[j]
        turn_x, turn_y, turn_z = axes[v], axes[nv + v], axes[2 * nv + v]
        v_x = axes[3 * nv + v] + turn_y * arm[2] - turn_z * arm[1]
        v_y = axes[4 * nv + v] + turn_z * arm[0] - turn_x * arm[2]
        v_z = axes[5 * nv + v] + turn_x * arm[1] - turn_y * arm[0]
        for k in range(3):
            along = frame[k, 0] * v_x + frame[k, 1] * v_y + frame[k, 2] * v_z
            block[k * n + j] += sign * along


@compiled
def _add_delassus(block: FloatArray, diagonal: FloatArray, delassus: FloatArray) -> None:
    """Adds J diag(A)^-1 J' of one tree [3, 3]."""
    n = len(block) // 3
    for j in range(n):
        for k in range(3):
            weighted = block[k * n + j] / diagonal[j]
            for m in range(3):
                delassus[k, m] += weighted * block[m * n + j]
