"""Steps that MuJoCo itself makes: several of them, with noslip, with few iterations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager

import mujoco
import numpy as np

from sap_islands.arrays import FloatArray
from sap_islands.referee.counterfactuals import Trial, patched
from sap_islands.referee.runs import Step

_NO_RESET = int(mujoco.mjtDisableBit.mjDSBL_AUTORESET)
_MAX_STEPS = 20  # time steps between recorded velocities that are tried
_OF_NOSLIP = 3  # what noslip must divide the error by; it does not converge
_SOLVERS = ("NEWTON", "CG", "PGS")
_MAX_ITERATIONS = 20


def several_steps(trial: Trial) -> tuple[str, str] | None:
    """The cause and detail if the velocity is that after several steps, or one with noslip."""
    noslip = trial.steps.model.opt.noslip_iterations
    with _solver(trial, "NEWTON", 200, 1e-14):
        for count, velocity in enumerate(_velocities(trial, np.zeros_like(trial.state.qvel)), 1):
            error = trial.error_of(velocity)
            if count > 1 and trial.explains(error):
                return "several_steps", f"next_qvel is the velocity after {count} steps"
            if count == 1 and noslip > 0:
                limit = min(trial.tolerance, trial.comparison.found.error / _OF_NOSLIP)
                if error <= limit:
                    return "noslip", f"noslip_iterations {noslip}"
            if count == _MAX_STEPS:
                break
    return None


def few_iterations(trial: Trial, step: Step) -> tuple[str, str] | None:
    """The cause and detail if MuJoCo's solver stops there after some iterations.

    It starts from the acceleration of the step before, from none, or from that without constraints.
    """
    model = trial.steps.model
    starts = {"cold start": np.zeros(model.nv)}
    if step.before is not None:
        starts["warm start"] = (step.state.qvel - step.before.qvel) / model.opt.timestep
    for solver in _SOLVERS:
        for iterations in range(1, _MAX_ITERATIONS + 1):
            with _solver(trial, solver, iterations, 0.0):
                for name, start in starts.items():
                    velocity = next(_velocities(trial, start), None)
                    if velocity is not None and trial.explains(trial.error_of(velocity)):
                        which = f"MuJoCo's {solver} after {iterations} iterations, {name}"
                        return "not_converged", which
    return None


def _solver(
    trial: Trial, name: str, iterations: int, tolerance: float
) -> AbstractContextManager[None]:
    """Selects a solver of MuJoCo for a time."""
    options = trial.steps.model.opt
    return patched(
        (
            (options, "solver", int(getattr(mujoco.mjtSolver, f"mjSOL_{name}"))),
            (options, "iterations", iterations),
            (options, "tolerance", tolerance),
            (options, "disableflags", int(options.disableflags) | _NO_RESET),
        )
    )


def _velocities(trial: Trial, acceleration: FloatArray) -> Iterator[FloatArray]:
    """Velocities after each step of MuJoCo, until the state diverges."""
    model, data = trial.steps.model, trial.scratch
    trial.steps.place(data, trial.state)
    data.qacc_warmstart[:] = acceleration
    while True:
        mujoco.mj_step(model, data)
        if data.warning.number.any():
            return
        yield data.qvel
