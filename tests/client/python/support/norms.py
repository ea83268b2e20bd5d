"""The norm of the dynamics matrix, in which solutions are compared with certified ones."""

from __future__ import annotations

import math

import numpy as np
import sap_islands as sap
from sap_islands.arrays import FloatArray


def dynamics_blocks(problem: sap.Problem) -> list[FloatArray]:
    """The diagonal blocks of A: of all trees as one where any are coupled; then of each body."""
    blocks = list(problem.trees.blocks())
    if problem.trees.coupled_a.size:
        blocks = [_coupled(problem.trees, blocks)]
    bodies = problem.bodies
    for mass, inertia in zip(bodies.mass, bodies.inertia.reshape(-1, 6), strict=True):
        xx, yy, zz, xy, xz, yz = inertia
        block = mass * np.eye(6)
        block[3:, 3:] = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
        blocks.append(block)
    return blocks


def _coupled(trees: sap.Trees, blocks: list[FloatArray]) -> FloatArray:
    """The dynamics matrix of all trees."""
    start = np.append(0, np.cumsum(trees.dofs.astype(int)))
    matrix = np.zeros((start[-1], start[-1]))
    for tree, block in enumerate(blocks):
        matrix[start[tree] : start[tree + 1], start[tree] : start[tree + 1]] = block
    at = 0
    for a, b in zip(trees.coupled_a, trees.coupled_b, strict=True):
        shape = len(blocks[a]), len(blocks[b])
        block = trees.coupling_block[at : at + shape[0] * shape[1]].reshape(shape)
        matrix[start[a] : start[a + 1], start[b] : start[b + 1]] = block
        matrix[start[b] : start[b + 1], start[a] : start[a + 1]] = block.T
        at += block.size
    return matrix


def a_norm(blocks: list[FloatArray], v: FloatArray) -> float:
    """|v|_A."""
    total = 0.0
    start = 0
    for block in blocks:
        piece = v[start : start + len(block)]
        total += float(piece @ block @ piece)
        start += len(block)
    return math.sqrt(max(total, 0.0))


def relative_error(problem: sap.Problem, v: FloatArray, exact: FloatArray) -> float:
    """|v - exact|_A divided by the largest of |exact|_A, |v*|_A and |exact - v*|_A [-].

    The divisor is at least the norm of 1e-9 m/s, so that it is not round-off if all are 0.
    """
    blocks = dynamics_blocks(problem)
    v_star = np.concatenate(
        (problem.trees.free_motion_velocity.ravel(), problem.bodies.free_motion_velocity.ravel())
    )
    trace = sum(float(np.trace(block)) for block in blocks)
    scale = max(
        a_norm(blocks, exact),
        a_norm(blocks, v_star),
        a_norm(blocks, exact - v_star),
        1e-9 * math.sqrt(trace),
    )
    return a_norm(blocks, v - exact) / scale if scale > 0 else 0.0
