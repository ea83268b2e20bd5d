"""Meshes: grids, those of files, their surfaces and hinges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sap_islands.arrays import FloatArray, IndexArray
from sap_islands.errors import InvalidArgument

# Faces of a tetrahedron, which look outwards.
_FACES = np.array([[1, 2, 3], [0, 3, 2], [0, 1, 3], [0, 2, 1]])


class Mesh(NamedTuple):
    """Nodes and elements.

    Attributes:
        nodes: [N, 3] positions [m].
        elements: [E, k] nodes of each: 4 of a tetrahedron, 3 of a triangle, 2 of a segment.
    """

    nodes: FloatArray
    elements: IndexArray


def grid(cells: Sequence[int], size: Sequence[float]) -> Mesh:
    """A box of cells with one corner at the origin, six tetrahedra in each cell."""
    shape = [n + 1 for n in cells]
    index = np.arange(np.prod(shape)).reshape(shape)
    axes = [np.linspace(0, length, n) for length, n in zip(size, shape, strict=True)]
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    tetrahedra = []
    for order in ((0, 1, 2), (1, 2, 0), (2, 0, 1), (0, 2, 1), (2, 1, 0), (1, 0, 2)):
        corner = [0, 0, 0]
        path = [tuple(corner)]
        for axis in order:
            corner[axis] = 1
            path.append(tuple(corner))
        if order in ((0, 2, 1), (2, 1, 0), (1, 0, 2)):
            path[2], path[3] = path[3], path[2]
        parts = [index[tuple(slice(o, o + n) for o, n in zip(p, cells, strict=True))] for p in path]
        tetrahedra.append(np.stack([part.ravel() for part in parts], axis=1))
    return Mesh(nodes, np.concatenate(tetrahedra))


def ball(cells: int, radius: float) -> Mesh:
    """A ball about the origin: a grid of cells³ whose shells of cubes become spheres."""
    nodes, tetrahedra = grid((cells,) * 3, (2.0,) * 3)
    nodes = nodes - 1.0
    distance = np.linalg.norm(nodes, axis=1)
    cube = abs(nodes).max(axis=1)
    scale = np.divide(cube, distance, out=np.zeros_like(cube), where=distance > 0)
    return Mesh(radius * scale[:, None] * nodes, tetrahedra)


def sheet(cells: Sequence[int], size: Sequence[float]) -> Mesh:
    """A rectangle of cells in the plane z = 0 with one corner at the origin.

    Each cell has two triangles, and its diagonal turns from cell to cell.
    """
    across, along = cells
    index = np.arange((across + 1) * (along + 1)).reshape(across + 1, along + 1)
    x, y = np.linspace(0, size[0], across + 1), np.linspace(0, size[1], along + 1)
    flat = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)
    nodes = np.column_stack((flat, np.zeros(len(flat))))
    a, b = index[:-1, :-1].ravel(), index[1:, :-1].ravel()
    c, d = index[1:, 1:].ravel(), index[:-1, 1:].ravel()
    turned = (np.indices((across, along)).sum(axis=0).ravel() % 2)[:, None]
    first = np.where(turned, np.stack((a, b, d), 1), np.stack((a, b, c), 1))
    second = np.where(turned, np.stack((b, c, d), 1), np.stack((a, c, d), 1))
    return Mesh(nodes, np.concatenate((first, second)))


def read_mesh(source: Any, kind: str = "tetra") -> Mesh:
    """The elements of one kind of a mesh, and the nodes that they use.

    Args:
        source: A `meshio.Mesh`, or the path of a file that meshio reads (extra "fem").
        kind: "tetra", "triangle" or "line".

    Raises:
        InvalidArgument: The file cannot be read, or has no such elements.
    """
    mesh = source
    if not hasattr(mesh, "cells_dict"):
        import meshio

        try:
            mesh = meshio.read(source)
        except (OSError, ValueError, meshio.ReadError) as error:
            raise InvalidArgument(f"{source}: {error}", "source") from None
    elements = mesh.cells_dict.get(kind)
    if elements is None or not len(elements):
        found = ", ".join(sorted(mesh.cells_dict)) or "none"
        raise InvalidArgument(f"the mesh has no elements {kind!r}; it has {found}", "kind")
    used, renumbered = np.unique(elements, return_inverse=True)
    points = np.asarray(mesh.points, np.float64)[used]
    nodes = np.zeros((len(used), 3))
    nodes[:, : points.shape[1]] = points  # of a mesh in the plane, z = 0
    return Mesh(nodes, np.asarray(renumbered, np.int64).reshape(elements.shape))


def surface(tetrahedra: IndexArray) -> IndexArray:
    """[F, 3] the faces that belong to one tetrahedron, oriented outwards."""
    faces = tetrahedra[:, _FACES].reshape(-1, 3)
    _, first, count = np.unique(
        np.sort(faces, axis=1), axis=0, return_index=True, return_counts=True
    )
    outer: IndexArray = faces[first[count == 1]]
    return outer


def hinges(triangles: IndexArray) -> IndexArray:
    """[H, 4] edges between two triangles: both ends, the opposite corners on its left and right.

    Raises:
        InvalidArgument: An edge has more than two triangles, or two that are not oriented alike.
    """
    edges = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    opposite = np.concatenate([triangles[:, 2], triangles[:, 0], triangles[:, 1]])
    order = np.lexsort((edges[:, 0], edges.max(axis=1), edges.min(axis=1)))
    edges, opposite = edges[order], opposite[order]
    unordered = np.sort(edges, axis=1)
    same = (unordered[1:] == unordered[:-1]).all(axis=1)
    at = np.flatnonzero(same)
    bad = at[(edges[at] == edges[at + 1]).any(axis=1)]
    if len(bad):
        a, b = edges[bad[0]]
        message = f"triangles at the edge ({a}, {b}) are not oriented alike, or more than two"
        raise InvalidArgument(message, "triangles")
    return np.column_stack((edges[at], opposite[at], opposite[at + 1]))
