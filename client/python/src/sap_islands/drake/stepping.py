"""Builds the problem of a MultibodyPlant and its context, and advances the state."""

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
    """A problem, and how it maps to the plant.

    Attributes:
        problem: Its trees are those of the plant.
        bodies: [C_b, 2] for contact i < C_b of the problem, the indices of bodies A and B; the
            remaining contacts are joint limits.
        velocities: [nv] index in the plant's v of each velocity of the problem.
    """

    problem: Problem
    bodies: IntArray
    velocities: IntArray


def build_problem(
    plant: MultibodyPlant, context: Context, *, ignore: Collection[str] = ()
) -> BuiltProblem:
    """Builds the contact problem of one discrete step.

    Args:
        plant: A finalized discrete plant, connected to its scene graph.
        context: The context of the plant, from `plant.GetMyContextFromRoot`.
        ignore: Keys of `UNSUPPORTED` to ignore; "joint limits" leaves joint limits out.

    Raises:
        InvalidArgument: The plant is continuous, it has an unsupported feature that `ignore` does
            not name, or `ignore` has an unknown name.
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
    """Advances the plant by one time step, as its discrete update does.

    Sets q, v and the time in the context. Systems connected to the plant's state outputs see the
    new state. Outputs that the plant samples at its discrete updates, such as contact_results and
    reaction_forces, keep their old values. Updates of other systems are up to the caller. The step
    is taken even if an island was not solved; check `Solution.solved`.

    Args:
        plant: The plant, in a diagram or by itself.
        root_context: The root context; changed.
        solver: A session, which warm-starts each step from the last one, or a client.
        ignore: As for `build_problem`.

    Returns:
        The problem and its solution. Impulse i < len(bodies) acts on body B of contact i, and its
        negative on body A [N s].

    Raises:
        SapError: The problem could not be built or solved; the state is not advanced.
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
