"""Trajectory of a simulation: its shapes, and the poses, contacts and islands of every step.

`Simulation` fills it, `Viewer` shows it, and it is saved to and loaded from an .npz file.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sap_islands.errors import InvalidArgument
from sap_islands.problem_files import PathLike

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]


@dataclass(frozen=True)
class Shape:
    """One geometry of the model.

    Attributes:
        kind: "box", "sphere", "ellipsoid", "capsule", "cylinder", "plane", "mesh" or "deformable",
            whose vertices are in each frame.
        size: [3] half lengths, or radius and half length, as MuJoCo's geom_size [m].
        color: [4] red, green, blue, opacity, 0 to 1.
        vertices: [V, 3] of a mesh [m].
        faces: [F, 3] of a mesh, indices of vertices.
    """

    kind: str
    size: Floats
    color: Floats
    vertices: Floats = field(default_factory=lambda: np.empty((0, 3), np.float32))
    faces: Ints = field(default_factory=lambda: np.empty((0, 3), np.int32))


@dataclass(frozen=True)
class Frame:
    """State at the beginning of one step, and the contacts and islands of that step.

    Attributes:
        time: Time at the beginning of the step [s].
        position: [G, 3] of each shape, in world axes [m].
        rotation: [G, 4] unit quaternion (w, x, y, z) of each shape.
        island: [G] island of each shape; -1: it has no contact, or is fixed.
        contact_point: [C, 3] in world axes [m].
        contact_force: [C, 3] on the second body, in world axes [N].
        iterations: [I] Newton iterations of each island.
        gap_bound: [I] certificate: bound on the cost above its minimum [J].
        solve_time_s: [I] time of the solve [s].
        dofs: [I] degrees of freedom.
        contacts: [I] number of contacts.
        rows: [I] number of constraint rows.
        unsolved: Number of islands that were not solved.
        deformed: [sum V, 3] vertices of the deformable shapes, in world axes [m].
    """

    time: float
    position: Floats
    rotation: Floats
    island: Ints
    contact_point: Floats
    contact_force: Floats
    iterations: Ints
    gap_bound: Floats
    solve_time_s: Floats
    dofs: Ints
    contacts: Ints
    rows: Ints
    unsolved: int = 0
    deformed: Floats = field(default_factory=lambda: np.empty((0, 3), np.float32))


_SCALARS = ("time", "unsolved")
_ARRAYS = tuple(f.name for f in fields(Frame) if f.name not in _SCALARS)


@dataclass
class Trajectory:
    """Shapes of a model, and one frame per step so far."""

    shapes: list[Shape]
    frames: list[Frame] = field(default_factory=list)

    def save(self, path: PathLike) -> None:
        """Writes the trajectory to a compressed .npz file."""
        arrays: dict[str, NDArray[Any]] = {
            "time": np.array([frame.time for frame in self.frames]),
            "unsolved": np.array([frame.unsolved for frame in self.frames]),
            "kind": np.array([shape.kind for shape in self.shapes]),
            "size": np.array([shape.size for shape in self.shapes], np.float32),
            "color": np.array([shape.color for shape in self.shapes], np.float32),
        }
        for name in ("vertices", "faces"):
            _pack(arrays, name, [getattr(shape, name) for shape in self.shapes])
        for name in _ARRAYS:
            _pack(arrays, name, [getattr(frame, name) for frame in self.frames])
        with open(path, "wb") as file:
            # mypy matches **arrays with the keyword allow_pickle, too.
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]  # see above

    @classmethod
    def load(cls, path: PathLike) -> Trajectory:
        """Reads a file written by `save`.

        Raises:
            InvalidArgument: The file cannot be read, or is not one.
        """
        try:
            with np.load(path, allow_pickle=False) as arrays:
                shapes = [
                    Shape(str(kind), size, color, vertices, faces)
                    for kind, size, color, vertices, faces in zip(
                        arrays["kind"],
                        arrays["size"],
                        arrays["color"],
                        _unpack(arrays, "vertices"),
                        _unpack(arrays, "faces"),
                        strict=True,
                    )
                ]
                pieces = {name: _unpack(arrays, name) for name in _ARRAYS if name in arrays}
                # Files that were saved before there were constraint rows and deformable shapes.
                pieces.setdefault("rows", [np.zeros_like(n) for n in pieces["contacts"]])
                pieces.setdefault("deformed", [np.empty((0, 3), np.float32)] * len(arrays["time"]))
                frames = [
                    Frame(
                        time=float(time),
                        unsolved=int(unsolved),
                        **{name: pieces[name][i] for name in _ARRAYS},
                    )
                    for i, (time, unsolved) in enumerate(
                        zip(arrays["time"], arrays["unsolved"], strict=True)
                    )
                ]
        except (OSError, KeyError, ValueError) as error:
            raise InvalidArgument(f"{os.fspath(path)}: is not a saved run: {error}") from None
        return cls(shapes, frames)


def _pack(into: dict[str, NDArray[Any]], name: str, pieces: list[NDArray[Any]]) -> None:
    """Stores arrays of different lengths as their concatenation and their lengths."""
    into[name] = np.concatenate(pieces) if pieces else np.empty(0)
    into[f"{name}_lengths"] = np.array([len(piece) for piece in pieces], np.int64)


def _unpack(arrays: np.lib.npyio.NpzFile, name: str) -> list[NDArray[Any]]:
    lengths = arrays[f"{name}_lengths"]
    return np.split(arrays[name], np.cumsum(lengths)[:-1]) if len(lengths) else []
