"""Draws one step of a trajectory: triangles from far to near, shaded by their direction."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np

from sap_islands.arrays import FloatArray
from sap_islands.tools.shape_meshes import mesh_of
from sap_islands.tools.trajectory import Floats, Frame, Ints, Shape, Trajectory

mpl.use("agg")
from matplotlib import pyplot  # after the choice of the backend
from matplotlib.collections import LineCollection, PolyCollection

_AZIMUTH, _ELEVATION = -32.0, 24.0  # of the eye [degrees]
_LIGHT = np.array([0.3, -0.5, 0.8]) / np.linalg.norm([0.3, -0.5, 0.8])
_WIDTH_PX = 640
_LONGEST = 0.03  # edge of a triangle; longer ones are cut, so that sorting by depth is right [m]
_FLOOR_COLOR, _WALL_COLOR = "#f1f1ee", "#a8b8c8"


def draw(trajectory: Trajectory, index: int, path: Path) -> None:
    """Draws a frame to a file; of transparent boxes the edges, of the ground nothing."""
    frame = trajectory.frames[index]
    shapes, walls = _placed(trajectory, frame), _edges(trajectory, frame)
    azimuth, elevation = np.radians((_AZIMUTH, _ELEVATION))
    to_eye = np.array(
        [
            np.cos(azimuth) * np.cos(elevation),
            np.sin(azimuth) * np.cos(elevation),
            np.sin(elevation),
        ]
    )
    right = np.array([-np.sin(azimuth), np.cos(azimuth), 0.0])
    screen = np.stack((right, np.cross(to_eye, right)), axis=1)
    corners = np.concatenate([triangles for triangles, _, _ in shapes])
    base = np.concatenate([np.tile(color, (len(t), 1)) for t, color, _ in shapes])
    lined = np.concatenate([np.full(len(t), soft) for t, _, soft in shapes])
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
    normals *= np.where(normals @ to_eye < 0, -1.0, 1.0)[:, None]
    shade = 0.45 + 0.55 * np.clip(normals @ _LIGHT, 0, 1)
    order = np.argsort((corners @ to_eye).mean(axis=1))
    color = np.clip(base * shade[:, None], 0, 1)
    flat = corners @ screen
    low, high = flat.min(axis=(0, 1)), flat.max(axis=(0, 1))
    span = (high - low) * 1.1
    figure = pyplot.figure(figsize=(_WIDTH_PX / 100, _WIDTH_PX / 100 * span[1] / span[0]), dpi=100)
    figure.set_facecolor(_FLOOR_COLOR)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.axis("off")
    axes.add_collection(
        LineCollection(walls @ screen, colors=_WALL_COLOR, linewidths=0.8, zorder=0)
    )
    # Lines of the color of the face close the gaps between triangles.
    edges = np.where(lined[:, None], 0.75 * color, color)
    axes.add_collection(
        PolyCollection(
            flat[order], facecolors=color[order], edgecolors=edges[order], linewidths=0.4
        )
    )
    middle = 0.5 * (low + high)
    axes.set(
        xlim=(middle[0] - span[0] / 2, middle[0] + span[0] / 2),
        ylim=(middle[1] - span[1] / 2, middle[1] + span[1] / 2),
    )
    figure.savefig(path)
    pyplot.close(figure)


def _placed(trajectory: Trajectory, frame: Frame) -> list[tuple[FloatArray, Floats, bool]]:
    """Triangles [F, 3, 3] in world axes, color and whether it deforms, of each shape to draw."""
    placed = []
    first = 0
    for number, shape in enumerate(trajectory.shapes):
        if shape.kind == "deformable":
            vertices = frame.deformed[first : first + len(shape.vertices)].astype(np.float64)
            first += len(shape.vertices)
            placed.append((vertices[shape.faces], shape.color[:3], True))
        elif shape.kind != "plane" and shape.color[3] >= 0.5:
            vertices, faces = _scaled(shape)
            world = vertices @ _matrix(frame.rotation[number]).T + frame.position[number]
            placed.append((_cut(world[faces]), shape.color[:3], False))
    return placed


def _edges(trajectory: Trajectory, frame: Frame) -> FloatArray:
    """Ends [S, 2, 3] of the edges of the transparent boxes."""
    corner = np.stack(np.meshgrid(*[[-1.0, 1.0]] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    first, second = np.nonzero(np.triu(abs(corner[:, None] - corner).sum(axis=2) == 2))
    edges = [np.empty((0, 2, 3))]
    for number, shape in enumerate(trajectory.shapes):
        if shape.kind == "box" and shape.color[3] < 0.5:
            world = corner * shape.size @ _matrix(frame.rotation[number]).T + frame.position[number]
            edges.append(np.stack((world[first], world[second]), axis=1))
    return np.concatenate(edges)


def _scaled(shape: Shape) -> tuple[FloatArray, Ints]:
    """Vertices in the axes of a shape, and its faces."""
    vertices, faces = mesh_of(shape)
    scale = np.ones(3)
    if shape.kind in ("box", "ellipsoid"):
        scale = shape.size.astype(np.float64)
    elif shape.kind == "sphere":
        scale = np.full(3, float(shape.size[0]))
    return vertices * scale, faces


def _matrix(q: Floats) -> FloatArray:
    """The rotation of a unit quaternion (w, x, y, z)."""
    w, u = float(q[0]), q[1:].astype(np.float64)
    cross = np.array([[0, -u[2], u[1]], [u[2], 0, -u[0]], [-u[1], u[0], 0]])
    rotation: FloatArray = np.eye(3) + 2 * w * cross + 2 * cross @ cross
    return rotation


def _cut(triangles: FloatArray) -> FloatArray:
    """Each triangle in four until no edge is longer than `_LONGEST`."""
    done = []
    while len(triangles):
        edges = np.linalg.norm(triangles - np.roll(triangles, 1, axis=1), axis=2)
        long = edges.max(axis=1) > _LONGEST
        done.append(triangles[~long])
        a, b, c = triangles[long].transpose(1, 0, 2)
        ab, bc, ca = (a + b) / 2, (b + c) / 2, (c + a) / 2
        quarters = ((a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca))
        triangles = np.concatenate([np.stack(quarter, axis=1) for quarter in quarters])
    return np.concatenate(done)
