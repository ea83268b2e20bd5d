"""What a problem says of itself is what its arrays hold, in SI units."""

from __future__ import annotations

import numpy as np
import sap_islands as sap


def two_balls() -> sap.Problem:
    """Balls of 0.1 and 2 kg with radii of 0.02 and 0.05 m, one on the floor and one above it."""
    mass, radius = np.array([0.1, 2.0]), np.array([0.02, 0.05])
    inertia = np.zeros((2, 6))
    inertia[:, :3] = (0.4 * mass * radius**2)[:, None]
    v = np.zeros((2, 6))
    v[:, 2] = -0.0981
    return sap.Problem(
        time_step=0.01,
        bodies=sap.RigidBodies(
            mass=mass,
            inertia=inertia,
            center_of_mass=[[0, 0, 0.0199], [1, 0, 0.053]],
            free_motion_velocity=v,
            initial_velocity=np.zeros((2, 6)),
        ),
        body_contacts=sap.BodyContacts(
            body_a=[0, 1],
            body_b=sap.WORLD,
            point=[[0, 0, 0], [1, 0, 0]],
            normal=[0, 0, 1],
            signed_distance=[-1e-4, 3e-3],
            stiffness=1e5,
            relaxation_time=0.01,
            friction=[0.5, 0.8],
        ),
    )


def test_masses_sizes_speeds_and_gaps_stand_in_a_few_lines() -> None:
    assert two_balls().describe().splitlines() == [
        "time step: 0.01 s",
        "bodies: 2 of 0.1 to 2 kg, together 2.1 kg, largest to smallest 20",
        # sqrt(0.4) of the radii.
        "radius of gyration: 0.0126 to 0.0316 m",
        "v* of bodies: up to 0.0981 m/s or rad/s, 0.000981 in a step, "
        "from forces of up to 9.81 m/s^2 or rad/s^2",
        "body contacts: 2, 1 overlap by up to 0.0001 m, 1 apart by up to 0.003 m, "
        "friction 0.5 to 0.8, stiffness 1e+05 N/m",
    ]


def test_a_step_in_milliseconds_shows_in_the_forces() -> None:
    problem = two_balls()
    problem.time_step = 10
    assert "from forces of up to 0.00981 m/s^2" in problem.describe()


def test_trees_rows_and_empty_problems_have_lines_of_their_own() -> None:
    assert sap.Problem(0.5).describe() == "time step: 0.5 s"
    problem = sap.Problem(
        0.5,
        trees=sap.Trees.from_blocks([np.eye(1), np.diag([2.0, 30.0])], [1.0, 0.0, -4.0]),
        rows=sap.ConstraintRows.from_dense([[1.0, 0, 0]]),
    )
    assert problem.describe().splitlines()[1:] == [
        "trees: 2 with 1 to 2 degrees of freedom, diagonal of A 1 to 30 kg or kg m^2",
        "v* of trees: up to 4 m/s or rad/s, 2 in a step",
        "constraint rows: 1",
    ]
