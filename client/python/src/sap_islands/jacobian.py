"""Jacobians of contacts, filled side by side, as the wire has them one after the other.

What adapters share: a contact between bodies A and B, of which one may be fixed to the world, or
both be in the same tree, becomes one or two blocks.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sap_islands.arrays import FloatArray
from sap_islands.problem import WORLD

IndexArray = NDArray[np.int64]


def cross(omega: FloatArray, arm: FloatArray) -> FloatArray:
    """ω × r for the columns of ω: [g, 3, n] and [g, 3] give [g, 3, n]; faster than NumPy's."""
    x, y, z = omega[:, 0], omega[:, 1], omega[:, 2]
    r_x, r_y, r_z = arm[:, :1], arm[:, 1:2], arm[:, 2:]
    product = np.empty_like(omega)
    product[:, 0] = y * r_z - z * r_y
    product[:, 1] = z * r_x - x * r_z
    product[:, 2] = x * r_y - y * r_x
    return product


class ContactJacobian:
    """Blocks of C contacts.

    Attributes:
        tree_a: [C] first tree of each contact.
        tree_b: [C] second tree, or `WORLD`.
        values: The blocks, row-major, one after the other.
    """

    def __init__(self, dofs: NDArray[np.uint32], trees: IndexArray) -> None:
        """Makes room.

        Args:
            dofs: [T] degrees of freedom of each tree.
            trees: [C, 2] trees of bodies A and B, at least one; -1: fixed to the world.
        """
        self._trees = trees
        moves = trees[:, 0] >= 0
        self.tree_a = np.where(moves, trees[:, 0], trees[:, 1]).astype(np.int32)
        differs = moves & (trees[:, 1] != self.tree_a)
        self.tree_b = np.where(differs, trees[:, 1], WORLD).astype(np.int32)
        sizes = dofs.astype(np.int64)
        size_a = sizes[self.tree_a]
        size_b = np.where(self.tree_b >= 0, sizes[self.tree_b], 0) if len(trees) else size_a
        ends = np.cumsum(3 * (size_a + size_b))
        self._sizes = np.column_stack((size_a, size_b))
        start_a = ends - 3 * (size_a + size_b)
        self._starts = np.column_stack((start_a, start_a + 3 * size_a))
        self.values: FloatArray = np.zeros(ends[-1] if len(ends) else 0)

    def sides(self) -> Iterator[tuple[int, int, IndexArray]]:
        """Groups of equal size: side 0 or 1 (A or B), n_t, and the contacts of the group [g]."""
        for side in (0, 1):
            tree = self._trees[:, side]
            size = self._sizes[np.arange(len(tree)), self._slot(side)]
            size = np.where(tree >= 0, size, 0)
            for n in np.unique(size[size > 0]).tolist():
                yield side, n, np.flatnonzero(size == n)

    def add(self, side: int, contacts: IndexArray, blocks: FloatArray) -> None:
        """Adds the velocities of one side, [g, 3, n] for the g contacts of a group."""
        start = self._starts[contacts, self._slot(side)[contacts]]
        n = blocks.shape[2]
        # Both sides may be in the same block, but within one side all places differ.
        self.values[start[:, None] + np.arange(3 * n)] += blocks.reshape(-1, 3 * n)

    def delassus(self, inverse_diagonal: FloatArray, first: IndexArray) -> FloatArray:
        """W = |J diag(A)^-1 J'| / 3 of each contact [C].

        Args:
            inverse_diagonal: [nv] of A.
            first: [T] where the velocities of each tree start.
        """
        total = np.zeros((len(self._trees), 3, 3))
        for slot, tree in ((0, self.tree_a), (1, self.tree_b)):
            size = self._sizes[:, slot]
            for n in np.unique(size[size > 0]).tolist():
                contacts = np.flatnonzero(size == n)
                span = np.arange(3 * n)
                blocks = self.values[self._starts[contacts, slot][:, None] + span]
                blocks = blocks.reshape(-1, 3, n)
                weights = inverse_diagonal[first[tree[contacts]][:, None] + span[:n]]
                total[contacts] += np.matmul(blocks * weights[:, None], blocks.transpose(0, 2, 1))
        norm: FloatArray = np.sqrt(np.square(total).sum(axis=(1, 2)))
        return norm / 3

    def _slot(self, side: int) -> IndexArray:
        """Which block of each contact a side is in: 0 or 1."""
        slot: IndexArray = (self._trees[:, side] != self.tree_a).astype(np.int64)
        return slot
