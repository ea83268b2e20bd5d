"""Contact problems as NumPy arrays, in the form of trees: what all solvers are given."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np


def skew(r: np.ndarray) -> np.ndarray:
    """[n, 3] -> [n, 3, 3] with skew(r) w = r x w."""
    S = np.zeros((len(r), 3, 3))
    S[:, 0, 1], S[:, 0, 2], S[:, 1, 2] = -r[:, 2], r[:, 1], -r[:, 0]
    return S - S.transpose(0, 2, 1)


def frames(normal: np.ndarray) -> np.ndarray:
    """[n, 3] unit normals -> [n, 3, 3] with rows t1, t2, n."""
    least = np.eye(3)[np.argmin(np.abs(normal), axis=1)]
    t1 = np.cross(normal, least)
    t1 /= np.linalg.norm(t1, axis=1, keepdims=True)
    return np.stack([t1, np.cross(normal, t1), normal], axis=1)


@dataclass
class ContactArrays:
    """Fields as in proto/sap/v1/problem.proto, with every contact given by its Jacobian."""

    time_step: float
    dofs: np.ndarray  # [T] uint32
    A: list[np.ndarray]  # T blocks [n_t, n_t]
    v_star: np.ndarray  # [sum n_t]
    guess: np.ndarray  # [sum n_t]
    tree_a: np.ndarray  # [C] int32
    tree_b: np.ndarray  # [C] int32, -1: the world
    J_a: list[np.ndarray]  # C blocks [3, n_a]
    J_b: list[np.ndarray | None]  # C blocks [3, n_b], None for the world
    phi0: np.ndarray  # [C]
    stiffness: np.ndarray  # [C]
    tau_d: np.ndarray  # [C]
    mu: np.ndarray  # [C]
    R_t: np.ndarray | None = None  # [C]
    R_n: np.ndarray | None = None  # [C]
    surface_velocity: np.ndarray | None = None  # [C, 3] in (t1, t2, n)
    beta: float = 1.0
    sigma: float = 1e-3
    diagonal_rule: bool = False

    @property
    def num_contacts(self) -> int:
        return len(self.tree_a)

    @property
    def num_velocities(self) -> int:
        return int(self.dofs.sum())


def relative_error(problem: ContactArrays, velocity: np.ndarray, best: np.ndarray) -> float:
    """|v - v_best|_A / |v_best|_A"""

    def square(v: np.ndarray) -> float:
        blocks = np.split(v, np.cumsum(problem.dofs)[:-1])
        return sum(block @ A @ block for block, A in zip(blocks, problem.A))

    return float(np.sqrt(square(velocity - best) / square(best)))


@dataclass
class Bodies:
    """Free rigid bodies in world axes; velocities are (of the centre of mass, angular)."""

    mass: np.ndarray  # [B]
    inertia: np.ndarray  # [B, 3, 3] about the centre of mass
    position: np.ndarray  # [B, 3]
    velocity: np.ndarray  # [B, 6]

    def v_star(self, gravity: np.ndarray, time_step: float) -> np.ndarray:
        """Velocities without contact after a step, gyroscopic term at its begin. [6 B]"""
        w = self.velocity[:, 3:]
        momentum = np.einsum("bij,bj->bi", self.inertia, w)
        gyroscopic = np.linalg.solve(self.inertia, np.cross(w, momentum)[:, :, None])[:, :, 0]
        change = np.hstack([np.broadcast_to(gravity, w.shape), -gyroscopic])
        return (self.velocity + time_step * change).ravel()

    def dynamics(self) -> list[np.ndarray]:
        blocks = np.zeros((len(self.mass), 6, 6))
        blocks[:, :3, :3] = self.mass[:, None, None] * np.eye(3)
        blocks[:, 3:, 3:] = self.inertia
        return list(blocks)


@dataclass
class PointContacts:
    """Contacts between bodies; body_b -1 is the world."""

    body_a: np.ndarray  # [C]
    body_b: np.ndarray  # [C]
    point: np.ndarray  # [C, 3]
    frame: np.ndarray  # [C, 3, 3] rows t1, t2, n, the normal from b to a


def _body_jacobian(
    bodies: Bodies, contacts: PointContacts, body: np.ndarray, sign: float
) -> np.ndarray:
    """[C, 3, 6]; the velocity of the point is v + w x r = v - skew(r) w."""
    arm = contacts.point - bodies.position[body]
    return sign * np.concatenate([contacts.frame, -contacts.frame @ skew(arm)], axis=2)


def _second_jacobians(bodies: Bodies, contacts: PointContacts) -> list[np.ndarray | None]:
    blocks = _body_jacobian(bodies, contacts, np.maximum(contacts.body_b, 0), -1.0)
    return [J if body >= 0 else None for J, body in zip(blocks, contacts.body_b)]


def from_bodies(
    bodies: Bodies,
    contacts: PointContacts,
    time_step: float,
    v_star: np.ndarray,
    guess: np.ndarray,
    **law,
) -> ContactArrays:
    """The problem of free bodies; `law` are the arrays of the contacts from phi0 on."""
    return ContactArrays(
        time_step=time_step,
        dofs=np.full(len(bodies.mass), 6, np.uint32),
        A=bodies.dynamics(),
        v_star=v_star,
        guess=guess,
        tree_a=contacts.body_a.astype(np.int32),
        tree_b=contacts.body_b.astype(np.int32),
        J_a=list(_body_jacobian(bodies, contacts, contacts.body_a, 1.0)),
        J_b=_second_jacobians(bodies, contacts),
        **law,
    )


def _array(message: dict, name: str, dtype=float) -> np.ndarray:
    return np.array(message.get(name, []), dtype)


def _dynamics(trees: dict, bodies: Bodies) -> list[np.ndarray]:
    flat, blocks, start = _array(trees, "dynamics_matrix"), [], 0
    for n in _array(trees, "dofs", int):
        blocks.append(flat[start : start + n * n].reshape(n, n))
        start += n * n
    return blocks + bodies.dynamics()


def _given_jacobians(contacts: dict, dofs: np.ndarray) -> tuple[list, list]:
    """Blocks of both sides of the contacts that come with a Jacobian."""
    flat, J_a, J_b, start = _array(contacts, "jacobian"), [], [], 0
    pairs = zip(_array(contacts, "tree_a", int), _array(contacts, "tree_b", int))
    for pair in pairs:
        for tree, blocks in zip(pair, (J_a, J_b)):
            n = dofs[tree] if tree >= 0 else 0
            blocks.append(flat[start : start + 3 * n].reshape(3, n) if n else None)
            start += 3 * n
    return J_a, J_b


def load(path: Path) -> ContactArrays:
    """A problem in the JSON form of tests/data, trees and bodies both."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt") as file:
        data = json.load(file)
    trees, bodies = data.get("trees", {}), data.get("bodies", {})
    contacts, between = data.get("contacts", {}), data.get("body_contacts", {})
    mass = _array(bodies, "mass")
    inertia = _array(bodies, "inertia").reshape(-1, 6)[:, [0, 3, 4, 3, 1, 5, 4, 5, 2]]
    free = Bodies(
        mass,
        inertia.reshape(-1, 3, 3),
        _array(bodies, "center_of_mass").reshape(-1, 3),
        np.zeros((len(mass), 6)),
    )
    num_trees = len(_array(trees, "dofs"))
    dofs = np.concatenate([_array(trees, "dofs", int), np.full(len(mass), 6)])

    def velocity(name: str) -> np.ndarray:
        return np.concatenate(
            [
                _array(part, name if part.get(name) else "free_motion_velocity")
                for part in (trees, bodies)
            ]
        )

    def law(name: str) -> np.ndarray:
        return np.concatenate([_array(contacts, name), _array(between, name)])

    points = PointContacts(
        _array(between, "body_a", int),
        _array(between, "body_b", int),
        _array(between, "point").reshape(-1, 3),
        frames(_array(between, "normal").reshape(-1, 3)),
    )
    J_a, J_b = _given_jacobians(contacts, dofs)
    J_a += list(_body_jacobian(free, points, points.body_a, 1.0))
    J_b += _second_jacobians(free, points)
    body_b = np.where(points.body_b < 0, -1, points.body_b + num_trees)
    regularization = data.get("regularization", {})
    R_t, R_n = law("regularization_t"), law("regularization_n")
    return ContactArrays(
        time_step=data["time_step"],
        dofs=dofs.astype(np.uint32),
        A=_dynamics(trees, free),
        v_star=velocity("free_motion_velocity"),
        guess=velocity("guess_velocity"),
        tree_a=np.r_[_array(contacts, "tree_a"), points.body_a + num_trees].astype(np.int32),
        tree_b=np.r_[_array(contacts, "tree_b"), body_b].astype(np.int32),
        J_a=J_a,
        J_b=J_b,
        phi0=law("signed_distance"),
        stiffness=law("stiffness"),
        tau_d=law("relaxation_time"),
        mu=law("friction"),
        R_t=R_t if len(R_t) else None,
        R_n=R_n if len(R_n) else None,
        beta=regularization.get("beta", 1.0),
        sigma=regularization.get("sigma", 1e-3),
        diagonal_rule=regularization.get("rule", "").endswith("DIAGONAL"),
    )
