"""Advances the state of a MultibodyPlant with the solution of its problem."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import MultibodyConstraintId
from pydrake.systems.framework import Context

from sap_islands.client import Client
from sap_islands.drake.assembly import NO_CONSTRAINTS, BuiltProblem, build_problem
from sap_islands.drake.constraints import Named
from sap_islands.drake.results import StepResults
from sap_islands.errors import InvalidArgument
from sap_islands.options import Options, with_coulomb
from sap_islands.problem import ContactLaw
from sap_islands.session import Session
from sap_islands.solution import Solution
from sap_islands.unsolved_policy import OnUnsolved, check_on_unsolved, report_unsolved


class Step(NamedTuple):
    """A step that was taken.

    Attributes:
        built: The problem, and how it maps to the plant.
        solution: Its solution. Impulse i acts on body B of contact i, and its negative on body A
            [N s].
        results: Contact results, actuation and reaction forces.
    """

    built: BuiltProblem
    solution: Solution
    results: StepResults


def step(
    plant: MultibodyPlant,
    root_context: Context,
    solver: Session | Client,
    *,
    constraints: Mapping[MultibodyConstraintId, Named] = NO_CONSTRAINTS,
    stiction_tolerance: float | None = None,
    load_path: bool = False,
    rigid: bool = False,
    coulomb: bool = False,
    on_unsolved: OnUnsolved = "warn",
    ignore: Collection[str] = (),
) -> Step:
    """Advances the plant by one time step, as its discrete update does.

    Sets q, v and the time in the context. Systems connected to the plant's state outputs see the
    new state. The ports contact_results, reaction_forces, net_actuation and
    generalized_contact_forces keep what the plant sampled at its own last update, which here is
    nothing; `Step.results` has them of this step. Updates of other systems are up to the caller.

    Args:
        plant: The plant, in a diagram or by itself.
        root_context: The root context; changed.
        solver: A session, which warm-starts each step from the last one, or a client.
        constraints: Constraints of the plant whose parameters pydrake does not give, by their
            identifiers. Needed if an error says so, and for balls and welds with the world in a
            plant with tendons: Drake's own update of these ends the process.
        stiction_tolerance: Of the contacts of Hunt & Crossley [m/s]. pydrake does not give it;
            None: found from Drake's own update, at the first state in which it has an influence.
        load_path: Whether contacts are regularized by the load that they pass on
            (`RegularizationRule.LOAD_PATH`), so that stacks, and light bodies under heavy ones,
            rest as deep as single bodies do; False: by the diagonal of A, as Drake does.
        rigid: Whether contacts and rows have the numbers of `Regularization.rigid`, so that they
            hardly sag and creep; False: those of Drake.
        coulomb: Whether contacts have exact Coulomb friction (`Options.coulomb`), so that what
            slides does not drift apart; False: the convex model, as Drake does. The plant needs
            the contact approximation sap: those of Hunt & Crossley keep their law.
        on_unsolved: What to do if an island is not solved: "raise" `Unsolved` and leave the state
            as it is, "warn" with `UnsolvedWarning` and go on with its best iterate, or "ignore".
        ignore: Keys of `UNSUPPORTED` to ignore; "joint limits" leaves joint limits out.

    Raises:
        SapError: The problem could not be built or solved; the state is not advanced.
    """
    check_on_unsolved(on_unsolved)
    context = plant.GetMyMutableContextFromRoot(root_context)
    built = build_problem(
        plant,
        context,
        constraints=constraints,
        stiction_tolerance=stiction_tolerance,
        load_path=load_path,
        rigid=rigid,
        ignore=ignore,
    )
    options = _exact(built) if coulomb else None
    if isinstance(solver, Session):
        solution = solver.step(built.problem, options)
    else:
        solution = solver.solve(built.problem, options)
    report_unsolved(solution, on_unsolved, root_context.get_time())
    return Step(built, solution, apply(plant, root_context, built, solution))


def _exact(built: BuiltProblem) -> Options:
    if np.any(built.problem.contacts.law > ContactLaw.SAP):
        message = "coulomb is given, but the plant's contacts have the law of Hunt & Crossley"
        raise InvalidArgument(f"{message}; it needs the contact approximation sap", "coulomb")
    return with_coulomb(None)


def apply(
    plant: MultibodyPlant, root_context: Context, built: BuiltProblem, solution: Solution
) -> StepResults:
    """Advances the plant by one time step with the solution of its problem.

    `build_problem`, a solve of any kind (batches, sessions with several steps in flight, asyncio)
    and this function are together a `step`. An unsolved island is not reported here: see
    `Solution.solved`.

    Args:
        plant: The plant, in a diagram or by itself.
        root_context: The root context from which `built` was built, unchanged since; changed.
        built: The problem.
        solution: Its solution, with the velocity and all impulses.

    Returns:
        The results of the step; see `Step`.
    """
    context = plant.GetMyMutableContextFromRoot(root_context)
    state = plant.GetPositionsAndVelocities(context)
    results = StepResults(plant, context, *built.parts, solution, state)
    dt = plant.time_step()
    velocity = np.zeros(plant.num_velocities())
    velocity[built.velocities] = solution.velocity
    position = plant.GetPositions(context)
    position += dt * plant.MapVelocityToQDot(context, velocity)
    plant.SetPositionsAndVelocities(context, np.concatenate((position, velocity)))
    root_context.SetTime(root_context.get_time() + dt)
    return results
