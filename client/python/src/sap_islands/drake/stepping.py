"""From a MultibodyPlant and its context to a problem, and from its solution to the next state."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import Context

from sap_islands.arrays import IntArray
from sap_islands.client import Client
from sap_islands.drake import dynamics as dynamics_of
from sap_islands.drake.contact_points import find_points
from sap_islands.drake.contacts import SIGMA, make_contacts
from sap_islands.drake.layout import layout_of
from sap_islands.drake.unsupported_features import check_supported
from sap_islands.problem import Problem, Regularization, Trees
from sap_islands.session import Session
from sap_islands.solution import Solution
from sap_islands.unsupported_features import JOINT_LIMITS


class BuiltProblem(NamedTuple):
    """A problem, and what its numbers are in Drake.

    Attributes:
        problem: Its trees are those of the plant.
        bodies: [C_b, 2] numbers of bodies A and B of the first contacts of the problem; those after
            are joint limits.
        velocities: [nv] number in the plant's v of each velocity of the problem.
    """

    problem: Problem
    bodies: IntArray
    velocities: IntArray


def build_problem(
    plant: MultibodyPlant, context: Context, *, ignore: Collection[str] = ()
) -> BuiltProblem:
    """The contact problem of one discrete step.

    Args:
        plant: A finalized discrete plant, connected to its scene graph.
        context: The plant's own context, as from `plant.GetMyContextFromRoot`.
        ignore: Names of `UNSUPPORTED` to be left out, or "joint limits".

    Raises:
        InvalidArgument: The plant has what the service has no constraint for.
    """
    layout = layout_of(plant)
    check_supported(plant, context, layout, ignore)
    position = plant.GetPositions(context)
    dynamics = dynamics_of.evaluate(plant, context, layout, position)
    points = find_points(plant, context, layout)
    with_limits = JOINT_LIMITS not in ignore
    contacts = make_contacts(plant, context, layout, dynamics, points, position, with_limits)
    problem = Problem(
        time_step=plant.time_step(),
        trees=Trees.from_wire_arrays(
            dofs=layout.dofs,
            dynamics_matrix=dynamics.blocks,
            free_motion_velocity=dynamics.v_star,
            tree_id=layout.names,
        ),
        contacts=contacts,
        regularization=Regularization(plant.get_sap_near_rigid_threshold(), SIGMA),
    )
    return BuiltProblem(problem, points.bodies, layout.velocity_numbers)


def step(
    plant: MultibodyPlant,
    root_context: Context,
    solver: Session | Client,
    *,
    ignore: Collection[str] = (),
) -> tuple[BuiltProblem, Solution]:
    """Takes the plant one time step further, as its discrete update does.

    Other systems of the diagram see the new state and time; their own updates are the caller's.

    Args:
        plant: The plant, of a diagram or by itself.
        root_context: The context of the whole diagram, which is changed.
        solver: A session, which starts each step from the one before, or a client.
        ignore: As for `build_problem`.

    Returns:
        The problem and its solution; impulse i < len(bodies) acts on body B of that contact, and
        its opposite on body A.
    """
    context = plant.GetMyMutableContextFromRoot(root_context)
    built = build_problem(plant, context, ignore=ignore)
    if isinstance(solver, Session):
        solution = solver.step(built.problem)
    else:
        solution = solver.solve(built.problem)
    velocity = np.empty(plant.num_velocities())
    velocity[built.velocities] = solution.velocity
    position = plant.GetPositions(context)
    position += plant.time_step() * plant.MapVelocityToQDot(context, velocity)
    plant.SetPositionsAndVelocities(context, np.concatenate((position, velocity)))
    root_context.SetTime(root_context.get_time() + plant.time_step())
    return built, solution
