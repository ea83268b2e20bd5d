"""Reads the contact points of a Drake state from its geometry engine into arrays.

The normal points from geometry A to geometry B. A face of a hydroelastic surface with area a,
pressure p and pressure gradient g along the normal is a contact of stiffness k = a g at the
distance φ0 = -p / g [Masterjohn et al. 2022].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from pydrake.geometry import ContactSurface, GeometryId, PenetrationAsPointPair
from pydrake.multibody.plant import ContactModel, MultibodyPlant
from pydrake.systems.framework import Context

from sap_islands.arrays import FloatArray, IntArray
from sap_islands.drake.layout import (
    BODY,
    DISSIPATION,
    FRICTION,
    MODULUS,
    RELAXATION_TIME,
    STIFFNESS,
    Layout,
)
from sap_islands.numba_kernels import FlagArray, IndexArray, compiled

_MIN_AREA, _MIN_GRADIENT = 1e-14, 1e-14  # m², Pa/m; smaller faces and gradients are skipped
_CENTER = np.full(3, 1 / 3)  # barycentric coordinates of the center of a triangle
_Number = Callable[[list[GeometryId]], IndexArray]  # Layout.number_geometries of one plant


class PointColumns(NamedTuple):
    """Columns of a contact point; position and normal have three each, in world axes."""

    position: int = 0
    normal: int = 3
    signed_distance: int = 6
    stiffness: int = 7
    relaxation_time: int = 8
    friction: int = 9
    dissipation: int = 10
    width: int = 11


POINT = PointColumns()


class Points(NamedTuple):
    """C contact points.

    Attributes:
        rows: [C, 11] with the columns of `PointColumns`.
        bodies: [C, 2] indices of bodies A and B in the plant.
    """

    rows: FloatArray
    bodies: IntArray


def find_points(plant: MultibodyPlant, context: Context, layout: Layout) -> Points:
    """The contact points between geometries of which at least one can move."""
    pairs: list[PenetrationAsPointPair] = []
    surfaces: list[ContactSurface] = []
    if not plant.num_collision_geometries():
        return Points(np.empty((0, POINT.width)), np.empty((0, 2), np.int32))
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

    faces = [surface.num_faces() for surface in surfaces]
    most = len(pairs) + sum(faces)
    points = Points(np.empty((most, POINT.width)), np.empty((most, 2), np.int32))
    count = 0
    if pairs:
        read = _read_pairs(number, pairs)
        count = _add_pairs(layout.materials, layout.tree_of_body, *points, *read)
    if surfaces:
        read = _read_surfaces(number, surfaces, faces)
        count = _add_faces(count, layout.materials, layout.tree_of_body, *points, *read)
    return Points(points.rows[:count], points.bodies[:count])


def _read_pairs(number: _Number, pairs: list[PenetrationAsPointPair]) -> tuple[Any, ...]:
    """Arguments of `_add_pairs`: geometries, depths, normals, and points on B."""
    return (
        number([pair.id_A for pair in pairs] + [pair.id_B for pair in pairs]),
        np.array([pair.depth for pair in pairs]),
        _join([pair.nhat_BA_W for pair in pairs]),
        _join([pair.p_WCb for pair in pairs]),  # that on A follows from depth and normal
    )


def _read_surfaces(
    number: _Number, surfaces: list[ContactSurface], faces: list[int]
) -> tuple[Any, ...]:
    """Arguments of `_add_faces`: geometries, faces per surface, and the quantities of each face.

    Normals point out of N, into M. They are read only where not both geometries have a pressure
    gradient; otherwise `_add_faces` computes them from the gradients.
    """
    area: list[float] = []
    pressure: list[float] = []
    normal: list[FloatArray] = []
    position: list[FloatArray] = []
    gradient_m: list[FloatArray] = []
    gradient_n: list[FloatArray] = []
    has_gradient = np.empty((len(surfaces), 2), np.uint8)
    for i, surface in enumerate(surfaces):
        every = range(faces[i])
        is_triangle = surface.is_triangle()
        mesh = surface.tri_mesh_W() if is_triangle else surface.poly_mesh_W()
        centers = list(map(mesh.element_centroid, every))
        area.extend(map(mesh.area, every))
        position.extend(centers)
        if is_triangle:
            evaluate = surface.tri_e_MN().Evaluate
            pressure.extend([evaluate(face, _CENTER) for face in every])
        else:
            pressure.extend(map(surface.poly_e_MN().EvaluateCartesian, every, centers))
        has_m, has_n = has_gradient[i] = surface.HasGradE_M(), surface.HasGradE_N()
        if has_m:
            gradient_m.extend(map(surface.EvaluateGradE_M_W, every))
        if has_n:
            gradient_n.extend(map(surface.EvaluateGradE_N_W, every))
        if not (has_m and has_n):
            normal.extend(map(mesh.face_normal, every))
    identifiers = [surface.id_M() for surface in surfaces] + [
        surface.id_N() for surface in surfaces
    ]
    return (
        number(identifiers),
        np.array(faces),
        has_gradient,
        np.array(area),
        np.array(pressure),
        _join(position),
        _join(normal),
        _join(gradient_m),
        _join(gradient_n),
    )


def _join(vectors: list[Any]) -> FloatArray:
    """Concatenates vectors [3], in less than half the time of np.concatenate."""
    return np.frombuffer(bytearray().join(vectors))


@compiled
def _add_pairs(
    materials: FloatArray,
    tree_of_body: IntArray,
    rows: FloatArray,
    bodies: IntArray,
    geometries: IndexArray,
    depth: FloatArray,
    normal: FloatArray,
    at_b: FloatArray,
) -> int:
    """Writes the contact points of penetrating pairs; returns their number."""
    count, pairs = 0, len(depth)
    for i in range(pairs):
        a, b = geometries[i], geometries[pairs + i]
        k_a, k_b = materials[a, STIFFNESS], materials[b, STIFFNESS]
        # The stiffer geometry deforms less, so that the point is nearer to its surface.
        if math.isinf(k_a) or math.isinf(k_b):
            weight, stiffness = 1.0 if math.isinf(k_a) else 0.0, min(k_a, k_b)
        else:
            weight = k_a / (k_a + k_b) if k_a + k_b > 0.0 else 0.0
            stiffness = weight * k_b
        row = rows[count]
        for k in range(3):
            row[k] = at_b[3 * i + k] - weight * depth[i] * normal[3 * i + k]
            row[3 + k] = -normal[3 * i + k]
        row[POINT.signed_distance], row[POINT.stiffness] = -depth[i], stiffness
        row[POINT.dissipation] = _dissipation(materials[a], materials[b], k_a, k_b)
        count += _finish_point(materials, tree_of_body, a, b, row, bodies[count])
    return count


@compiled
def _add_faces(
    count: int,
    materials: FloatArray,
    tree_of_body: IntArray,
    rows: FloatArray,
    bodies: IntArray,
    geometries: IndexArray,
    faces: IndexArray,
    has_gradient: FlagArray,
    area: FloatArray,
    pressure: FloatArray,
    position: FloatArray,
    normal: FloatArray,
    gradient_m: FloatArray,
    gradient_n: FloatArray,
) -> int:
    """Appends the contact points of faces to the first `count`; returns their total number."""
    face, at, at_m, at_n = 0, 0, 0, 0
    for surface in range(len(faces)):
        a, b = geometries[surface], geometries[len(faces) + surface]
        has_m, has_n = has_gradient[surface]
        modulus_m = materials[a, MODULUS] if has_m else math.inf
        modulus_n = materials[b, MODULUS] if has_n else math.inf
        dissipation = _dissipation(materials[a], materials[b], modulus_m, modulus_n)
        for _ in range(faces[surface]):
            g_m, g_n = gradient_m[at_m : at_m + 3], gradient_n[at_n : at_n + 3]
            if has_m and has_n:  # the face is where both pressures are equal
                n = g_m - g_n
                n /= max(math.sqrt(_dot(n, n)), _MIN_GRADIENT)
            else:
                n = normal[at : at + 3]
                at += 3
            usable, compliance = area[face] > _MIN_AREA, 0.0
            if has_m:
                across = _dot(g_m, n)
                usable &= across >= _MIN_GRADIENT
                compliance += 1.0 / max(across, _MIN_GRADIENT)
                at_m += 3
            if has_n:
                across = -_dot(g_n, n)
                usable &= across >= _MIN_GRADIENT
                compliance += 1.0 / max(across, _MIN_GRADIENT)
                at_n += 3
            if usable:
                row = rows[count]
                row[:3], row[3:6] = position[3 * face : 3 * face + 3], -n
                row[POINT.signed_distance] = -pressure[face] * compliance
                row[POINT.stiffness] = area[face] / compliance
                row[POINT.dissipation] = dissipation
                count += _finish_point(materials, tree_of_body, a, b, row, bodies[count])
            face += 1
    return count


@compiled
def _dissipation(a: FloatArray, b: FloatArray, k_a: float, k_b: float) -> float:
    """The d of two materials, of which the more compliant one counts more, as in Drake."""
    if math.isinf(k_a) or math.isinf(k_b):
        return float(b[DISSIPATION] if math.isinf(k_a) else a[DISSIPATION])
    if k_a + k_b == 0.0:
        return 0.0
    return float((k_b * a[DISSIPATION] + k_a * b[DISSIPATION]) / (k_a + k_b))


@compiled
def _dot(a: FloatArray, b: FloatArray) -> float:
    return float(a[0] * b[0] + a[1] * b[1] + a[2] * b[2])


@compiled
def _finish_point(
    materials: FloatArray,
    tree_of_body: IntArray,
    a: int,
    b: int,
    row: FloatArray,
    bodies: IntArray,
) -> int:
    """Writes bodies, friction and relaxation time of a point; returns 0 if neither body can move.

    Otherwise it returns 1. Friction is the harmonic mean, as in Drake.
    """
    bodies[0], bodies[1] = int(materials[a, BODY]), int(materials[b, BODY])
    friction_a, friction_b = materials[a, FRICTION], materials[b, FRICTION]
    total = friction_a + friction_b
    row[POINT.friction] = 2.0 * friction_a * friction_b / total if total > 0.0 else 0.0
    row[POINT.relaxation_time] = materials[a, RELAXATION_TIME] + materials[b, RELAXATION_TIME]
    return 1 if tree_of_body[bodies[0]] >= 0 or tree_of_body[bodies[1]] >= 0 else 0
