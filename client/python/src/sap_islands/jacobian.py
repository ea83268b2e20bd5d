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

from collections.abc import Iterable, Iterator

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
    count = len(position)
    axes = _ring(frame.transpose(2, 1, 0))
    points = _ring(position.T)[:, None]
    moment = points[1:4] * axes[2:5]
    moment -= points[2:5] * axes[1:4]
    wrench = np.empty((count, 1, 3, 6))
    wrench[:, 0, :, :3] = moment.transpose(2, 1, 0)
    wrench[:, 0, :, 3:] = axes[:3].transpose(2, 1, 0)
    of_sides: FloatArray = wrench * _SIGNS
    return of_sides.reshape(-1, 3, 6)


def at_origin(omega: FloatArray, velocity: FloatArray, point: FloatArray) -> FloatArray:
    """(ω, u) with u at the origin of the world [n, 6].

    Args:
        omega: [n, 3] angular velocities.
        velocity: [n, 3] velocities at the points.
        point: [n, 3] where these are.
    """
    turning, points = _ring(omega.T), _ring(point.T)
    motion = np.empty((len(omega), 6))
    motion[:, :3] = omega
    shift = points[1:4] * turning[2:5]
    shift -= points[2:5] * turning[1:4]
    np.add(velocity, shift.T, out=motion[:, 3:])
    return motion


def _ring(components: FloatArray) -> FloatArray:
    """x, y, z and x, y again, with which a cross product takes nothing but slices."""
    ring = np.empty((5, *components.shape[1:]))
    ring[:3] = components
    ring[3:] = ring[:2]
    return ring


class ContactJacobian:
    """Blocks of C contacts.

    Attributes:
        tree_a: [C] first tree of each contact.
        tree_b: [C] second tree, or `WORLD`.
        values: The blocks, row-major, one after the other.
    """

    def __init__(self, sizes: IndexArray, trees: IntArray) -> None:
        """Finds out which block each side belongs to.

        Args:
            sizes: [T + 1] degrees of freedom of each tree, and 0 for what is fixed.
            trees: [C, 2] trees of bodies A and B, at least one; -1: fixed to the world.
        """
        a, b = trees[:, 0], trees[:, 1]
        a_is_fixed, in_one = a < 0, a == b
        self.tree_a: IntArray = np.where(a_is_fixed, b, a)
        self.tree_b: IntArray = np.where(a_is_fixed | in_one, WORLD, b)
        self._tree = trees.ravel()
        self._size = sizes.take(self._tree)
        self._folded: IndexArray = in_one.nonzero()[0]  # contacts with both sides in one block
        self.values: FloatArray = np.empty(0)

    def groups(self, sizes: Iterable[int]) -> Iterator[tuple[int, IndexArray]]:
        """Sizes n_t of trees, and the sides in trees of that size [g], if there are any."""
        for n in sizes:
            sides = (self._size == n).nonzero()[0]
            if len(sides):
                yield n, sides

    def add(self, sides: IndexArray, blocks: FloatArray) -> None:
        """Adds the blocks [g, 3, n] of the sides of a group."""
        if not len(self._folded) and len(sides) == np.count_nonzero(self._size):
            self.values = blocks.reshape(-1)  # there is only this group
            return
        start, _ = self._blocks()
        if not self.values.size:
            self.values = np.zeros(start[-1])
        width = blocks.shape[1] * blocks.shape[2]
        places = start[sides][:, None] + np.arange(width)
        blocks = blocks.reshape(-1, width)
        if not len(self._folded):
            self.values[places] = blocks
            return
        # Both sides may be in the same block, but among those of either body all places differ.
        for body in (0, 1):
            of_body = sides % 2 == body
            self.values[places[of_body]] += blocks[of_body]

    def delassus(self, inverse_diagonal: FloatArray, first: IndexArray) -> FloatArray:
        """W = |J diag(A)^-1 J'| / 3 of each contact [C].

        Args:
            inverse_diagonal: [nv] of A.
            first: [T] where the velocities of each tree start.
        """
        start, size = self._blocks()
        total = np.zeros((len(size), 3, 3))
        for n in np.unique(size[size > 0]).tolist():
            sides = (size == n).nonzero()[0]
            blocks = self.values
            if blocks.size != 3 * n * len(sides):
                blocks = blocks[start[sides][:, None] + np.arange(3 * n)]
            blocks = blocks.reshape(-1, 3, n)
            weights = inverse_diagonal[first[self._tree[sides]][:, None] + np.arange(n)]
            total[sides] = np.matmul(blocks * weights[:, None], blocks.transpose(0, 2, 1))
        of_contact = total[::2] + total[1::2]
        norm: FloatArray = np.sqrt(np.square(of_contact).sum(axis=(1, 2)))
        return norm / 3

    def _blocks(self) -> tuple[IndexArray, IndexArray]:
        """Where the block of each side starts [2 C + 1], and the size of its own [2 C]."""
        size = self._size
        if len(self._folded):
            size = size.copy()
            size[2 * self._folded + 1] = 0
        start = np.zeros(len(size) + 1, np.int64)
        np.cumsum(3 * size, out=start[1:])
        start[2 * self._folded + 1] = start[2 * self._folded]
        return start, size
