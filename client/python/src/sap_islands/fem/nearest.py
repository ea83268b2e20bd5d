"""Distances of points from the surface of a body, for contacts between bodies."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sap_islands.arrays import FloatArray, IndexArray


class Nearest(NamedTuple):
    """Where points are nearest to a surface.

    Attributes:
        face: [C] of the nearest point.
        weights: [C, 3] of the corners of the face at that point.
        signed_distance: [C] negative behind the surface [m].
        normal: [C, 3] from the surface to the point, or its opposite behind it.
    """

    face: IndexArray
    weights: FloatArray
    signed_distance: FloatArray
    normal: FloatArray


def nearest_on_surface(points: FloatArray, x: FloatArray, faces: IndexArray) -> Nearest:
    """The nearest point of triangles for each of some points, by trying all.

    A point is behind the surface if it is behind the face of its nearest point. Where several faces
    are equally near, as at edges, that counts which the point is farthest before.

    Args:
        points: [C, 3] in world axes [m].
        x: [N, 3] positions of the nodes of the surface [m].
        faces: [F, 3] triangles, oriented outwards.
    """
    corners = x[faces]
    weights = _nearest_weights(points, corners)
    offset = points[:, None] - np.einsum("cfk,fki->cfi", weights, corners)
    distance = np.linalg.norm(offset, axis=2)
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    height = np.einsum("cfi,fi->cf", points[:, None] - corners[None, :, 0], normals)
    least = distance.min(axis=1, keepdims=True)
    tied = distance <= least * (1 + 1e-9) + 1e-12
    face = np.argmax(np.where(tied, height, -np.inf), axis=1)
    at = np.arange(len(points))
    sign = np.where(height[at, face] < 0, -1.0, 1.0)
    signed = sign * least[:, 0]
    # A point on the surface has the normal of the face.
    away = distance[at, face] > 1e-9
    normal = normals[face]
    normal[away] = (offset[at, face] / np.where(away, signed, 1.0)[:, None])[away]
    return Nearest(face, weights[at, face], signed, normal)


def _nearest_weights(points: FloatArray, corners: FloatArray) -> FloatArray:
    """[C, F, 3] weights of the nearest point of each triangle [Ericson 2005, 5.1.5].

    Within the triangle by projection on its plane, else on the nearest of its edges.
    """
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    edges = (b - a, c - b, a - c)
    area = np.cross(edges[0], -edges[2])
    square = (area**2).sum(axis=1)
    to = [points[:, None] - corner for corner in (a, b, c)]
    # The weight of a corner is the area that the point spans with the opposite edge.
    spans = [np.einsum("cfi,fi->cf", np.cross(edges[k], to[k]), area) for k in (1, 2, 0)]
    inner = np.stack(spans, axis=2) / square[:, None]
    weights: FloatArray = inner
    nearest = np.where((inner >= 0).all(axis=2), 0.0, np.inf)
    for k in range(3):
        along = np.einsum("cfi,fi->cf", to[k], edges[k]) / (edges[k] ** 2).sum(axis=1)
        along = np.clip(along, 0, 1)
        gap = ((to[k] - along[..., None] * edges[k]) ** 2).sum(axis=2)
        closer = gap < nearest
        on_edge = np.zeros_like(inner)
        on_edge[..., k], on_edge[..., (k + 1) % 3] = 1 - along, along
        weights = np.where(closer[..., None], on_edge, weights)
        nearest = np.where(closer, gap, nearest)
    return weights
