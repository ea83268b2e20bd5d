"""Contacts and joint limits of a Drake state, as contacts of a problem.

The normal points from geometry A to geometry B, and v_c = J_B v - J_A v at the contact point. A
polygon of a hydroelastic surface with area a, pressure p and pressure gradient g across it is a
contact of stiffness k = a g at the distance φ0 = -p / g [Masterjohn et al. 2022].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from pydrake.geometry import ContactSurface, GeometryId, PenetrationAsPointPair
from pydrake.multibody.plant import ContactModel, MultibodyPlant
from pydrake.multibody.tree import BodyIndex, JacobianWrtVariable
from pydrake.systems.framework import Context

from sap_islands.arrays import FloatArray, IntArray
from sap_islands.drake.dynamics import Dynamics
from sap_islands.drake.layout import BODY, FRICTION, RELAXATION_TIME, STIFFNESS, Layout
from sap_islands.jacobian import IndexArray, JacobianPlan, at_origin, contact_wrenches
from sap_islands.problem import WORLD, Contacts

# What Drake's discrete solver takes, so that its answers can be compared.
SIGMA = 1e-3
_LIMIT_STIFFNESS, _LIMIT_BETA, _LIMIT_REACH = 1e12, 0.1, 2.0
_LEAST_AREA, _LEAST_GRADIENT = 1e-14, 1e-14
_MOST_ALONG = 0.6  # of a normal along x, for it to give the tangents
_FREE = np.eye(6)  # a body whose velocities are (ω, v of its origin)


_Number = Callable[[list[GeometryId]], IndexArray]  # of geometries in the layout


class _Points(NamedTuple):
    """C contact points, of pairs of geometries numbered as in the layout.

    Attributes:
        geometries: [C, 2] A and B.
        position: [C, 3] in world axes [m].
        normal: [C, 3] from A to B.
        distance: [C] φ0 [m].
        stiffness: [C] k [N/m].
    """

    geometries: IndexArray
    position: FloatArray
    normal: FloatArray
    distance: FloatArray
    stiffness: FloatArray

    def pick(self, which: IndexArray) -> _Points:
        """Some of them."""
        return _Points(
            self.geometries[which],
            self.position[which],
            self.normal[which],
            self.distance[which],
            self.stiffness[which],
        )


def find_contacts(
    plant: MultibodyPlant, context: Context, layout: Layout, dynamics: Dynamics
) -> tuple[Contacts, IntArray]:
    """Contacts of the state, and the two bodies of each [C, 2]."""
    points = _find_points(plant, context, layout)
    material = layout.materials[points.geometries]
    bodies = material[..., BODY].astype(np.int64)
    trees = layout.tree_of_body[bodies]
    keep = ((trees[:, 0] & trees[:, 1]) >= 0).nonzero()[0]  # both are -1 where neither moves
    if len(keep) < len(trees):
        points = points.pick(keep)
        material, bodies, trees = material[keep], bodies[keep], trees[keep]
    friction = material[..., FRICTION]
    total = friction.sum(axis=1)
    wrenches = contact_wrenches(points.position, _frames(points.normal))
    plan = JacobianPlan(layout.sizes, layout.distinct_sizes, trees)
    blocks = []
    for n, sides, _ in plan.groups:
        moving, which = np.unique(bodies.ravel()[sides], return_inverse=True)
        motion = _motion_axes(plant, context, layout, moving.tolist(), n)
        of_bodies = motion.take(which, axis=0).transpose(0, 2, 1)
        blocks.append(np.matmul(wrenches.take(sides, axis=0), of_bodies))
    jacobian = plan.assemble(blocks)
    return (
        Contacts(
            tree_a=plan.tree_a,
            tree_b=plan.tree_b,
            jacobian=jacobian,
            signed_distance=points.distance,
            stiffness=points.stiffness,
            relaxation_time=material[..., RELAXATION_TIME].sum(axis=1),
            friction=2 * friction.prod(axis=1) / np.where(total > 0, total, 1.0),
            delassus_estimate=plan.delassus(jacobian, 1 / dynamics.diagonal, layout.first),
        ),
        bodies.astype(np.int32),
    )


def _find_points(plant: MultibodyPlant, context: Context, layout: Layout) -> _Points:
    found: list[_Points] = []
    pairs: list[PenetrationAsPointPair] = []
    surfaces: list[ContactSurface] = []
    if plant.num_collision_geometries():
        query = plant.get_geometry_query_input_port().Eval(context)
        model = plant.get_contact_model()
        representation = plant.get_contact_surface_representation()
        if model == ContactModel.kPoint:
            pairs = query.ComputePointPairPenetration()
        elif model == ContactModel.kHydroelastic:
            surfaces = query.ComputeContactSurfaces(representation)
        else:
            surfaces, pairs = query.ComputeContactSurfacesWithFallback(representation)
        inspector = query.inspector()

        def number(geometries: list[GeometryId]) -> IndexArray:
            return layout.number_geometries(plant, inspector, geometries)

        if pairs:
            found.append(_points_of_pairs(layout, number, pairs))
        if surfaces:
            found.append(_points_of_surfaces(number, surfaces))
    if not found:
        return _Points(
            np.empty((0, 2), np.int64), np.empty((0, 3)), np.empty((0, 3)), np.empty(0), np.empty(0)
        )
    return found[0] if len(found) == 1 else _Points(*map(np.concatenate, zip(*found, strict=True)))


def _points_of_pairs(
    layout: Layout, number: _Number, pairs: list[PenetrationAsPointPair]
) -> _Points:
    geometries = number([pair.id_A for pair in pairs] + [pair.id_B for pair in pairs])
    geometries = geometries.reshape(2, -1).T
    a, b = layout.materials[geometries][..., STIFFNESS].T
    # The stiffer one gives way less, so the point is nearer to its surface.
    both = np.isfinite(a) & np.isfinite(b)
    weight = np.where(both, a / np.where(both, a + b, 1.0), np.isinf(a))
    depth = np.array([pair.depth for pair in pairs])
    normal = _rows([pair.nhat_BA_W for pair in pairs])
    at_b = _rows([pair.p_WCb for pair in pairs])  # that of A is as deep in B
    return _Points(
        geometries,
        at_b - (weight * depth)[:, None] * normal,
        -normal,
        -depth,
        np.where(both, weight * b, np.minimum(a, b)),
    )


def _points_of_surfaces(number: _Number, surfaces: list[ContactSurface]) -> _Points:
    counts = [surface.num_faces() for surface in surfaces]
    faces = [(surface, face) for surface in surfaces for face in range(surface.num_faces())]
    area = np.array([surface.area(face) for surface, face in faces])
    normal = _rows([surface.face_normal(face) for surface, face in faces])  # out of N, into M
    position = _rows([surface.centroid(face) for surface, face in faces])
    compliance = np.zeros(len(area))
    usable = area > _LEAST_AREA
    for sign, has_gradient, gradient_of in (
        (1.0, ContactSurface.HasGradE_M, ContactSurface.EvaluateGradE_M_W),
        (-1.0, ContactSurface.HasGradE_N, ContactSurface.EvaluateGradE_N_W),
    ):
        has = np.repeat([has_gradient(surface) for surface in surfaces], counts).nonzero()[0]
        if not len(has):
            continue
        gradient = _rows([gradient_of(*faces[i]) for i in has.tolist()])
        across = sign * (gradient * normal[has]).sum(axis=1)
        usable[has] &= across >= _LEAST_GRADIENT
        compliance[has] += 1 / np.maximum(across, _LEAST_GRADIENT)
    pairs = [surface.id_M() for surface in surfaces] + [surface.id_N() for surface in surfaces]
    which = usable.nonzero()[0]
    return _Points(
        np.repeat(number(pairs).reshape(2, -1).T, counts, axis=0)[which],
        position[which],
        -normal[which],
        -(_pressures(surfaces, position) * compliance)[which],
        area[which] / compliance[which],
    )


def _pressures(surfaces: list[ContactSurface], position: FloatArray) -> FloatArray:
    """Pressure at the centroid of each face, of all surfaces one after the other [Pa]."""
    pressure: list[float] = []
    center = np.full(3, 1 / 3)
    for surface in surfaces:
        if surface.is_triangle():
            triangles = surface.tri_e_MN()
            pressure += [triangles.Evaluate(face, center) for face in range(surface.num_faces())]
        else:
            polygons, first = surface.poly_e_MN(), len(pressure)
            pressure += [
                polygons.EvaluateCartesian(face, position[first + face])
                for face in range(surface.num_faces())
            ]
    return np.array(pressure)


def _rows(vectors: list[FloatArray]) -> FloatArray:
    """Vectors [3] as an array [n, 3]; faster than NumPy's own way."""
    return np.concatenate(vectors).reshape(-1, 3)


def _frames(normal: FloatArray) -> FloatArray:
    """Rows t1, t2, n of each contact [C, 3, 3]; any tangents will do.

    The tangents for a normal with |n_x| <= 0.6 come from the axis x, otherwise from y.
    """
    x, y, z = normal.T
    frame = np.empty((len(normal), 3, 3))
    along_x = np.abs(x) <= _MOST_ALONG
    t1 = frame[:, 0]
    # n × e_x or n × e_y
    t1[:, 0] = np.where(along_x, 0.0, -z)
    t1[:, 1] = np.where(along_x, z, 0.0)
    t1[:, 2] = np.where(along_x, -y, x)
    t1 /= np.sqrt(np.square(t1).sum(axis=1, keepdims=True))
    t1_x, t1_y, t1_z = t1.T
    frame[:, 1, 0] = y * t1_z - z * t1_y
    frame[:, 1, 1] = z * t1_x - x * t1_z
    frame[:, 1, 2] = x * t1_y - y * t1_x
    frame[:, 2] = normal
    return frame


def _motion_axes(
    plant: MultibodyPlant, context: Context, layout: Layout, bodies: list[int], n: int
) -> FloatArray:
    """(ω, v at the origin of the world) of bodies for the velocities of their trees [g, n, 6]."""
    axes = np.empty((len(bodies), n, 6))
    origin = np.empty((len(bodies), n, 3))
    place = layout.position_of_free[bodies]
    free = (place >= 0).nonzero()[0]
    if len(free):
        axes[free] = _FREE
        position = plant.GetPositions(context)
        origin[free] = position[place[free][:, None] + np.arange(3)][:, None]
    world = plant.world_frame()
    for i in (place < 0).nonzero()[0].tolist():
        body = plant.get_body(BodyIndex(bodies[i]))
        origin[i] = plant.EvalBodyPoseInWorld(context, body).translation()
        jacobian = plant.CalcJacobianSpatialVelocity(
            context, JacobianWrtVariable.kV, body.body_frame(), np.zeros(3), world, world
        )
        tree = layout.tree_of_body[bodies[i]]
        axes[i] = jacobian.T[layout.velocities[layout.first[tree] : layout.first[tree + 1]]]
    omega, velocity = axes[..., :3].reshape(-1, 3), axes[..., 3:].reshape(-1, 3)
    return at_origin(omega, velocity, origin.reshape(-1, 3))[:-1].reshape(-1, n, 6)


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
