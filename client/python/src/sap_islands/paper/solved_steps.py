"""What is kept of every step that the service has solved."""

from __future__ import annotations

from dataclasses import dataclass, field

from sap_islands.problem import Problem
from sap_islands.solution import Solution


@dataclass
class SolvedSteps:
    """One entry per step.

    Attributes:
        contacts: Number of contacts.
        iterations: Of Newton, of the island that took most.
        momentum: What the tolerance is compared with, largest of islands [-].
        solve_s: Time of the solve on the server [s].
        problems: Every so many steps' problem.
    """

    contacts: list[int] = field(default_factory=list)
    iterations: list[int] = field(default_factory=list)
    momentum: list[float] = field(default_factory=list)
    solve_s: list[float] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def add(self, problem: Problem, solution: Solution, every: int) -> None:
        """Adds a step, and its problem if it is one of every so many."""
        if len(self.contacts) % every == 0:
            self.problems.append(problem)
        self.contacts.append(problem.contacts.count)
        self.iterations.append(int(solution.islands.iterations.max(initial=0)))
        self.momentum.append(float(solution.islands.momentum_residual.max(initial=0)))
        timings = solution.timings
        self.solve_s.append(timings.islands_s + timings.solve_s)
