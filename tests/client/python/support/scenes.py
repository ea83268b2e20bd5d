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


def bits(solution: sap.Solution) -> bytes:
    """What is a function of problem, guess and options: all of a solution but times."""
    fields = solution.fields()
    islands = fields.pop("islands")
    del fields["timings"], islands["solve_time_s"]
    arrays = [np.asarray(array) for array in (*fields.values(), *islands.values())]
    return b"".join(len(array.ravel()).to_bytes(8, "little") + array.tobytes() for array in arrays)


def same_bits(a: sap.Solution, b: sap.Solution) -> bool:
    """Whether two solutions are equal in all bits, except for times."""
    return bits(a) == bits(b)


def linked_balls(seed: int, count: int = 8, time_step: float = 0.01) -> sap.Problem:
    """Balls on a floor with every kind of contact, linked by rows; a chain of them is an island."""
    rng = np.random.default_rng(seed)
    problem = balls_on_floor(rng.uniform(-0.5, 0.5, count).tolist(), time_step, gap=-1e-4)
    problem.bodies.free_motion_velocity[:, 3:] = rng.uniform(-3, 3, (count, 3))
    contacts = problem.body_contacts
    kind = np.arange(count) % 4
    contacts.friction_2 = np.where(kind == 1, 0.2, 0.5)
    contacts.torsional_friction = np.where(kind == 0, 0.01, 0.0)
    contacts.rolling_friction = np.where(kind[:, None] == 1, [0.002, 0.001], 0.0)
    contacts.adhesion = np.where(kind == 0, 3.0, 0.0)
    contacts.law = np.where(kind == 2, sap.ContactLaw.HUNT_CROSSLEY_LAGGED, sap.ContactLaw.SAP)
    contacts.law[kind == 3] = sap.ContactLaw.HUNT_CROSSLEY_SIMILAR
    contacts.hunt_crossley = sap.HuntCrossley(100.0, 0.2, GRAVITY * time_step)
    J = np.zeros((count - 2, 6 * count))
    for row in range(count - 2):  # balls 0 to count - 2 keep their distances along x, more or less
        J[row, 6 * row], J[row, 6 * row + 6] = -1.0, 1.0
    limit = rng.uniform(0.5, 50.0, count - 2)
    problem.rows = sap.ConstraintRows.from_dense(J, force_lower=-limit, force_upper=limit)
    return problem
