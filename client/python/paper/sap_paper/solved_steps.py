"""Statistics of the steps of a simulation, and a sample of its problems."""

from __future__ import annotations

from dataclasses import dataclass, field

from sap_islands.problem import Problem
from sap_islands.solution import Solution


@dataclass
class SolvedSteps:
    """Lists with one entry per step, except `problems`.

    Attributes:
        contacts: Number of contacts.
        iterations: Newton iterations of the island with the most.
        momentum: Largest momentum residual of the islands [-].
        solve_s: Time of the solve on the server [s].
        problems: The problems of a sample of the steps.
    """

    contacts: list[int] = field(default_factory=list)
    iterations: list[int] = field(default_factory=list)
    momentum: list[float] = field(default_factory=list)
    solve_s: list[float] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def add(self, problem: Problem, solution: Solution, every: int) -> None:
        """Adds a step; keeps the problem of every `every`-th step, from the first on."""
        if len(self.contacts) % every == 0:
            self.problems.append(problem)
        self.contacts.append(problem.contacts.count)
        self.iterations.append(int(solution.islands.iterations.max(initial=0)))
        self.momentum.append(float(solution.islands.momentum_residual.max(initial=0)))
        timings = solution.timings
        self.solve_s.append(timings.islands_s + timings.solve_s)
