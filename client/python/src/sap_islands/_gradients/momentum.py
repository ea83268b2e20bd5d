"""Momentum A v of a problem: what an applied impulse adds to v*, and how that depends on A."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sap_islands.arrays import FloatArray
from sap_islands.problem import Problem

# Rows and columns of xx, yy, zz, xy, xz, yz in a tensor of inertia.
_ROW = np.array([0, 1, 2, 0, 0, 1])
_COLUMN = np.array([0, 1, 2, 1, 2, 2])


def velocity_change(problem: Problem, impulse: FloatArray) -> FloatArray:
    """A^-1 times an impulse [N s, N m s]: [nv], trees, then bodies [m/s, rad/s]."""
    pieces = []
    start = 0
    blocks = problem.trees.blocks()
    if problem.trees.coupled_a.size:
        blocks = [_whole_matrix(problem)]
    for A in blocks:
        pieces.append(np.linalg.solve(A, impulse[start : start + len(A)]))
        start += len(A)
    mass, inertia = _mass_and_inertia(problem)
    of_bodies = impulse[start:].reshape(-1, 6)
    linear = of_bodies[:, :3] / mass[:, None]
    angular = np.linalg.solve(_tensors(inertia), of_bodies[:, 3:, None])[:, :, 0]
    return np.concatenate([*pieces, np.hstack([linear, angular]).ravel()])


def momentum_change(
    problem: Problem, change: dict[str, FloatArray], velocity: FloatArray
) -> FloatArray:
    """Change of the momentum A v for changes of parts of A.

    Args:
        problem: The problem.
        change: Of "trees.dynamics_matrix", "trees.coupling_block", "bodies.mass",
            "bodies.inertia", with all entries; absent: 0.
        velocity: [nv] m/s, rad/s.
    """
    pieces = []
    dA = change.get("trees.dynamics_matrix", np.zeros(problem.trees.dynamics_matrix.size)).ravel()
    start = first = 0
    for n in problem.trees.dofs.tolist():
        block = dA[first : first + n * n].reshape(n, n)
        pieces.append((block + block.T) / 2 @ velocity[start : start + n])
        start, first = start + n, first + n * n
    if "trees.coupling_block" in change:
        for a, b, block in _couplings(problem, change["trees.coupling_block"]):
            pieces[a] = pieces[a] + block @ velocity[_slice(problem, b)]
            pieces[b] = pieces[b] + block.T @ velocity[_slice(problem, a)]
    count = problem.bodies.count
    of_bodies = velocity[start:].reshape(-1, 6)
    linear = change.get("bodies.mass", np.zeros(count))[:, None] * of_bodies[:, :3]
    tensors = _tensors(change.get("bodies.inertia", np.zeros((count, 6))))
    angular = (tensors @ of_bodies[:, 3:, None])[:, :, 0]
    return np.concatenate([*pieces, np.hstack([linear, angular]).ravel()])


def gradient_of_momentum(
    problem: Problem, path: str, left: FloatArray, right: FloatArray
) -> FloatArray:
    """Derivative of left' A right with respect to a part of A: the transpose of `momentum_change`.

    Args:
        problem: The problem.
        path: "trees.dynamics_matrix", "trees.coupling_block", "bodies.mass" or "bodies.inertia".
        left: [nv].
        right: [nv].
    """
    in_trees = int(problem.trees.dofs.sum())
    if path == "trees.dynamics_matrix":
        ends = np.cumsum(problem.trees.dofs)[:-1]
        pairs = zip(np.split(left[:in_trees], ends), np.split(right[:in_trees], ends), strict=True)
        blocks = [(np.outer(a, b) + np.outer(b, a)).ravel() / 2 for a, b in pairs]
        return np.concatenate(blocks) if blocks else np.empty(0)
    if path == "trees.coupling_block":
        blocks = []
        for tree_a, tree_b, _ in _couplings(problem, problem.trees.coupling_block):
            in_a, in_b = _slice(problem, tree_a), _slice(problem, tree_b)
            block = np.outer(left[in_a], right[in_b]) + np.outer(right[in_a], left[in_b])
            blocks.append(block.ravel())
        return np.concatenate(blocks) if blocks else np.empty(0)
    a, b = left[in_trees:].reshape(-1, 6), right[in_trees:].reshape(-1, 6)
    if path == "bodies.mass":
        return np.asarray((a[:, :3] * b[:, :3]).sum(axis=1))
    a, b = a[:, 3:], b[:, 3:]
    products = a[:, _ROW] * b[:, _COLUMN]
    return np.where(_ROW == _COLUMN, products, products + a[:, _COLUMN] * b[:, _ROW])


def _slice(problem: Problem, tree: int) -> slice:
    """The velocities of a tree."""
    start = int(problem.trees.dofs[:tree].sum())
    return slice(start, start + int(problem.trees.dofs[tree]))


def _couplings(problem: Problem, values: FloatArray) -> Iterator[tuple[int, int, FloatArray]]:
    """The pairs (a, b) of coupled trees, each with its [n_a, n_b] block of `coupling_block`."""
    trees = problem.trees
    values = values.ravel()
    first = 0
    for a, b in zip(trees.coupled_a.tolist(), trees.coupled_b.tolist(), strict=True):
        rows, columns = int(trees.dofs[a]), int(trees.dofs[b])
        yield a, b, values[first : first + rows * columns].reshape(rows, columns)
        first += rows * columns


def _whole_matrix(problem: Problem) -> FloatArray:
    """A of all trees, dense."""
    size = int(problem.trees.dofs.sum())
    A = np.zeros((size, size))
    for tree, block in enumerate(problem.trees.blocks()):
        here = _slice(problem, tree)
        A[here, here] = block
    for a, b, block in _couplings(problem, problem.trees.coupling_block):
        in_a, in_b = _slice(problem, a), _slice(problem, b)
        A[in_a, in_b] = block
        A[in_b, in_a] = block.T
    return A


def _mass_and_inertia(problem: Problem) -> tuple[FloatArray, FloatArray]:
    """[B] masses and [B, 6] inertias; single values are repeated."""
    bodies = problem.bodies
    mass = np.broadcast_to(bodies.mass, bodies.count)
    inertia = bodies.inertia
    if inertia.size == 6:
        inertia = inertia.reshape(6)
    elif inertia.size:
        inertia = inertia.reshape(-1, 6)
    return mass, np.broadcast_to(inertia, (bodies.count, 6))


def _tensors(inertia: FloatArray) -> FloatArray:
    """[B, 3, 3] of [B, 6]."""
    tensors = np.empty((len(inertia), 3, 3))
    tensors[:, _ROW, _COLUMN] = tensors[:, _COLUMN, _ROW] = inertia
    return tensors
