"""Contacts and joint limits of a Drake state, as contacts of a problem.

The normal points from geometry A to geometry B, and v_c = J_B v - J_A v at the contact point. A
polygon of a hydroelastic surface with area a, pressure p and pressure gradient g across it is a
contact of stiffness k = a g at the distance φ0 = -p / g [Masterjohn et al. 2022].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pydrake.geometry import ContactSurface, PenetrationAsPointPair, QueryObject
from pydrake.multibody.plant import ContactModel, MultibodyPlant
from pydrake.multibody.tree import BodyIndex, JacobianWrtVariable
from pydrake.systems.framework import Context

from sap_islands.arrays import FloatArray, IntArray
from sap_islands.drake.dynamics import Dynamics
from sap_islands.drake.layout import Layout, Material
from sap_islands.jacobian import ContactJacobian, at_origin, contact_wrenches
from sap_islands.problem import WORLD, Contacts

# What Drake's discrete solver takes, so that its answers can be compared.
SIGMA = 1e-3
_LIMIT_STIFFNESS, _LIMIT_BETA, _LIMIT_REACH = 1e12, 0.1, 2.0
_LEAST_AREA, _LEAST_GRADIENT = 1e-14, 1e-14
_FREE = np.eye(6)  # a body whose velocities are (ω, v of its origin)


@dataclass
class _Points:
    """Contact points, one list entry each."""

    body_a: list[int]
    body_b: list[int]
    position: list[FloatArray]  # in world axes [m]
    normal: list[FloatArray]  # from A to B
    distance: list[float]
    stiffness: list[float]
    relaxation_time: list[float]
    friction: list[float]

    def add(
        self,
        a: Material,
        b: Material,
        position: FloatArray,
        normal: FloatArray,
        distance: float,
        stiffness: float,
    ) -> None:
        total = a.friction + b.friction
        self.body_a.append(a.body)
        self.body_b.append(b.body)
        self.position.append(position)
        self.normal.append(normal)
        self.distance.append(distance)
        self.stiffness.append(stiffness)
        self.relaxation_time.append(a.relaxation_time + b.relaxation_time)
        self.friction.append(2 * a.friction * b.friction / total if total else 0.0)


def find_contacts(
    plant: MultibodyPlant, context: Context, layout: Layout, dynamics: Dynamics
) -> tuple[Contacts, IntArray]:
    """Contacts of the state, and the two bodies of each [C, 2]."""
    points = _find_points(plant, context, layout)
    bodies = np.column_stack((points.body_a, points.body_b)).astype(np.int64).reshape(-1, 2)
    trees = layout.tree_of_body[bodies]
    keep = np.flatnonzero((trees >= 0).any(axis=1))
    bodies, trees = bodies[keep], trees[keep]
    position = np.array(points.position).reshape(-1, 3)[keep]
    frame = _frames(np.array(points.normal).reshape(-1, 3)[keep])
    wrenches = contact_wrenches(position, frame)
    jacobian = ContactJacobian(layout.sizes, trees)
    for n, sides in jacobian.groups(layout.distinct_sizes):
        moving, which = np.unique(bodies.ravel()[sides], return_inverse=True)
        motion = _motion_axes(plant, context, layout, moving.tolist(), n)
        of_bodies = motion.take(which, axis=0).transpose(0, 2, 1)
        jacobian.add(sides, np.matmul(wrenches.take(sides, axis=0), of_bodies))
    return (
        Contacts(
            tree_a=jacobian.tree_a,
            tree_b=jacobian.tree_b,
            jacobian=jacobian.values,
            signed_distance=np.array(points.distance)[keep],
            stiffness=np.array(points.stiffness)[keep],
            relaxation_time=np.array(points.relaxation_time)[keep],
            friction=np.array(points.friction)[keep],
            delassus_estimate=jacobian.delassus(1 / dynamics.diagonal, layout.first),
        ),
        bodies.astype(np.int32),
    )


def _find_points(plant: MultibodyPlant, context: Context, layout: Layout) -> _Points:
    points = _Points([], [], [], [], [], [], [], [])
    if plant.num_collision_geometries() == 0:
        return points
    query = plant.get_geometry_query_input_port().Eval(context)
    model = plant.get_contact_model()
    representation = plant.get_contact_surface_representation()
    pairs: list[PenetrationAsPointPair] = []
    surfaces: list[ContactSurface] = []
    if model == ContactModel.kPoint:
        pairs = query.ComputePointPairPenetration()
    elif model == ContactModel.kHydroelastic:
        surfaces = query.ComputeContactSurfaces(representation)
    else:
        surfaces, pairs = query.ComputeContactSurfacesWithFallback(representation)
    _add_pairs(points, plant, query, layout, pairs)
    _add_surfaces(points, plant, query, layout, surfaces)
    return points


def _add_pairs(
    points: _Points,
    plant: MultibodyPlant,
    query: QueryObject,
    layout: Layout,
    pairs: list[PenetrationAsPointPair],
) -> None:
    inspector = query.inspector()
    for pair in pairs:
        a = layout.material(plant, inspector, pair.id_A)
        b = layout.material(plant, inspector, pair.id_B)
        if np.isinf(a.stiffness):
            k, weight = b.stiffness, 1.0
        elif np.isinf(b.stiffness):
            k, weight = a.stiffness, 0.0
        else:
            weight = a.stiffness / (a.stiffness + b.stiffness)
            k = weight * b.stiffness
        # The stiffer one gives way less, so the point is nearer to its surface.
        position = weight * pair.p_WCa + (1 - weight) * pair.p_WCb
        points.add(a, b, position, -pair.nhat_BA_W, -pair.depth, k)


def _add_surfaces(
    points: _Points,
    plant: MultibodyPlant,
    query: QueryObject,
    layout: Layout,
    surfaces: list[ContactSurface],
) -> None:
    inspector = query.inspector()
    for surface in surfaces:
        m = layout.material(plant, inspector, surface.id_M())
        n = layout.material(plant, inspector, surface.id_N())
        is_triangle = surface.is_triangle()
        pressure_field = surface.tri_e_MN() if is_triangle else surface.poly_e_MN()
        for face in range(surface.num_faces()):
            area = surface.area(face)
            normal = surface.face_normal(face)  # out of N, into M
            gradients = []
            if surface.HasGradE_M():
                gradients.append(surface.EvaluateGradE_M_W(face) @ normal)
            if surface.HasGradE_N():
                gradients.append(-surface.EvaluateGradE_N_W(face) @ normal)
            if area <= _LEAST_AREA or min(gradients) < _LEAST_GRADIENT:
                continue
            compliance = sum(1 / gradient for gradient in gradients)
            position = surface.centroid(face)
            pressure = (
                pressure_field.Evaluate(face, np.full(3, 1 / 3))
                if is_triangle
                else pressure_field.EvaluateCartesian(face, position)
            )
            points.add(m, n, position, -normal, -pressure * compliance, area / compliance)


def _frames(normal: FloatArray) -> FloatArray:
    """Rows t1, t2, n of each contact [C, 3, 3]; any tangents will do."""
    axis = np.eye(3)[np.argmin(np.abs(normal), axis=1)] if len(normal) else np.empty((0, 3))
    t1 = np.cross(normal, axis)
    t1 /= np.linalg.norm(t1, axis=1, keepdims=True)
    return np.stack((t1, np.cross(normal, t1), normal), axis=1)


def _motion_axes(
    plant: MultibodyPlant, context: Context, layout: Layout, bodies: list[int], n: int
) -> FloatArray:
    """(ω, v at the origin of the world) of bodies for the velocities of their trees [g, n, 6]."""
    axes = np.empty((len(bodies), n, 6))
    origin = np.empty((len(bodies), n, 3))
    world = plant.world_frame()
    for i, index in enumerate(bodies):
        body = plant.get_body(BodyIndex(index))
        origin[i] = plant.EvalBodyPoseInWorld(context, body).translation()
        if layout.is_free[index]:
            axes[i] = _FREE
            continue
        jacobian = plant.CalcJacobianSpatialVelocity(
            context, JacobianWrtVariable.kV, body.body_frame(), np.zeros(3), world, world
        )
        tree = layout.tree_of_body[index]
        axes[i] = jacobian.T[layout.velocities[layout.first[tree] : layout.first[tree + 1]]]
    omega, velocity = axes[..., :3].reshape(-1, 3), axes[..., 3:].reshape(-1, 3)
    return at_origin(omega, velocity, origin.reshape(-1, 3)).reshape(-1, n, 6)


def find_limits(
    plant: MultibodyPlant, context: Context, layout: Layout, dynamics: Dynamics
) -> Contacts:
    """Joint limits that may be reached within two steps, as contacts without friction."""
    dt = plant.time_step()
    place = np.argsort(layout.velocities)
    tree_of = np.repeat(np.arange(len(layout.dofs)), layout.dofs)
    tree, jacobian, distance, weight = [], [], [], []
    for index in layout.limited:
        joint = plant.get_joint(index)
        i = place[joint.velocity_start()]
        q, v = joint.GetOnePosition(context), joint.GetOneVelocity(context)
        reach = _LIMIT_REACH * dt * max(abs(v), abs(dynamics.v_star_without_servos[i]))
        for sign, end in (
            (1.0, joint.position_lower_limits()[0]),
            (-1.0, joint.position_upper_limits()[0]),
        ):
            if not sign * (q - end) <= reach:
                continue
            t = tree_of[i]
            block = np.zeros((3, layout.dofs[t]))
            block[2, i - layout.first[t]] = sign
            tree.append(t)
            jacobian.append(block.ravel())
            distance.append(sign * (q - end))
            weight.append(1 / dynamics.diagonal[i])
    count = len(tree)
    near_rigid = _LIMIT_BETA**2 / (4 * np.pi**2) * np.array(weight)
    return Contacts(
        tree_a=np.array(tree, np.int32),
        tree_b=np.full(count, WORLD),
        jacobian=np.concatenate(jacobian) if jacobian else (),
        signed_distance=distance,
        stiffness=np.full(count, _LIMIT_STIFFNESS),
        relaxation_time=np.full(count, dt),
        friction=np.zeros(count),
        regularization_t=SIGMA * np.array(weight),
        regularization_n=np.maximum(near_rigid, 1 / (dt * _LIMIT_STIFFNESS * 2 * dt)),
        delassus_estimate=weight,
    )
