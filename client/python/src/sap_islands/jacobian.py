"""Jacobians of contacts, made for all contacts at once, in the order that the wire has them.

What adapters share. A contact between bodies A and B has one side for each of them, in the tree of
that body. Sides become blocks of 3 × n_t numbers, one after the other; those of both sides in one
tree are added, and what is fixed to the world has none. Sides are numbered 2 c for A and 2 c + 1
for B of contact c.

A block is the product of what depends on the contact and what depends on the body. With the motion
axes (ω_j, u_j) of the dofs that move the body, u_j at the origin of the world, the velocity of the
contact point p along the axis f_k is

    f_k · (u_j + ω_j × p) = (p × f_k, f_k) · (ω_j, u_j)

Arrays are made component by component, so that the loops within NumPy are the long ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sap_islands.arrays import FloatArray, IntArray
from sap_islands.problem import WORLD

IndexArray = NDArray[np.int64]

_SIGNS = np.array([-1.0, 1.0]).reshape(1, 2, 1, 1)  # v_c is that of B relative to A


def contact_wrenches(position: FloatArray, frame: FloatArray) -> FloatArray:
    """∓ (p × f_k, f_k) of both sides of every contact, [2 C, 3, 6].

    Args:
        position: [C, 3] of the contact points.
        frame: [C, 3, 3] rows t1, t2, n.
    """
    ring = np.empty((5, 4, len(position)))
    ring[:3, :3] = frame.transpose(2, 1, 0)
    ring[:3, 3] = position.T
    moment = _cross(ring, slice(3, 4), slice(0, 3))
    wrench = np.empty((len(position), 1, 3, 6))
    wrench[:, 0, :, :3] = moment.transpose(2, 1, 0)
    wrench[:, 0, :, 3:] = ring[:3, :3].transpose(2, 1, 0)
    of_sides: FloatArray = wrench * _SIGNS
    return of_sides.reshape(-1, 3, 6)


def at_origin(omega: FloatArray, velocity: FloatArray, point: FloatArray) -> FloatArray:
    """(ω, u) with u at the origin of the world, and a last row of zeros [n + 1, 6].

    Args:
        omega: [n, 3] angular velocities.
        velocity: [n, 3] velocities at the points.
        point: [n, 3] where these are.
    """
    ring = np.empty((5, 2, len(omega)))
    ring[:3, 0] = omega.T
    ring[:3, 1] = point.T
    motion = np.zeros((len(omega) + 1, 6))
    motion[:-1, :3] = omega
    np.add(velocity, _cross(ring, slice(1, 2), slice(0, 1))[:, 0].T, out=motion[:-1, 3:])
    return motion


def _cross(ring: FloatArray, first: slice, second: slice) -> FloatArray:
    """Cross products of vectors whose components x, y, z are in ring[:3].

    What is behind becomes x and y again, so that nothing but slices are taken.
    """
    ring[3:] = ring[:2]
    product: FloatArray = ring[1:4, first] * ring[2:5, second]
    product -= ring[2:5, first] * ring[1:4, second]
    return product


class SideGroup(NamedTuple):
    """Sides in trees of n degrees of freedom.

    Attributes:
        n: The size of these trees.
        sides: [g] which.
        every: Whether these are all sides there are.
    """

    n: int
    sides: IndexArray
    every: bool


class JacobianPlan:
    """Which block each side of C contacts belongs to, and where that is.

    Attributes:
        tree_a: [C] first tree of each contact.
        tree_b: [C] second tree, or `WORLD`.
        groups: The sides that are not fixed, by the size of their trees.
    """

    def __init__(self, sizes: IndexArray, distinct: Iterable[int], trees: IntArray) -> None:
        """Finds the places.

        Args:
            sizes: [T + 1] degrees of freedom of each tree, and 0 for what is fixed.
            distinct: What these are, but 0.
            trees: [C, 2] trees of bodies A and B, at least one; -1: fixed to the world.
        """
        a, b = trees[:, 0], trees[:, 1]
        a_is_fixed, in_one = a < 0, a == b
        self.tree_a: IntArray = np.where(a_is_fixed, b, a)
        self.tree_b: IntArray = np.where(a_is_fixed | in_one, WORLD, b)
        self._tree = trees.ravel()
        self._folded: IndexArray = in_one.nonzero()[0]  # contacts with both sides in one block
        size = sizes.take(self._tree)
        self.groups = []
        for n in distinct:
            sides = (size == n).nonzero()[0]
            if len(sides):
                self.groups.append(SideGroup(n, sides, len(sides) == len(size)))
        self._own = size  # 0 where the block is that of the other side
        self._start: IndexArray = np.empty(0, np.int64)
        if len(self._folded) or len(self.groups) > 1:
            self._find_starts()

    def assemble(self, blocks: Sequence[FloatArray]) -> FloatArray:
        """Values of the Jacobian, as the wire has them, from the blocks [g, 3, n] of each group."""
        if not len(self._start):  # there is one group, and each side has a block of its own
            return blocks[0].reshape(-1) if blocks else np.empty(0)
        values = np.zeros(self._start[-1])
        for group, of_group in zip(self.groups, blocks, strict=True):
            width = 3 * group.n
            places = self._start[group.sides][:, None] + np.arange(width)
            rows = of_group.reshape(-1, width)
            if not len(self._folded):
                values[places] = rows
                continue
            # Both sides may be in the same block, but among those of either body all places differ.
            for body in (0, 1):
                of_body = group.sides % 2 == body
                values[places[of_body]] += rows[of_body]
        return values

    def delassus(
        self, values: FloatArray, inverse_diagonal: FloatArray, first: IndexArray
    ) -> FloatArray:
        """W = |J diag(A)^-1 J'| / 3 of each contact [C].

        Args:
            values: Of the Jacobian.
            inverse_diagonal: [nv] of A.
            first: [T] where the velocities of each tree start.
        """
        total = np.zeros((len(self._own), 3, 3))
        for n, sides, _ in self.groups:
            blocks = values
            if len(self._start):
                sides = sides[self._own[sides] > 0]
                blocks = values[self._start[sides][:, None] + np.arange(3 * n)]
            blocks = blocks.reshape(-1, 3, n)
            weights = inverse_diagonal[first[self._tree[sides]][:, None] + np.arange(n)]
            total[sides] = np.matmul(blocks * weights[:, None], blocks.transpose(0, 2, 1))
        of_contact = total[::2] + total[1::2]
        norm: FloatArray = np.sqrt(np.square(of_contact).sum(axis=(1, 2)))
        return norm / 3

    def _find_starts(self) -> None:
        """Where the block of each side starts, and where the last one ends [2 C + 1]."""
        self._own = self._own.copy()
        self._own[2 * self._folded + 1] = 0
        self._start = np.zeros(len(self._own) + 1, np.int64)
        np.cumsum(3 * self._own, out=self._start[1:])
        self._start[2 * self._folded + 1] = self._start[2 * self._folded]
