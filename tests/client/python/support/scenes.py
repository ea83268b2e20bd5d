"""Small problems whose answers are known."""

from __future__ import annotations

import numpy as np
import sap_islands as sap

GRAVITY = 9.81
RADIUS = 0.1


def balls_on_floor(pushes: list[float], time_step: float = 0.01, gap: float = 0.0) -> sap.Problem:
    """Balls of 1 kg a meter apart on a floor, each pushed along x with a speed of its own [m/s]."""
    count = len(pushes)
    x = np.arange(count, dtype=float)
    v_star = np.zeros((count, 6))
    v_star[:, 0] = pushes
    v_star[:, 2] = -GRAVITY * time_step
    position = np.column_stack((x, np.zeros(count), np.full(count, RADIUS)))
    touching = position - [0, 0, RADIUS]
    return sap.Problem(
        time_step,
        bodies=sap.RigidBodies(
            mass=1.0,
            inertia=[0.004, 0.004, 0.004, 0, 0, 0],
            center_of_mass=position,
            free_motion_velocity=v_star,
            body_id=np.arange(count) + 1,
        ),
        body_contacts=sap.BodyContacts(
            body_a=np.arange(count),
            body_b=np.full(count, sap.WORLD),
            point=touching,
            normal=[0, 0, 1],
            signed_distance=gap,
            stiffness=1e6,
            relaxation_time=0.01,
            friction=0.5,
        ),
    )


def pushed_steps(count: int, time_step: float = 0.01) -> list[sap.Problem]:
    """A sequence of problems of three balls with growing pushes."""
    return [
        balls_on_floor([0.05 * i, 0.3 + 0.1 * i, 1.0], time_step, gap=-1e-5 * i)
        for i in range(count)
    ]


def same_bits(a: sap.Solution, b: sap.Solution) -> bool:
    """Whether two solutions are equal in all bits, times excepted."""
    return (
        a.velocity.tobytes() == b.velocity.tobytes()
        and a.impulse.tobytes() == b.impulse.tobytes()
        and a.contact_velocity.tobytes() == b.contact_velocity.tobytes()
        and a.cost == b.cost
        and a.island_of_tree.tobytes() == b.island_of_tree.tobytes()
        and a.islands.iterations.tobytes() == b.islands.iterations.tobytes()
        and a.islands.optimality_gap_bound.tobytes() == b.islands.optimality_gap_bound.tobytes()
    )
