"""The contact problem as a cone program for Clarabel, an interior point method.

    min over v, s:  1/2 |v - v*|_A^2 + 1/2 |s|_R^2   with   J v + b - v_hat + R s in F*, per contact

[Castro et al. 2021, Section III]: at the optimum s is the impulse gamma.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata

import clarabel
import numpy as np
from scipy import sparse

from contact_arrays import ContactArrays


def version() -> str:
    return metadata.version("clarabel")


@dataclass
class ClarabelAnswer:
    solve_s: float
    iterations: int
    momentum_residual: float  # as the project's stopping test has it, over the whole problem
    velocity: np.ndarray


def _jacobian(problem: ContactArrays) -> sparse.csr_matrix:
    start = np.concatenate([[0], np.cumsum(problem.dofs)]).astype(int)
    rows, columns, values = [], [], []
    for i in range(problem.num_contacts):
        for tree, J in (
            (problem.tree_a[i], problem.J_a[i]),
            (problem.tree_b[i], problem.J_b[i]),
        ):
            if J is None:
                continue
            r, c = np.indices(J.shape)
            rows.append((3 * i + r).ravel())
            columns.append((start[tree] + c).ravel())
            values.append(J.ravel())
    shape = (3 * problem.num_contacts, problem.num_velocities)
    triplets = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    return sparse.csr_matrix(triplets, shape)


def regularization(problem: ContactArrays) -> tuple[np.ndarray, np.ndarray]:
    """R_t and R_n of every contact, by the full rule where they are not given."""
    if problem.R_t is not None and problem.R_n is not None:
        return problem.R_t, problem.R_n
    inverse = [np.linalg.inv(block) for block in problem.A]
    w = np.empty(problem.num_contacts)
    for i in range(problem.num_contacts):
        W = problem.J_a[i] @ inverse[problem.tree_a[i]] @ problem.J_a[i].T
        if problem.J_b[i] is not None:
            W = W + problem.J_b[i] @ inverse[problem.tree_b[i]] @ problem.J_b[i].T
        w[i] = np.linalg.norm(W) / 3
    dt = problem.time_step
    compliance = 1 / (dt * problem.stiffness * (dt + problem.tau_d))
    return problem.sigma * w, np.maximum(problem.beta**2 / (4 * np.pi**2) * w, compliance)


def solve(problem: ContactArrays, tolerance: float) -> ClarabelAnswer:
    """`tolerance` of the gap and of feasibility."""
    J = _jacobian(problem)
    A = sparse.block_diag(problem.A, format="csc")
    R_t, R_n = regularization(problem)
    R = np.stack([R_t, R_t, R_n], axis=1).ravel()
    count, nv = problem.num_contacts, problem.num_velocities
    v_hat = np.zeros((count, 3))
    v_hat[:, 2] = -problem.phi0 / (problem.time_step + problem.tau_d)
    if problem.surface_velocity is not None:
        v_hat -= problem.surface_velocity

    # Rows (mu n, t1, t2) hold mu times the normal component before the two tangential: the dual
    # cone is |g_t| mu <= g_n, so the row of the cone's axis is g_n and those of t are mu g_t.
    scale = np.stack([problem.mu, problem.mu, np.ones(count)], axis=1).ravel()
    order = (3 * np.arange(count)[:, None] + np.array([2, 0, 1])).ravel()
    G = sparse.diags(scale) @ sparse.hstack([J, sparse.diags(R)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    settings.max_threads = 1
    program = clarabel.DefaultSolver(
        sparse.triu(sparse.block_diag([A, sparse.diags(R)]), format="csc"),
        np.concatenate([-A @ problem.v_star, np.zeros(3 * count)]),
        sparse.csc_matrix(-G.tocsr()[order]),
        (scale * -v_hat.ravel())[order],
        [clarabel.SecondOrderConeT(3)] * count,
        settings,
    )
    answer = program.solve()
    x = np.array(answer.x)
    v, impulse = x[:nv], x[nv:]
    momentum, contact = A @ v, J.T @ impulse
    D = 1 / np.sqrt(A.diagonal())
    residual = np.linalg.norm(D * (A @ (v - problem.v_star) - contact))
    largest = max(np.linalg.norm(D * momentum), np.linalg.norm(D * contact))
    return ClarabelAnswer(answer.solve_time, answer.iterations, residual / largest, v)
