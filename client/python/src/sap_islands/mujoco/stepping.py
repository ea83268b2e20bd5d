"""Builds the problem of an MjModel and MjData, and advances the state with its solution."""

from __future__ import annotations

from typing import get_args

import mujoco
import numpy as np

from sap_islands.client import Client
from sap_islands.errors import InvalidArgument
from sap_islands.mujoco.assembly import BuiltProblem, Law, assemble_problem
from sap_islands.mujoco.impulse_guess import ImpulseGuess
from sap_islands.mujoco.material import Material
from sap_islands.mujoco.native_calls import compute, finish
from sap_islands.mujoco.unsupported_features import (
    refuse_data_of_another,
    refuse_unsupported,
    warn_of_differences,
)
from sap_islands.options import Options, with_coulomb
from sap_islands.session import Session
from sap_islands.solution import Solution
from sap_islands.unsolved_policy import OnUnsolved, check_on_unsolved, report_unsolved

_LAWS = get_args(Law)

DEFAULT_MATERIAL = Material()
_CONVERGED = Options(relative_tolerance=1e-10)
_FIRST_MARGIN_WITHOUT_GAP = 4_000_000  # before, forces begin at the distance margin - gap


def build_problem(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    *,
    law: Law = "sap",
    material: Material = DEFAULT_MATERIAL,
) -> BuiltProblem:
    """Builds the problem of one time step from the state of `data`.

    Computes positions, velocities, smooth forces, collisions and constraints in `data` as
    `mujoco.mj_forward` does, and does not solve them.

    Args:
        model: The model; not changed.
        data: The state, with controls and applied forces.
        law: "sap", "coulomb" or "mujoco"; see `sap_islands.mujoco`. "coulomb" builds the problem of
            "sap", for a solve with `Options.coulomb`.
        material: Contact parameters that replace those of the model except under law="mujoco".

    Raises:
        InvalidArgument: The model enables ipc, `data` is of another model, or `law` is unknown.
    """
    if law not in _LAWS:
        raise InvalidArgument(f"law is {law!r}; it must be 'sap', 'coulomb' or 'mujoco'", "law")
    refuse_unsupported(model)
    refuse_data_of_another(model, data)
    warn_of_differences(model)
    compute(model, data, as_sap=law != "mujoco")
    return assemble_problem(model, data, law, material)


def step(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    solver: Session | Client,
    *,
    law: Law = "sap",
    material: Material = DEFAULT_MATERIAL,
    options: Options | None = None,
    on_unsolved: OnUnsolved = "warn",
    guess: ImpulseGuess | None = None,
) -> tuple[BuiltProblem, Solution]:
    """Advances `data` by one time step as `mujoco.mj_step` does, constraints by the service.

    Args:
        model: The model; not changed, so that threads may share it.
        data: The state; changed.
        solver: A session or a client.
        law: As for `build_problem`.
        material: As for `build_problem`.
        options: Options of the solve; None: those of the session, or the default ones, under
            law="mujoco" with a relative tolerance of 1e-10, and under law="coulomb" with exact
            Coulomb friction, whatever the options of the session are.
        on_unsolved: What to do if an island is not solved: "raise" `Unsolved` and leave the state
            as it is, "warn" with `UnsolvedWarning` and take the step with the best iterate, or
            "ignore".
        guess: Impulses of the step before, which those of this step replace; None: no guess.

    Returns:
        The problem and its solution. Impulse i is that of contact[i] in `data.contact`, in the
        order (t1, t2, n); MuJoCo's frame has the rows n, t1, t2 [N s].

    Raises:
        SapError: The problem could not be built or solved; the state is not advanced.
    """
    check_on_unsolved(on_unsolved)
    built = build_problem(model, data, law=law, material=material)
    options = options_of(law, options)
    if guess is not None:
        guess.give(data, built)
    if isinstance(solver, Session):
        solution = solver.step(built.problem, options)
    else:
        solution = solver.solve(built.problem, options)
    report_unsolved(solution, on_unsolved, data.time)
    if guess is not None:
        guess.keep(data, built, solution)
    apply(model, data, built, solution)
    return built, solution


def options_of(law: Law, options: Options | None) -> Options | None:
    """The options of a solve: those given, or the default ones of the law."""
    if law == "coulomb":
        return with_coulomb(options)
    return _CONVERGED if options is None and law == "mujoco" else options


def apply(
    model: mujoco.MjModel, data: mujoco.MjData, built: BuiltProblem, solution: Solution
) -> None:
    """Advances a state by one time step with the solution of its problem.

    `build_problem`, a solve of any kind (batches, sessions with several steps in flight, asyncio)
    and this function are together a `step`. An unsolved island is not reported here: see
    `Solution.solved`.

    Args:
        model: The model; not changed.
        data: The state from which `built` was built, unchanged since; changed.
        built: The problem.
        solution: Its solution, with the velocity and all impulses.

    Raises:
        InvalidArgument: The solution is not one of this problem, or lacks impulses.
        SapError: MuJoCo failed.
    """
    values = np.concatenate(
        (
            solution.velocity,
            solution.row_impulse,
            solution.impulse.ravel(),
            solution.angular_impulse.ravel(),
        )
    )
    layout = built.buffers.layout
    numbers = model.nv + layout.rows + 3 * (layout.contacts + layout.turning)
    if len(values) != numbers:
        message = f"the solution has {len(values)} velocities and impulses; {numbers} are needed"
        raise InvalidArgument(message, "solution")
    finish(model, data, built.buffers, values, solution.islands.iterations)


def let_mujoco_reset_unstable(model: mujoco.MjModel, data: mujoco.MjData) -> bool:
    """Does with a state whose problem was refused what mj_step does with bad accelerations.

    MuJoCo warns of accelerations that are not finite or huge and, unless the model disables that,
    resets the state.

    Returns:
        Whether MuJoCo's accelerations are so.
    """
    mujoco.mj_forward(model, data)
    is_unstable = not (np.abs(data.qacc) <= mujoco.mjMAXVAL).all()
    mujoco.mj_checkAcc(model, data)
    return is_unstable


def find_contacts_within(model: mujoco.MjModel, distance: float) -> None:
    """Makes MuJoCo report contacts before geoms touch. MuJoCo's own forces do not change.

    Without it, a fast sliding body loses contact in some steps: the convex approximation of
    friction lets a body that slides with speed v float by μ (δt + τ_d) v. Only law="sap" uses these
    contacts.

    Args:
        model: The model; `geom_gap` and `pair_gap` are increased.
        distance: Distance at which contacts are reported [m]; a few millimeters are enough.
    """
    model.geom_gap += distance
    model.pair_gap += distance
    if mujoco.mj_version() < _FIRST_MARGIN_WITHOUT_GAP:
        model.geom_margin += distance
        model.pair_margin += distance
