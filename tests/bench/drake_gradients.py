"""Derivatives of a step by Drake's automatic differentiation, and the contact problem of the step.

Drake differentiates forwards: its plant is converted to AutoDiffXd, whose contact solver solves in
double precision and takes the derivatives along all directions from the last factor. Between boxes
its point contact has no AutoDiffXd, so the bodies are spheres.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from pydrake.autodiffutils import AutoDiffXd, ExtractGradient, InitializeAutoDiff
from pydrake.systems.analysis import Simulator_

from contact_arrays import ContactArrays
from drake_peer import TIME_STEP, Scene, Timer


@dataclass
class DrakeDerivative:
    problem: ContactArrays  # what Drake's solver is given
    tangents: np.ndarray  # of the velocity after the step, a row for each direction
    solve_s: float  # inside SapSolver<AutoDiffXd>::SolveWithGuess, solve and derivatives
    step_s: float  # the whole step: geometry, dynamics and contact


class Differentiator:
    """Steps `spheres` to a time, and differentiates the next step."""

    def __init__(self, num_bodies: int, steps: int, timer: Timer):
        self._timer = timer
        self._scene = Scene("spheres", num_bodies, timer)
        for _ in self._scene.steps(steps):
            pass
        self._diagram = self._scene.diagram.ToAutoDiffXd()
        self._root = self._diagram.CreateDefaultContext()
        self._plant = self._diagram.GetSubsystemByName(self._scene.plant.get_name())
        self._context = self._plant.GetMyMutableContextFromRoot(self._root)
        self._simulator = Simulator_[AutoDiffXd](self._diagram, self._root)

    @property
    def num_velocities(self) -> int:
        return self._scene.plant.num_velocities()

    def derivative(self, directions: np.ndarray) -> DrakeDerivative:
        """Along the rows of `directions` of the velocity before, in the problem's order."""
        state = self._scene.positions_and_velocities()
        seeds = np.zeros((len(state), len(directions)))
        seeds[-self.num_velocities :] = _swap(directions).T
        self._root.SetTime(AutoDiffXd(0))
        self._simulator.Initialize()
        self._plant.SetPositionsAndVelocities(self._context, InitializeAutoDiff(state, seeds))
        self._timer.Reset()
        start = time.perf_counter()
        self._simulator.AdvanceTo(TIME_STEP)
        seconds = time.perf_counter() - start
        after = self._plant.GetVelocities(self._context)
        return DrakeDerivative(
            self._scene.problem(),
            _swap(ExtractGradient(after).T),
            self._timer.SolveAutoDiffSeconds(),
            seconds,
        )


def _swap(directions: np.ndarray) -> np.ndarray:
    """(linear, angular) of each body from Drake's (angular, linear), and back."""
    bodies = directions.reshape(len(directions), -1, 2, 3)
    return bodies[:, :, ::-1].reshape(len(directions), -1)
