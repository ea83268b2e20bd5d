"""A problem as matrices, for the quantities of the paper that the service does not return.

    l(v) = 1/2 |v - v*|_A^2 + sum_i 1/2 γ_i' R_i γ_i
    γ_i = P_F(y_i),   y_i = -R_i^-1 (v_c,i - v̂_i)
    ∇l = A (v - v*) - J' γ,      H = A + J' G J,      G_i = -dγ_i / dv_c,i

[Castro et al. 2021, Sections III and IV]. Implemented from the equations alone, as an oracle that
is independent of the service. The tangents of body contacts may differ from the service's; no
result of this module depends on them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from sap_islands.arrays import FloatArray
from sap_islands.problem import Problem
from sap_islands.solution import Solution

_SIGMA, _BETA = 1e-3, 1.0


@dataclass(frozen=True, eq=False)
class ConvexProblem:
    """Matrices of a problem with C contacts and nv velocities.

    Attributes:
        A: [nv, nv] block diagonal [kg, kg m, kg m²].
        J: [3 C, nv] rows (t1, t2, n) of each contact [-, m].
        R: [C, 3] diagonals of R_i [1/kg].
        v_hat: [C, 3] v̂ minus the surface velocity [m/s].
        friction: [C] μ [-].
        v_star: [nv] free-motion velocity [m/s, rad/s].
        weight: [C] w [1/kg].
    """

    A: sparse.csc_matrix
    J: sparse.csr_matrix
    R: FloatArray
    v_hat: FloatArray
    friction: FloatArray
    v_star: FloatArray
    weight: FloatArray

    @classmethod
    def of(cls, problem: Problem) -> ConvexProblem:
        """Makes the matrices of a problem; w that is not given is estimated with full A."""
        blocks, v_star = _dynamics(problem)
        inverses = [np.linalg.inv(block) for block in blocks]
        start = np.concatenate(([0], np.cumsum([len(block) for block in blocks]))).astype(int)
        rows = [*_contact_rows(problem), *_body_rows(problem)]
        weight = np.empty(len(rows))
        triplets: list[list[FloatArray]] = [[], [], []]
        for i, sides in enumerate(rows):
            W = np.zeros((3, 3))
            for tree, block in sides:
                W += block @ inverses[tree] @ block.T
                row, column = np.indices(block.shape)
                triplets[0].append(block.ravel())
                triplets[1].append((3 * i + row).ravel())
                triplets[2].append((start[tree] + column).ravel())
            weight[i] = np.linalg.norm(W) / 3
        values, r, c = (np.concatenate(t) if t else np.empty(0) for t in triplets)
        weight = _given(problem, "delassus_estimate", weight)
        return cls(
            A=sparse.block_diag(blocks, format="csc"),
            J=sparse.csr_matrix((values, (r, c)), (3 * len(rows), start[-1])),
            R=_regularization(problem, weight),
            v_hat=_v_hat(problem, len(rows)),
            friction=_both(problem, "friction"),
            v_star=v_star,
            weight=weight,
        )

    @cached_property
    def scaling(self) -> FloatArray:
        """The diagonal of D = diag(A)^-1/2 [nv]."""
        scaling: FloatArray = 1 / np.sqrt(self.A.diagonal())
        return scaling

    def y(self, v: FloatArray) -> FloatArray:
        """y_i of each contact [C, 3] [N s]."""
        y: FloatArray = -((self.J @ v).reshape(-1, 3) - self.v_hat) / self.R
        return y

    def momentum_error(self, v: FloatArray) -> float:
        """e_m = |D ∇l| / max(|D A v|, |D J'γ|) of the paper [-]."""
        impulse = self.J.T @ project(self.y(v), self.friction, self.R).ravel()
        gradient = self.A @ (v - self.v_star) - impulse
        D = self.scaling
        largest = max(np.linalg.norm(D * (self.A @ v)), np.linalg.norm(D * impulse))
        return float(np.linalg.norm(D * gradient) / largest) if largest else 0.0

    def cost(self, v: FloatArray) -> float:
        """l(v) [J]."""
        gamma = project(self.y(v), self.friction, self.R)
        apart = v - self.v_star
        return float(0.5 * apart @ (self.A @ apart) + 0.5 * np.sum(self.R * gamma**2))

    def slackness(self, solution: Solution) -> float:
        """e_μ = mean |g_i · γ_i| / l of the paper [-], with g = v_c - v̂ + R γ of the solution."""
        gamma = solution.impulse
        g = solution.contact_velocity - self.v_hat + self.R * gamma
        if solution.cost == 0.0:  # v = v*: no contact has an impulse
            return 0.0
        return float(np.mean(np.abs(np.sum(g * gamma, axis=1))) / solution.cost)

    def hessian(self, v: FloatArray) -> FloatArray:
        """H at v [nv, nv]."""
        G = impulse_derivatives(self.y(v), self.friction, self.R)
        H: FloatArray = (self.A + self.J.T @ sparse.block_diag(G, format="csr") @ self.J).toarray()
        return H


def project(y: FloatArray, friction: FloatArray, R: FloatArray) -> FloatArray:
    """γ = P_F(y) in the norm of R, each [C, 3] [N s]: equation (17) of the paper."""
    y_r = np.hypot(y[:, 0], y[:, 1])
    y_n, ratio = y[:, 2], R[:, 0] / R[:, 2]
    stick = (y_n > 0) & (y_r <= friction * y_n)
    open_ = y_n <= -friction * ratio * y_r
    gamma_n = (y_n + friction * ratio * y_r) / (1 + friction**2 * ratio)
    with np.errstate(invalid="ignore", divide="ignore"):
        direction = np.where(y_r[:, None] > 0, y[:, :2] / y_r[:, None], 0.0)
    gamma = np.column_stack(((friction * gamma_n)[:, None] * direction, gamma_n))
    gamma[stick] = y[stick]
    gamma[open_ & ~stick] = 0.0
    return gamma


def impulse_derivatives(y: FloatArray, friction: FloatArray, R: FloatArray) -> list[FloatArray]:
    """G_i = (dγ_i / dy_i) R_i^-1 of each contact, [3, 3] [kg]."""
    derivatives: list[FloatArray] = []
    for y_i, mu, R_i in zip(y, friction, R, strict=True):
        y_r, y_n, ratio = float(np.hypot(y_i[0], y_i[1])), y_i[2], R_i[0] / R_i[2]
        if y_n > 0 and y_r <= mu * y_n:
            derivatives.append(np.diag(1 / R_i))
            continue
        if y_n <= -mu * ratio * y_r:
            derivatives.append(np.zeros((3, 3)))
            continue
        t = np.array([y_i[0] / y_r, y_i[1] / y_r, 0.0])
        n = np.array([0.0, 0.0, 1.0])
        gamma_n = (y_n + mu * ratio * y_r) / (1 + mu**2 * ratio)
        slope = (mu * ratio * t + n) / (1 + mu**2 * ratio)
        across = np.diag([1.0, 1.0, 0.0]) - np.outer(t, t)
        derivative = np.outer(mu * t + n, slope) + mu * gamma_n / y_r * across
        derivatives.append(derivative / R_i)
    return derivatives


_Sides = list[tuple[int, FloatArray]]


def _dynamics(problem: Problem) -> tuple[list[FloatArray], FloatArray]:
    blocks = problem.trees.blocks()
    bodies = problem.bodies
    for m, (xx, yy, zz, xy, xz, yz) in zip(bodies.mass, bodies.inertia.reshape(-1, 6), strict=True):
        block = np.zeros((6, 6))
        block[:3, :3] = m * np.eye(3)
        block[3:, 3:] = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
        blocks.append(block)
    v_star = (problem.trees.free_motion_velocity, bodies.free_motion_velocity)
    return blocks, np.concatenate([part.ravel() for part in v_star])


def _contact_rows(problem: Problem) -> list[_Sides]:
    """(tree, Jacobian block) of each side of each contact."""
    contacts = problem.contacts
    sizes = [*problem.trees.dofs.tolist(), *[6] * problem.bodies.count]
    rows, at = [], 0
    for a, b in zip(contacts.tree_a.tolist(), contacts.tree_b.tolist(), strict=True):
        sides = []
        for tree in (a, b):
            if tree >= 0:
                n = sizes[tree]
                sides.append((tree, contacts.jacobian[at : at + 3 * n].reshape(3, n)))
                at += 3 * n
        rows.append(sides)
    return rows


def _body_rows(problem: Problem) -> list[_Sides]:
    contacts = problem.body_contacts
    center = problem.bodies.center_of_mass.reshape(-1, 3)
    trees = problem.trees.count
    rows = []
    points, normals = contacts.point.reshape(-1, 3), contacts.normal.reshape(-1, 3)
    for i, (point, n) in enumerate(zip(points, normals, strict=True)):
        t1 = np.cross(n, np.eye(3)[np.argmin(np.abs(n))])
        t1 /= np.linalg.norm(t1)
        frame = np.stack((t1, np.cross(n, t1), n))
        sides = []
        for body, sign in ((contacts.body_a[i], 1.0), (contacts.body_b[i], -1.0)):
            if body >= 0:
                arm = np.cross(point - center[body], frame)
                sides.append((trees + int(body), sign * np.hstack((frame, arm))))
        rows.append(sides)
    return rows


def _both(problem: Problem, name: str) -> FloatArray:
    """A field of the contacts and of the body contacts, concatenated."""
    groups = (problem.contacts, problem.body_contacts)
    return np.concatenate([getattr(group, name).ravel() for group in groups])


def _given(problem: Problem, name: str, otherwise: FloatArray) -> FloatArray:
    """A field of both groups, concatenated, with `otherwise` where a group has none."""
    values, first = otherwise.copy(), 0
    for group in (problem.contacts, problem.body_contacts):
        array = getattr(group, name)
        if array.size:
            values[first : first + group.count] = array
        first += group.count
    return values


def _regularization(problem: Problem, w: FloatArray) -> FloatArray:
    rule, dt = problem.regularization, problem.time_step
    sigma = _SIGMA if rule.sigma is None else rule.sigma
    beta = _BETA if rule.beta is None else rule.beta
    k, tau_d = _both(problem, "stiffness"), _both(problem, "relaxation_time")
    R_n = np.maximum(beta**2 / (4 * np.pi**2) * w, 1 / (dt * k * (dt + tau_d)))
    R_n = _given(problem, "regularization_n", R_n)
    R_t = _given(problem, "regularization_t", sigma * w)
    return np.column_stack((R_t, R_t, R_n))


def _v_hat(problem: Problem, count: int) -> FloatArray:
    v_hat = np.zeros((count, 3))
    distance, tau_d = _both(problem, "signed_distance"), _both(problem, "relaxation_time")
    v_hat[:, 2] = -distance / (problem.time_step + tau_d)
    moving = problem.contacts.surface_velocity
    if moving.size:
        v_hat[: len(moving)] -= moving
    return v_hat
