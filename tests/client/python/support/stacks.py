"""Scenes of many islands: stacks of balls next to each other."""

from __future__ import annotations

import numpy as np
import sap_islands as sap


def stacks(count: int, height: int) -> sap.Problem:
    """`count` islands of `height` bodies, each ball on four points of the one below."""
    level = np.tile(np.arange(height), count)
    x = np.repeat(np.arange(count, dtype=float), height)
    zeros = np.zeros(count * height)
    offsets = 0.05 * np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0]])
    foot = np.stack([x, zeros, 0.2 * level], axis=1)
    body = np.repeat(np.arange(count * height), 4)
    return sap.Problem(
        0.01,
        bodies=sap.RigidBodies(
            mass=1 + 0.1 * (x % 7),
            inertia=[0.004, 0.004, 0.004, 0, 0, 0],
            center_of_mass=foot + np.array([0, 0, 0.1]),
            free_motion_velocity=np.stack(
                [zeros + 0.3, zeros, zeros - 0.1, zeros, 0.2 * level, zeros], axis=1
            ),
        ),
        body_contacts=sap.BodyContacts(
            body_a=body,
            body_b=np.where(level[body] == 0, sap.WORLD, body - 1),
            point=(foot[:, None] + offsets).reshape(-1, 3),
            normal=[0, 0, 1],
            signed_distance=-1e-4,
            stiffness=1e5,
            relaxation_time=0.0,
            friction=0.5,
        ),
    )
