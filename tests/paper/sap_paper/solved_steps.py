"""Statistics of the steps of a simulation, and a sample of its problems."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

import numpy as np

from sap_islands.arrays import FloatArray
from sap_islands.problem import Problem
from sap_islands.solution import Solution


@dataclass
class SolvedSteps:
    """Lists with one entry per step, except `problems` and `sampled`.

    Attributes:
        contacts: Number of contacts.
        iterations: Newton iterations of the island with the most.
        momentum: Largest momentum residual of the islands [-].
        solve_s: Time of the solve on the server [s].
        problems: The problems of a sample of the steps, with the guess of the session.
        sampled: The numbers of these steps.
    """

    contacts: list[int] = field(default_factory=list)
    iterations: list[int] = field(default_factory=list)
    momentum: list[float] = field(default_factory=list)
    solve_s: list[float] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    sampled: list[int] = field(default_factory=list)
    _velocity: FloatArray = field(default_factory=lambda: np.empty(0), repr=False)

    def add(self, problem: Problem, solution: Solution, every: int) -> None:
        """Adds a step; keeps the problem of every `every`-th step, but not of the first."""
        step = len(self.contacts)
        if step and step % every == 0:
            self.problems.append(with_guess(problem, self._velocity))
            self.sampled.append(step)
        self._velocity = solution.velocity
        self.contacts.append(problem.contacts.count)
        self.iterations.append(int(solution.islands.iterations.max(initial=0)))
        self.momentum.append(float(solution.islands.momentum_residual.max(initial=0)))
        timings = solution.timings
        self.solve_s.append(timings.islands_s + timings.solve_s)


def with_guess(problem: Problem, velocity: FloatArray) -> Problem:
    """The problem with an initial guess, `velocity` [nv] [m/s, rad/s]; its arrays are shared."""
    guessed, dofs = copy.copy(problem), int(problem.trees.dofs.sum())
    guessed.trees, guessed.bodies = copy.copy(problem.trees), copy.copy(problem.bodies)
    guessed.trees.guess_velocity = velocity[:dofs]
    guessed.bodies.guess_velocity = velocity[dofs:].reshape(-1, 6)
    return guessed
