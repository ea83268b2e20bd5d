"""SAP and Clarabel timed on the same problems, with the same guess and as many repetitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sap_islands.client import Client
from sap_islands.options import Options
from sap_islands.problem import Problem
from sap_islands.solution import Solution
from sap_paper import interior_point
from sap_paper.convex_problem import ConvexProblem

REPEAT = 3  # the fastest counts


@dataclass(frozen=True)
class Compared:
    """Means over the problems, unless said otherwise.

    Attributes:
        problems: Number of problems.
        sap_s: Time of SAP [s].
        clarabel_s: Time of Clarabel [s].
        sap_iterations: Newton iterations of each problem, of the island with the most [-].
        clarabel_iterations: Iterations of each problem [-].
        clarabel_momentum: e_m of each problem [-].
    """

    problems: int
    sap_s: float
    clarabel_s: float
    sap_iterations: list[int]
    clarabel_iterations: list[int]
    clarabel_momentum: list[float]

    @property
    def speed_up(self) -> float:
        """Time of Clarabel over that of SAP [-]."""
        return self.clarabel_s / self.sap_s


def compare(client: Client, problems: Sequence[Problem], options: Options) -> Compared:
    """Solves every problem by both; SAP from the guess of the problem."""
    with client.session(options) as session:
        sap = [solve_timed(session.step, problem) for problem in problems]
    clarabel = [fastest(ConvexProblem.of(problem)) for problem in problems]
    return Compared(
        problems=len(problems),
        sap_s=float(np.mean([seconds for _, seconds in sap])),
        clarabel_s=float(np.mean([answer.solve_s for answer in clarabel])),
        sap_iterations=[int(solution.islands.iterations.max(initial=0)) for solution, _ in sap],
        clarabel_iterations=[answer.iterations for answer in clarabel],
        clarabel_momentum=[answer.momentum_error for answer in clarabel],
    )


def solve_timed(solve: Callable[[Problem], Solution], problem: Problem) -> tuple[Solution, float]:
    """The solution of the service, and the least time of its solve on the server [s]."""
    solutions = [solve(problem) for _ in range(REPEAT)]
    return solutions[0], min(s.timings.solve_s + s.timings.islands_s for s in solutions)


def fastest(matrices: ConvexProblem) -> interior_point.Answer:
    """The answer of Clarabel that took the least time."""
    answers = [interior_point.solve(matrices) for _ in range(REPEAT)]
    return min(answers, key=lambda answer: answer.solve_s)
