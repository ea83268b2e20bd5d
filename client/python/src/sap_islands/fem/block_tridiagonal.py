"""Solves with the matrix of a mesh as a block tridiagonal one.

Nodes in the order of their distance in the mesh, in edges, from one at its rim couple with those at
the same distance, one less and one more. Of cloth and long bodies the blocks are small.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sap_islands.arrays import FloatArray, IndexArray

_LEAST_BLOCK = 16  # nodes; smaller levels are joined, since each block costs calls of LAPACK


def solve(
    A_nn: FloatArray, a: IndexArray, b: IndexArray, A_ab: FloatArray, right: FloatArray
) -> FloatArray:
    """Solves A u = right by elimination of one block after the other.

    Args:
        A_nn: [N, 3, 3] diagonal blocks.
        a: [K] first node of each pair.
        b: [K] second node.
        A_ab: [K, 3, 3] their blocks; those of (b, a) are the transposes.
        right: [N, 3].

    Returns:
        u, [N, 3].
    """
    level = _levels(len(A_nn), a, b)
    order = np.argsort(level, kind="stable")
    starts = np.flatnonzero(np.diff(level[order], prepend=-1))
    # A block begins with the first of the levels that begin within the same 16 places.
    begins = starts[np.unique(starts // _LEAST_BLOCK, return_index=True)[1]]
    strips = _strips(A_nn, a, b, A_ab, order, begins)
    parts = np.split(right[order], begins[1:])
    u: list[Any] = [part.reshape(-1, 1) for part in parts]
    # Diagonal blocks become their Schur complements S_i = A_ii - A_ij S_j^-1 A_ji, j = i - 1.
    eliminated = []
    S: Any = strips[0]
    for i in range(1, len(u)):
        width = len(S)
        lower, diagonal = strips[i][:, :width], strips[i][:, width:]
        solved = np.linalg.solve(S, np.hstack((lower.T, u[i - 1])))
        eliminated.append(solved[:, :-1])
        u[i - 1] = solved[:, -1:]
        u[i] = u[i] - lower @ u[i - 1]
        S = diagonal - lower @ eliminated[-1]
    u[-1] = np.linalg.solve(S, u[-1])
    for i in range(len(u) - 2, -1, -1):
        u[i] = u[i] - eliminated[i] @ u[i + 1]
    result = np.empty_like(right)
    result[order] = np.concatenate(u).reshape(-1, 3)
    return result


def _strips(
    A_nn: FloatArray,
    a: IndexArray,
    b: IndexArray,
    A_ab: FloatArray,
    order: IndexArray,
    begins: IndexArray,
) -> list[FloatArray]:
    """For each block the matrix [A_ij A_ii] of the block before and itself."""
    count = len(order)
    place = np.empty(count, np.int64)
    place[order] = np.arange(count)
    row = place[np.concatenate((np.arange(count), a, b))]
    column = place[np.concatenate((np.arange(count), b, a))]
    entries = np.concatenate((A_nn, A_ab, A_ab.transpose(0, 2, 1)))
    block = np.searchsorted(begins, np.arange(count), side="right") - 1
    lower = block[row] >= block[column]
    row, column, entries = row[lower], column[lower], entries[lower]
    by_block = np.argsort(block[row], kind="stable")
    pieces = np.split(by_block, np.searchsorted(block[row][by_block], np.arange(1, len(begins))))
    strips = []
    ends = np.append(begins[1:], count)
    for i, (begin, end, piece) in enumerate(zip(begins, ends, pieces, strict=True)):
        left = begins[max(i - 1, 0)]
        strip = np.zeros((end - begin, 3, end - left, 3))
        strip[row[piece] - begin, :, column[piece] - left] = entries[piece]
        strips.append(strip.reshape(3 * (end - begin), -1))
    return strips


def _levels(count: int, a: IndexArray, b: IndexArray) -> IndexArray:
    """[N] distance of each node from one at the rim of its component."""
    level = np.full(count, -1)
    while (level < 0).any():
        near = _distances(count, a, b, int(np.argmin(level)))
        far = _distances(count, a, b, int(np.argmax(near)))
        level = np.maximum(level, far)
    return level


def _distances(count: int, a: IndexArray, b: IndexArray, start: int) -> IndexArray:
    """[N] edges between each node and `start`; -1: there is no path."""
    distance = np.full(count, -1)
    distance[start] = 0
    front = np.array([start])
    step = 0
    while len(front):
        step += 1
        is_front = np.zeros(count, bool)
        is_front[front] = True
        reached = np.concatenate((b[is_front[a]], a[is_front[b]]))
        front = np.unique(reached[distance[reached] < 0])
        distance[front] = step
    return distance
