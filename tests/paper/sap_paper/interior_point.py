"""Solves a problem as a cone program with Clarabel, an interior point method.

    min over v, γ:  1/2 |v - v*|_A^2 + 1/2 |γ|_R^2   with   J v - v̂ + R γ in F*, per contact

[Castro et al. 2021, equation (10)]: at the optimum γ is the impulse.
"""

from __future__ import annotations

from dataclasses import dataclass

import clarabel
import numpy as np
from scipy import sparse

from sap_islands.arrays import FloatArray
from sap_paper.convex_problem import ConvexProblem
from sap_paper.report import Claim, other_solver

# Clarabel's default for gap and feasibility. With looser tolerances its momentum error exceeds that
# of SAP.
TOLERANCE = 1e-8


@dataclass(frozen=True)
class Answer:
    """Solution by Clarabel.

    Attributes:
        velocity: [nv] v [m/s, rad/s].
        solve_s: Solve time that Clarabel reports [s].
        iterations: Iterations of the interior point method.
        momentum_error: e_m with Clarabel's impulses [-].
        slackness: e_μ [-].
    """

    velocity: FloatArray
    solve_s: float
    iterations: int
    momentum_error: float
    slackness: float


def solve(problem: ConvexProblem, tolerance: float = TOLERANCE) -> Answer:
    """Solves a problem on one thread."""
    A, J, R = problem.A, problem.J, problem.R.ravel()
    count, nv = len(problem.friction), A.shape[0]
    # The dual cone is μ |g_t| <= g_n: rows (g_n, μ g_t1, μ g_t2).
    mu = problem.friction
    scale = np.column_stack((mu, mu, np.ones(count))).ravel()
    order = (3 * np.arange(count)[:, None] + np.array([2, 0, 1])).ravel()
    G = (sparse.diags(scale) @ sparse.hstack([J, sparse.diags(R)])).tocsr()[order]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    settings.max_threads = 1
    program = clarabel.DefaultSolver(
        sparse.triu(sparse.block_diag([A, sparse.diags(R)]), format="csc"),
        np.concatenate([-(A @ problem.v_star), np.zeros(3 * count)]),
        sparse.csc_matrix(-G),
        (-scale * problem.v_hat.ravel())[order],
        [clarabel.SecondOrderConeT(3)] * count,
        settings,
    )
    found = program.solve()
    x = np.array(found.x)
    v, gamma = x[:nv], x[nv:]
    D, impulse = problem.scaling, J.T @ gamma
    largest = max(np.linalg.norm(D * (A @ v)), np.linalg.norm(D * impulse))
    residual = np.linalg.norm(D * (A @ (v - problem.v_star) - impulse))
    g = (J @ v - problem.v_hat.ravel() + R * gamma) * gamma
    slack = np.mean(np.abs(g.reshape(-1, 3).sum(axis=1))) / problem.cost(v) if count else 0.0
    return Answer(
        v, float(found.solve_time), int(found.iterations), float(residual / largest), float(slack)
    )


def iterations_claim(sap: float, iterations: float) -> Claim:
    """Claim about the mean iterations of interior point methods in the paper's two robot tasks."""
    return other_solver(
        "iterations per step of interior point, same steps",
        "Gurobi 10.1",
        f"Clarabel {iterations:.1f}",
        sap < iterations,
        f"tolerance 1e-8; SAP takes {sap:.2f} in these steps",
    )
