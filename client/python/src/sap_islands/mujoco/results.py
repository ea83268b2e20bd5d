"""Writes what is known of a step to MjData, as MuJoCo's constraint stage does."""

from __future__ import annotations

import mujoco
import numpy as np

from sap_islands._library.c_library import pointer_to
from sap_islands.errors import InvalidArgument
from sap_islands.mujoco.assembly import BuiltProblem
from sap_islands.mujoco.native_calls import load_native_calls
from sap_islands.solution import Solution


def store_forces(
    model: mujoco.MjModel, data: mujoco.MjData, built: BuiltProblem, solution: Solution
) -> None:
    """Writes constraint forces, and the forces of implicit actuators, to `data`.

    `qacc` is written already. Arrays in the order of islands, `efc_b` and the numbers of iterations
    follow from these.

    Raises:
        InvalidArgument: The solution is not one of this problem, or lacks impulses.
    """
    layout, doubles, _, integers = built.buffers
    values = np.concatenate(
        (
            solution.velocity,
            solution.row_impulse,
            solution.impulse.ravel(),
            solution.angular_impulse.ravel(),
        )
    )
    numbers = model.nv + layout.rows + 3 * (layout.contacts + layout.turning)
    if len(values) != numbers:
        message = f"the solution has {len(values)} velocities and impulses; {numbers} are needed"
        raise InvalidArgument(message, "solution")
    calls = load_native_calls()
    state = calls.state(model, data, built.law != "mujoco")
    calls.store_forces(
        *state,
        layout,
        pointer_to(doubles),
        pointer_to(integers),
        pointer_to(values),
    )
    if data.nefc:
        mujoco.mj_mulJacTVec(model, data, data.qfrc_constraint, data.efc_force)
        calls.store_island_arrays(*state)
    else:
        data.qfrc_constraint[:] = 0.0
    _store_iterations(data, solution)


def _store_iterations(data: mujoco.MjData, solution: Solution) -> None:
    """Both number islands by their lowest tree; without MuJoCo's the first has the most of all."""
    data.solver_niter[:] = 0
    iterations = solution.islands.iterations
    if data.nisland:
        count = min(len(iterations), len(data.solver_niter))
        data.solver_niter[:count] = iterations[:count]
    else:
        data.solver_niter[0] = iterations.max(initial=0)
