"""Converts contact points and joint limits of a Drake state to contacts of a problem.

The normal points from geometry A to geometry B, and v_c = J_B v - J_A v at the contact point with

    J v = V + ω × (p - p_o),   V: velocity of the body's origin p_o
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import BodyIndex, JacobianWrtVariable
from pydrake.systems.framework import Context

from sap_islands.arrays import FloatArray, IntArray
from sap_islands.drake.contact_points import POINT, Points
from sap_islands.drake.dynamics import Dynamics
from sap_islands.drake.layout import Layout
from sap_islands.numba_kernels import IndexArray, block_trees, compiled
from sap_islands.problem import WORLD, Contacts

# Constants of Drake's discrete solver, so that the solutions agree with Drake's.
SIGMA = 1e-3
_LIMIT_STIFFNESS, _LIMIT_BETA, _LIMIT_REACH = 1e12, 0.1, 2.0
_MAX_NORMAL_X = 0.6  # largest |n_x| with which the tangents are made from the x axis
_ORIGIN = np.zeros(3)
_PARAMETERS = 7  # rows of `parameters` in `_write`


class _Limits(NamedTuple):
    """L joint limits that may be reached within two steps.

    Attributes:
        dofs: [L] index of the joint's velocity in the problem.
        signs: [L] 1 for a lower limit, whose distance grows with q; -1 for an upper one.
        distances: [L] distance to the limit [m or rad].
    """

    dofs: IndexArray
    signs: FloatArray
    distances: FloatArray


def make_contacts(
    plant: MultibodyPlant,
    context: Context,
    layout: Layout,
    dynamics: Dynamics,
    points: Points,
    position: FloatArray,
    with_limits: bool,
) -> Contacts:
    """Makes the contacts at `points`, then the joint limits that may be reached in two steps.

    Args:
        plant: The plant.
        context: Its context.
        layout: Its layout.
        dynamics: A and v* of the step.
        points: Contact points.
        position: q of the context.
        with_limits: Whether joint limits are part of the problem.
    """
    dt = plant.time_step()
    limits = _find_limits(plant, context, layout, dynamics, position, with_limits)
    where = (layout.first, layout.tree_of_body)
    values, others = _size_jacobian(*where, layout.position_of_free, points.bodies, limits.dofs)
    jacobians = _jacobians(plant, context, others)
    count = len(points.bodies) + len(limits.dofs)
    trees, jacobian = np.empty((2, count), np.int32), np.empty(values)
    parameters = np.empty((_PARAMETERS, count))
    beta = plant.get_sap_near_rigid_threshold()
    _write(
        *where,
        layout.position_of_free,
        layout.velocities,
        dt,
        beta,
        dynamics.diagonal,
        position,
        others,
        jacobians,
        points.rows,
        points.bodies,
        limits.dofs,
        limits.signs,
        limits.distances,
        trees,
        jacobian,
        parameters,
    )
    distance, stiffness, relaxation_time, friction, weight, r_t, r_n = parameters
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
    if len(limits.dofs):
        # Joint limits have their own regularization, and the array must cover all contacts.
        contacts.regularization_t, contacts.regularization_n = r_t, r_n
    return contacts


def _jacobians(plant: MultibodyPlant, context: Context, bodies: IndexArray) -> FloatArray:
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


def _find_limits(
    plant: MultibodyPlant,
    context: Context,
    layout: Layout,
    dynamics: Dynamics,
    position: FloatArray,
    with_limits: bool,
) -> _Limits:
    most = 2 * len(layout.limited) if with_limits else 0
    limits = _Limits(np.empty(most, np.int64), np.empty(most), np.empty(most))
    if not most:
        return limits
    count = _add_limits(
        layout.limited,
        layout.problem_index,
        plant.time_step(),
        position,
        plant.GetVelocities(context),
        dynamics.v_star_without_servos,
        plant.GetPositionLowerLimits(),
        plant.GetPositionUpperLimits(),
        *limits,
    )
    return _Limits(limits.dofs[:count], limits.signs[:count], limits.distances[:count])


@compiled
def _add_limits(
    limited: IndexArray,
    problem_index: IndexArray,
    dt: float,
    position: FloatArray,
    velocity: FloatArray,
    v_star: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    dofs: IndexArray,
    signs: FloatArray,
    distances: FloatArray,
) -> int:
    """Writes the limits that may be reached within two steps; returns their number."""
    count = 0
    for i in range(len(limited)):
        q, v = limited[i]
        dof = problem_index[v]
        reach = _LIMIT_REACH * dt * max(abs(velocity[v]), abs(v_star[dof]))
        for sign, end in ((1.0, lower[q]), (-1.0, upper[q])):
            distance = sign * (position[q] - end)
            if distance <= reach:
                dofs[count], signs[count], distances[count] = dof, sign, distance
                count += 1
    return count


@compiled
def _size_jacobian(
    first: IndexArray,
    tree_of_body: IntArray,
    position_of_free: IndexArray,
    bodies: IntArray,
    limits: IndexArray,
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
    for dof in limits:
        tree = _tree_of_dof(first, dof)
        values += 3 * (first[tree + 1] - first[tree])
    return values, is_other.nonzero()[0]


@compiled
def _tree_of_dof(first: IndexArray, dof: int) -> int:
    return int(np.searchsorted(first, dof, side="right")) - 1


@compiled
def _write(
    first: IndexArray,
    tree_of_body: IntArray,
    position_of_free: IndexArray,
    velocities: IndexArray,
    dt: float,
    beta: float,
    diagonal: FloatArray,
    position: FloatArray,
    others: IndexArray,
    jacobians: FloatArray,
    points: FloatArray,
    bodies: IntArray,
    limits: IndexArray,
    signs: FloatArray,
    distances: FloatArray,
    trees: IntArray,
    jacobian: FloatArray,
    parameters: FloatArray,
) -> None:
    """Writes contacts, then joint limits, to `trees` [2, C], `jacobian` and `parameters` [7, C].

    The rows of `parameters` are signed distance, stiffness, relaxation time, friction, w, R_t, R_n.
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
        frame = _frame(points[i, 3:6])
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
        if tree_b >= 0:
            _add_delassus(jacobian[second:place], diagonal[first[tree_b] :], delassus)
        weight = math.sqrt(np.square(delassus).sum()) / 3.0
        _set_parameters(points[i], dt, beta, weight, parameters[:, i])
    count = len(points)
    _write_limits(
        first,
        dt,
        diagonal,
        limits,
        signs,
        distances,
        trees[:, count:],
        jacobian[place:],
        parameters[:, count:],
    )


@compiled
def _set_parameters(
    point: FloatArray, dt: float, beta: float, weight: float, parameters: FloatArray
) -> None:
    k, tau = point[POINT.stiffness], point[POINT.relaxation_time]
    parameters[0], parameters[1], parameters[2] = point[POINT.signed_distance], k, tau
    parameters[3], parameters[4], parameters[5] = point[POINT.friction], weight, SIGMA * weight
    near_rigid = beta**2 / (4.0 * math.pi**2) * weight
    parameters[6] = max(near_rigid, 1.0 / (dt * k * (dt + tau)))


@compiled
def _write_limits(
    first: IndexArray,
    dt: float,
    diagonal: FloatArray,
    limits: IndexArray,
    signs: FloatArray,
    distances: FloatArray,
    trees: IntArray,
    jacobian: FloatArray,
    parameters: FloatArray,
) -> None:
    place = 0
    for i in range(len(limits)):
        tree = _tree_of_dof(first, limits[i])
        n = first[tree + 1] - first[tree]
        trees[0, i], trees[1, i] = tree, WORLD
        jacobian[place + 2 * n + limits[i] - first[tree]] = signs[i]
        place += 3 * n
        weight = 1.0 / diagonal[limits[i]]
        near_rigid = _LIMIT_BETA**2 / (4.0 * math.pi**2) * weight
        parameters[0, i], parameters[1, i], parameters[2, i] = distances[i], _LIMIT_STIFFNESS, dt
        parameters[3, i], parameters[4, i], parameters[5, i] = 0.0, weight, SIGMA * weight
        parameters[6, i] = max(near_rigid, 1.0 / (dt * _LIMIT_STIFFNESS * 2.0 * dt))


@compiled
def _frame(normal: FloatArray) -> FloatArray:
    """Contact frame with the rows t1, t2, n [3, 3].

    t1 is normal to n and to the x axis, or to the y axis if |n_x| > 0.6. The solution does not
    depend on the choice.
    """
    x, y, z = normal[0], normal[1], normal[2]
    frame = np.zeros((3, 3))
    # n × e_x or n × e_y
    if abs(x) <= _MAX_NORMAL_X:
        frame[0, 1], frame[0, 2] = z, -y
    else:
        frame[0, 0], frame[0, 2] = -z, x
    frame[0] /= math.sqrt(np.square(frame[0]).sum())
    a, b, c = frame[0, 0], frame[0, 1], frame[0, 2]
    frame[1, 0], frame[1, 1], frame[1, 2] = y * c - z * b, z * a - x * c, x * b - y * a
    frame[2] = normal
    return frame


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
