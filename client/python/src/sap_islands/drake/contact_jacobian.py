"""Products with the Jacobian of contacts, in the layout of `Contacts.jacobian`."""

from __future__ import annotations

import numpy as np

from sap_islands.arrays import FloatArray
from sap_islands.drake.layout import Layout
from sap_islands.numba_kernels import IndexArray, compiled
from sap_islands.problem import Contacts


def generalized_impulse(layout: Layout, contacts: Contacts, impulse: FloatArray) -> FloatArray:
    """J'γ [n] of impulses γ [C, 3]."""
    generalized = np.zeros(len(layout.velocities))
    trees = np.stack((contacts.tree_a, contacts.tree_b)).astype(np.int64)
    _add_impulses(layout.first, trees, contacts.jacobian, impulse, generalized)
    return generalized


def contact_velocity(layout: Layout, contacts: Contacts, velocity: FloatArray) -> FloatArray:
    """J v [C, 3]."""
    result = np.zeros((contacts.count, 3))
    trees = np.stack((contacts.tree_a, contacts.tree_b)).astype(np.int64)
    _add_velocities(layout.first, trees, contacts.jacobian, velocity, result)
    return result


@compiled
def _add_impulses(
    first: IndexArray,
    trees: IndexArray,
    jacobian: FloatArray,
    impulse: FloatArray,
    generalized: FloatArray,
) -> None:
    place = 0
    for i in range(trees.shape[1]):
        for tree in trees[:, i]:
            if tree < 0:
                continue
            begin, n = first[tree], first[tree + 1] - first[tree]
            for k in range(3):
                for j in range(n):
                    generalized[begin + j] += jacobian[place + k * n + j] * impulse[i, k]
            place += 3 * n


@compiled
def _add_velocities(
    first: IndexArray,
    trees: IndexArray,
    jacobian: FloatArray,
    velocity: FloatArray,
    result: FloatArray,
) -> None:
    place = 0
    for i in range(trees.shape[1]):
        for tree in trees[:, i]:
            if tree < 0:
                continue
            begin, n = first[tree], first[tree + 1] - first[tree]
            for k in range(3):
                for j in range(n):
                    result[i, k] += jacobian[place + k * n + j] * velocity[begin + j]
            place += 3 * n
