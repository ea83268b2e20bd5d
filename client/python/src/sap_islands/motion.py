"""Free motion of rigid bodies from one step to the next, gyroscopic terms included.

Angular momentum about the center of mass is I ω in world axes. Without torques it is constant
while the body, and I with it, turns: so ω changes. A step turns the body by δt ω_m, where ω_m is
the mean of the angular velocities at both ends, and keeps the angular momentum to round-off:

    R = exp(δt [ω_m]x),   I' = R I R',   ω' = I'^-1 (I ω + δt m),   ω_m = (ω + ω') / 2
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sap_islands._arrays.bodies import RigidBodies
from sap_islands.arrays import FloatArray

__all__ = ["Advanced", "advance", "rotations"]

# Places of xx, yy, zz, xy, xz, yz in a matrix.
_ROWS, _COLUMNS = np.array([0, 1, 2, 0, 0, 1]), np.array([0, 1, 2, 1, 2, 2])
_GRAVITY = (0.0, 0.0, -9.81)
# Iterations for ω_m, each more than one digit while a body turns by less than 0.1 rad in a step.
_ITERATIONS = 8


class Advanced(NamedTuple):
    """The bodies of the next step, and how they have turned.

    Attributes:
        bodies: With the new positions, inertias and free motion, the velocities of before as
            `initial_velocity`, and the same identifiers.
        turn: [B, 3, 3] rotation of each body in the step: its orientation is to be multiplied by it
            from the left.
    """

    bodies: RigidBodies
    turn: FloatArray


def advance(
    bodies: RigidBodies,
    velocity: ArrayLike,
    time_step: float,
    gravity: ArrayLike = _GRAVITY,
    wrench: ArrayLike = 0.0,
) -> Advanced:
    """Moves bodies with the velocities of a solution, and makes the free motion of the next step.

    Args:
        bodies: The bodies of the step that was solved, B of them.
        velocity: [B, 6] or [6 B] their velocities at its end, as `Solution.velocity` has them after
            those of the trees [m/s, rad/s].
        time_step: δt [s].
        gravity: [3] acceleration [m/s²].
        wrench: [B, 6] or [6] other forces on the centers of mass and torques, in world axes, in the
            next step [N, N m].

    Returns:
        The bodies of the next step, without a guess: `Session` has one, by `body_id`.
    """
    count = bodies.count
    v = np.asarray(velocity, np.float64).reshape(count, 6)
    mass = np.broadcast_to(bodies.mass, count)
    inertia = _matrices(np.broadcast_to(bodies.inertia, (count, 6)))
    center = np.broadcast_to(bodies.center_of_mass, (count, 3))
    load = np.broadcast_to(np.asarray(wrench, np.float64), (count, 6))

    linear = v[:, :3] + time_step * (np.asarray(gravity, np.float64) + load[:, :3] / mass[:, None])
    momentum = np.einsum("bij,bj->bi", inertia, v[:, 3:])
    turn, turned = np.broadcast_to(np.eye(3), inertia.shape), inertia
    angular = v[:, 3:]
    for _ in range(_ITERATIONS):
        turn = rotations(time_step * (v[:, 3:] + angular) / 2)
        turned = turn @ inertia @ turn.swapaxes(1, 2)
        angular = np.linalg.solve(turned, momentum[..., None])[..., 0]
    angular = angular + time_step * np.linalg.solve(turned, load[:, 3:, None])[..., 0]

    following = RigidBodies(
        mass=mass,
        inertia=turned[:, _ROWS, _COLUMNS],
        center_of_mass=center + time_step * v[:, :3],
        free_motion_velocity=np.concatenate([linear, angular], axis=1),
        body_id=bodies.body_id,
        initial_velocity=v,
    )
    return Advanced(following, turn)


def rotations(vectors: ArrayLike) -> FloatArray:
    """Rotation matrices [B, 3, 3] about vectors [B, 3] by their lengths [rad]."""
    w = np.asarray(vectors, np.float64)
    angle = np.linalg.norm(w, axis=1)[:, None, None]
    cross = np.zeros((len(w), 3, 3))
    cross[:, [2, 0, 1], [1, 2, 0]] = w
    cross[:, [1, 2, 0], [2, 0, 1]] = -w
    # np.sinc(x) is sin(pi x) / (pi x), which is exact at 0.
    half = np.sinc(angle / (2 * np.pi))
    first, second = np.sinc(angle / np.pi) * cross, 0.5 * half**2 * (cross @ cross)
    matrices: FloatArray = np.eye(3) + first + second
    return matrices


def _matrices(inertia: FloatArray) -> FloatArray:
    matrices = np.empty((len(inertia), 3, 3))
    matrices[:, _ROWS, _COLUMNS] = matrices[:, _COLUMNS, _ROWS] = inertia
    return matrices
