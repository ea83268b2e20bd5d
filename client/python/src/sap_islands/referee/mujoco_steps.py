"""Steps that MuJoCo itself makes: several of them, with noslip, few iterations, or RK4."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from itertools import islice

import mujoco
import numpy as np

from sap_islands.arrays import FloatArray
from sap_islands.referee.counterfactuals import Explanation, Trial, patched
from sap_islands.referee.runs import Step

_NO_RESET = int(mujoco.mjtDisableBit.mjDSBL_AUTORESET)
_MAX_STEPS = 20  # time steps between recorded velocities that are tried
_OF_NOSLIP = 3  # what noslip must divide the error by; it does not converge
_TIGHTLY = ("NEWTON", 200, 1e-14)
_SOLVERS = ("NEWTON", "CG", "PGS")
_MAX_ITERATIONS = 20


def several_steps(trial: Trial) -> Iterator[Explanation]:
    """The velocity is that after several steps, or one with noslip."""
    noslip = trial.steps.model.opt.noslip_iterations
    with _solver(trial, *_TIGHTLY):
        steps = islice(_velocities(trial, np.zeros_like(trial.state.qvel)), _MAX_STEPS)
        errors = [trial.error_of(velocity) for velocity in steps]
    limit = min(trial.tolerance, trial.comparison.found.error / _OF_NOSLIP)
    if noslip > 0 and errors and errors[0] <= limit:
        yield Explanation("noslip", f"noslip_iterations {noslip}", 0.0)
    for count, error in enumerate(errors[1:], 2):
        if trial.explains(error):
            detail = f"next_qvel is the velocity after {count} steps"
            yield Explanation("several_steps", detail, error)


def runge_kutta(trial: Trial) -> Iterator[Explanation]:
    """The integrator is RK4, whose step is four problems."""
    options = trial.steps.model.opt
    with patched(((options, "integrator", int(mujoco.mjtIntegrator.mjINT_RK4)),)):
        error = _error_of_step(trial, np.zeros_like(trial.state.qvel), *_TIGHTLY)
    if trial.explains(error):
        yield Explanation("integrator", "rk4", error)


def few_iterations(trial: Trial, step: Step) -> Iterator[Explanation]:
    """MuJoCo's solver stops there after some iterations.

    It starts from the acceleration of the step before, from none, or from that without constraints.
    """
    model = trial.steps.model
    starts = {"cold start": np.zeros(model.nv)}
    if step.before is not None:
        starts["warm start"] = (step.state.qvel - step.before.qvel) / model.opt.timestep
    for solver in _SOLVERS:
        for iterations in range(1, _MAX_ITERATIONS + 1):
            for name, start in starts.items():
                error = _error_of_step(trial, start, solver, iterations, 0.0)
                if trial.explains(error):
                    which = f"MuJoCo's {solver} after {iterations} iterations, {name}"
                    yield Explanation("not_converged", which, error)


def _error_of_step(
    trial: Trial, acceleration: FloatArray, solver: str, iterations: int, tolerance: float
) -> float:
    """Error of the record against a step of MuJoCo; infinite: it diverges."""
    with _solver(trial, solver, iterations, tolerance):
        velocity = next(_velocities(trial, acceleration), None)
    return np.inf if velocity is None else trial.error_of(velocity)


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
