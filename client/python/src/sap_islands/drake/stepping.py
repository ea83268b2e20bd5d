"""From a MultibodyPlant and its context to a problem, and from its solution to the next state."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import Context

from sap_islands.arrays import FloatArray, IntArray
from sap_islands.client import Client
from sap_islands.drake import contacts as contacts_of
from sap_islands.drake import dynamics as dynamics_of
from sap_islands.drake.layout import layout_of
from sap_islands.drake.support import check_supported
from sap_islands.problem import Contacts, Problem, Regularization, Trees
from sap_islands.session import Session
from sap_islands.solution import Solution
from sap_islands.support import JOINT_LIMITS


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
    check_supported(plant, context, ignore)
    layout = layout_of(plant)
    dynamics = dynamics_of.evaluate(plant, context, layout)
    contacts, bodies = contacts_of.find_contacts(plant, context, layout, dynamics)
    beta = plant.get_sap_near_rigid_threshold()
    if JOINT_LIMITS not in ignore and layout.limited:
        limits = contacts_of.find_limits(plant, context, layout, dynamics)
        if limits.count:
            contacts = _join(contacts, limits, plant.time_step(), beta)
    problem = Problem(
        time_step=plant.time_step(),
        trees=Trees(
            dofs=layout.dofs,
            dynamics_matrix=dynamics.blocks,
            free_motion_velocity=dynamics.v_star,
            tree_id=np.arange(len(layout.dofs)),
        ),
        contacts=contacts,
        regularization=Regularization(beta=beta, sigma=contacts_of.SIGMA),
    )
    return BuiltProblem(problem, bodies, layout.velocities.astype(np.int32))


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


def _join(contacts: Contacts, limits: Contacts, dt: float, beta: float) -> Contacts:
    """Both; limits bring their own regularization, so that of the others has to be given too."""
    weight: FloatArray = contacts.delassus_estimate
    tau = contacts.relaxation_time
    contacts.regularization_t = contacts_of.SIGMA * weight
    contacts.regularization_n = np.maximum(
        beta**2 / (4 * np.pi**2) * weight, 1 / (dt * contacts.stiffness * (dt + tau))
    )
    names = [name for name in vars(limits) if not name.startswith("_")]
    return Contacts(
        **{name: np.concatenate((getattr(contacts, name), getattr(limits, name))) for name in names}
    )
