"""Triangles of the shapes of a trajectory, from trimesh (extra "view")."""

from __future__ import annotations

import numpy as np
import trimesh

from sap_islands.tools.trajectory import Floats, Ints, Shape


def mesh_of(shape: Shape) -> tuple[Floats, Ints]:
    """Vertices and faces of a shape; boxes and ellipsoids have half size 1 and are scaled later."""
    if shape.kind in ("mesh", "deformable"):
        return shape.vertices, shape.faces
    if shape.kind == "box":
        mesh = trimesh.creation.box((2, 2, 2))
    elif shape.kind in ("sphere", "ellipsoid"):
        mesh = trimesh.creation.icosphere(subdivisions=2)
    elif shape.kind == "capsule":
        mesh = trimesh.creation.capsule(
            height=2 * shape.size[1], radius=shape.size[0], count=(12, 12)
        )
    elif shape.kind == "cylinder":
        mesh = trimesh.creation.cylinder(height=2 * shape.size[1], radius=shape.size[0])
    else:
        half = [length if length > 0 else 20.0 for length in shape.size[:2].tolist()]
        mesh = trimesh.creation.box((2 * half[0], 2 * half[1], 0.002))
        mesh.apply_translation((0, 0, -0.001))
    return np.asarray(mesh.vertices, np.float32), np.asarray(mesh.faces, np.int32)
