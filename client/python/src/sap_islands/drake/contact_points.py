"""Reads the contact points of a Drake state from its geometry engine into arrays.

`client/c/drake/contact_points.h` has what becomes of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from pydrake.geometry import ContactSurface, GeometryId, PenetrationAsPointPair
from pydrake.multibody.plant import ContactModel, MultibodyPlant
from pydrake.systems.framework import Context

from sap_islands._library.c_library import pointer_to
from sap_islands.arrays import FloatArray, IndexArray, IntArray
from sap_islands.drake.layout import Layout
from sap_islands.drake.native_calls import columns_of, load_native_calls, struct_of

_CENTER = np.full(3, 1 / 3)  # barycentric coordinates of the center of a triangle
_Number = Callable[[list[GeometryId]], IndexArray]  # Layout.number_geometries of one plant


class Points(NamedTuple):
    """C contact points.

    Attributes:
        rows: [C, 11] `sap_drake_point`: position and normal in world axes, contact parameters.
        bodies: [C, 2] indices of bodies A and B in the plant.
    """

    rows: FloatArray
    bodies: IntArray


def find_points(plant: MultibodyPlant, context: Context, layout: Layout) -> Points:
    """The contact points between geometries of which at least one can move."""
    pairs: list[PenetrationAsPointPair] = []
    surfaces: list[ContactSurface] = []
    if not plant.num_collision_geometries():
        return _empty_points(0)
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
    points, count = _empty_points(len(pairs) + sum(faces)), 0
    if pairs:
        read = _read_pairs(number, pairs)
        found = struct_of("pairs", len(pairs), *read)
        count = _add(load_native_calls().add_pairs, layout, found, points)
    if surfaces:
        read = _read_surfaces(number, surfaces, faces)
        rest = Points(points.rows[count:], points.bodies[count:])
        found = struct_of("surfaces", len(surfaces), *read)
        count += _add(load_native_calls().add_faces, layout, found, rest)
    return Points(points.rows[:count], points.bodies[:count])


def _empty_points(count: int) -> Points:
    return Points(np.empty((count, columns_of("sap_drake_point"))), np.empty((count, 2), np.int32))


def _add(loop: Any, layout: Layout, found: Any, points: Points) -> int:
    """Writes contact points to the beginning of `points`; returns their number."""
    materials = pointer_to(layout.materials)
    written: int = loop(layout.as_struct, materials, found, struct_of("points", *points))
    return written


def _read_pairs(number: _Number, pairs: list[PenetrationAsPointPair]) -> tuple[Any, ...]:
    """Members of `sap_drake_pairs`: geometries, depths, normals, and points on B."""
    return (
        number([pair.id_A for pair in pairs] + [pair.id_B for pair in pairs]),
        np.array([pair.depth for pair in pairs]),
        _join([pair.nhat_BA_W for pair in pairs]),
        _join([pair.p_WCb for pair in pairs]),  # that on A follows from depth and normal
    )


def _read_surfaces(
    number: _Number, surfaces: list[ContactSurface], faces: list[int]
) -> tuple[Any, ...]:
    """Members of `sap_drake_surfaces`: geometries, faces of each, and quantities of each face.

    Normals point out of N, into M. They are read only where not both geometries have a pressure
    gradient; otherwise `add_faces` computes them from the gradients.
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
