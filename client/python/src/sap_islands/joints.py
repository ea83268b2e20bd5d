"""Joints between free rigid bodies as constraint rows, from a frame on each of two bodies.

A row is one direction in which the joint does not let the frames move against each other: along d,
at the point p halfway between the origins of the frames,

    v_c = d . (v_a + ω_a x (p - c_a) - v_b - ω_b x (p - c_b)),   g0 = d . (p_a - p_b)

or about d, with v_c = d . (ω_a - ω_b). Rows act to first order in the motion of a step, and g0
takes back what is left of the step before.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from sap_islands._arrays.bodies import RigidBodies
from sap_islands._arrays.constraint_rows import ConstraintRows
from sap_islands._arrays.contacts import WORLD
from sap_islands.arrays import FloatArray
from sap_islands.errors import InvalidArgument

__all__ = ["Frame", "Joints"]

_WORLD_AXES = np.eye(3)


class Frame:
    """A frame on a body, or in the world: where it is now, in world axes.

    Attributes:
        position: [3] origin [m].
        rotation: [3, 3] its axes x, y, z as columns [-].
    """

    position: FloatArray
    rotation: FloatArray

    def __init__(self, position: ArrayLike, rotation: ArrayLike = _WORLD_AXES) -> None:
        """Takes both, without a copy where they are arrays of doubles.

        Raises:
            InvalidArgument: One of them has another shape.
        """
        self.position = np.asarray(position, np.float64)
        self.rotation = np.asarray(rotation, np.float64)
        if self.position.shape != (3,) or self.rotation.shape != (3, 3):
            shapes = f"{self.position.shape} and {self.rotation.shape}"
            raise InvalidArgument(f"a frame has shapes {shapes}; (3,) and (3, 3) are needed")


class Joints:
    """Collects the rows of joints between the bodies of a problem.

    The methods of the joints take the two bodies, numbers of `bodies` of which the second may be
    `WORLD`, and a frame on each. Where both frames agree in what the joint holds, it is closed.
    """

    def __init__(self, bodies: RigidBodies, first_velocity: int = 0) -> None:
        """Starts without joints.

        Args:
            bodies: The bodies of the problem.
            first_velocity: Number of velocities of the trees of the problem, which come first.
        """
        self._centers = np.broadcast_to(bodies.center_of_mass, (bodies.count, 3))
        self._first = first_velocity
        self._rows: list[tuple[FloatArray, FloatArray, float]] = []  # index, J, g0

    def ball(self, a: int, b: int, frame_a: Frame, frame_b: Frame) -> None:
        """Holds the origins together: 3 rows."""
        self._hold_along(np.eye(3), a, b, frame_a, frame_b)

    def hinge(self, a: int, b: int, frame_a: Frame, frame_b: Frame) -> None:
        """Lets a turn about the axis z of the frames: 5 rows."""
        self._hold_along(np.eye(3), a, b, frame_a, frame_b)
        axes_a, axes_b = frame_a.rotation, frame_b.rotation
        error = np.cross(axes_b[:, 2], axes_a[:, 2])
        self._hold_about(axes_b[:, :2].T, a, b, error)

    def slider(self, a: int, b: int, frame_a: Frame, frame_b: Frame) -> None:
        """Lets a move along the axis z of frame b: 5 rows."""
        self._hold_along(frame_b.rotation[:, :2].T, a, b, frame_a, frame_b)
        self._hold_about(np.eye(3), a, b, _turn(frame_a, frame_b))

    def weld(self, a: int, b: int, frame_a: Frame, frame_b: Frame) -> None:
        """Holds the frames together: 6 rows."""
        self._hold_along(np.eye(3), a, b, frame_a, frame_b)
        self._hold_about(np.eye(3), a, b, _turn(frame_a, frame_b))

    def gear(self, a: int, b: int, axis_a: ArrayLike, axis_b: ArrayLike, ratio: float) -> None:
        """Turns b about its axis with `ratio` times the speed of a about its own: 1 row.

        Frames do not tell how far gears have turned, so what a step leaves open is not taken back.

        Args:
            a: First body.
            b: Second body; not the world.
            axis_a: [3] unit vector in world axes.
            axis_b: [3] likewise, of b.
            ratio: Negative for two gears that touch from outside.
        """
        self._append([(a, 3, ratio * np.asarray(axis_a)), (b, 3, -np.asarray(axis_b))], 0.0)

    def rows(self, **laws: ArrayLike) -> ConstraintRows:
        """The rows, in the order of the calls.

        Args:
            **laws: Attributes of `ConstraintRows`, as `stiffness`, for all rows: a number, or one
                for each row. Without them the rows are rigid.
        """
        return ConstraintRows(
            entries=[len(index) for index, _, _ in self._rows],
            velocity_index=_concatenate(index for index, _, _ in self._rows),
            coefficient=_concatenate(coefficients for _, coefficients, _ in self._rows),
            position_error=[error for _, _, error in self._rows],
            **laws,
        )

    def _hold_along(
        self, directions: FloatArray, a: int, b: int, frame_a: Frame, frame_b: Frame
    ) -> None:
        p_a, p_b = frame_a.position, frame_b.position
        point = (p_a + p_b) / 2
        for d in directions:
            parts = []
            for body, sign in ((a, 1.0), (b, -1.0)):
                if body != WORLD:
                    arm = point - self._center(body)
                    parts += [(body, 0, sign * d), (body, 3, sign * np.cross(arm, d))]
            self._append(parts, float(d @ (p_a - p_b)))

    def _hold_about(self, directions: FloatArray, a: int, b: int, error: FloatArray) -> None:
        for d in directions:
            self._append([(a, 3, d), (b, 3, -d)], float(d @ error))

    def _center(self, body: int) -> FloatArray:
        if body not in range(len(self._centers)):
            message = f"body {body!r} is none of the {len(self._centers)} bodies, nor the world"
            raise InvalidArgument(message, "joints")
        center: FloatArray = self._centers[body]
        return center

    def _append(self, parts: list[tuple[int, int, FloatArray]], error: float) -> None:
        """Adds a row of (body, first of its three velocities, coefficients)."""
        index, coefficients = [], []
        for body, first, values in sorted(parts, key=lambda part: part[:2]):
            if body == WORLD:
                continue
            self._center(body)
            index.append(self._first + 6 * body + first + np.arange(3))
            coefficients.append(values)
        self._rows.append((np.concatenate(index), np.concatenate(coefficients), error))


def _turn(frame_a: Frame, frame_b: Frame) -> FloatArray:
    """The rotation from frame b to frame a as a vector in world axes [rad]."""
    R = frame_a.rotation @ frame_b.rotation.T
    twice_sine = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    sine, cosine = np.linalg.norm(twice_sine) / 2, (np.trace(R) - 1) / 2
    angle = np.arctan2(sine, cosine)
    return twice_sine / 2 * (angle / sine if sine > 0 else 1.0)


def _concatenate(arrays: Iterable[FloatArray]) -> FloatArray:
    listed = list(arrays)
    return np.concatenate(listed) if listed else np.empty(0)
