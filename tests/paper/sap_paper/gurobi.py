"""Solves a problem with Gurobi, whose free licence is limited to 200 variables.

    min over v, γ, u:  1/2 |v - v*|_A^2 + 1/2 |γ|_R^2   with   u = S (J v - v̂ + R γ),  |u_t| <= u_n

S multiplies the tangential rows by μ, which maps F* to the cone |u_t| <= u_n [Castro et al. 2021,
equation (10)].
"""

from __future__ import annotations

from dataclasses import dataclass

import gurobipy
import numpy as np
from scipy import sparse

from sap_islands.arrays import FloatArray
from sap_paper.convex_problem import ConvexProblem

TOLERANCE = 1e-8  # BarQCPConvTol, as in the paper
_MAX_VARIABLES = 200


@dataclass(frozen=True)
class Answer:
    """Solution by Gurobi.

    Attributes:
        velocity: [nv] v [m/s, rad/s].
        solve_s: Gurobi's `Runtime`, which excludes set-up, as in the paper [s].
        iterations: Iterations of the barrier method.
    """

    velocity: FloatArray
    solve_s: float
    iterations: int


def fits(problem: ConvexProblem) -> bool:
    """Whether the free licence allows a problem of this size."""
    return len(problem.v_star) + 6 * len(problem.friction) <= _MAX_VARIABLES


def solve(problem: ConvexProblem) -> Answer:
    """Solves a problem on one thread."""
    A, R, count = problem.A, problem.R.ravel(), len(problem.friction)
    mu, unbounded = problem.friction, -gurobipy.GRB.INFINITY
    scale = np.column_stack((mu, mu, np.ones(count))).ravel()
    with gurobipy.Env(params={"OutputFlag": 0}) as env, gurobipy.Model(env=env) as model:
        model.Params.Threads = 1
        model.Params.BarQCPConvTol = TOLERANCE
        v = model.addMVar(A.shape[0], lb=unbounded)
        gamma = model.addMVar(3 * count, lb=unbounded)
        lowest = np.tile([-np.inf, -np.inf, 0.0], (count, 1))
        u = model.addMVar((count, 3), lb=lowest)
        rows = sparse.diags(scale) @ problem.J
        model.addConstr(
            u.reshape(-1) == rows @ v + (scale * R) * gamma - scale * problem.v_hat.ravel()
        )
        for i in range(count):
            model.addConstr(u[i, 0] * u[i, 0] + u[i, 1] * u[i, 1] <= u[i, 2] * u[i, 2])
        model.setObjective(
            0.5 * (v @ A @ v) - (A @ problem.v_star) @ v + 0.5 * (gamma @ sparse.diags(R) @ gamma)
        )
        model.optimize()
        return Answer(np.array(v.X), float(model.Runtime), int(model.BarIterCount))
