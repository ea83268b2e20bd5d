"""Products with the Jacobian of contacts, in the layout of `Contacts.jacobian`."""

from __future__ import annotations

import numpy as np

from sap_islands.arrays import FloatArray
from sap_islands.drake.layout import Layout
from sap_islands.numba_kernels import IndexArray, compiled
from sap_islands.problem import Contacts


def generalized_impulse(layout: Layout, contacts: Contacts, impulse: FloatArray) -> FloatArray:
    """J'γ [n] of impulses γ [C, 3]."""
    rows, columns = _places(layout, contacts)
    products = contacts.jacobian * impulse.ravel()[rows]
    return _sums(columns, products, len(layout.velocities))


def contact_velocity(layout: Layout, contacts: Contacts, velocity: FloatArray) -> FloatArray:
    """J v [C, 3]."""
    rows, columns = _places(layout, contacts)
    products = contacts.jacobian * velocity[columns]
    return _sums(rows, products, 3 * contacts.count).reshape(-1, 3)


def _sums(places: IndexArray, products: FloatArray, size: int) -> FloatArray:
    """Of the products with the same place."""
    return np.bincount(places, products, minlength=size).astype(np.float64, copy=False)


def _places(layout: Layout, contacts: Contacts) -> tuple[IndexArray, IndexArray]:
    """Row and column in J of each entry of `Contacts.jacobian`."""
    rows = np.empty(contacts.jacobian.size, np.int64)
    columns = np.empty(contacts.jacobian.size, np.int64)
    trees = np.stack((contacts.tree_a, contacts.tree_b)).astype(np.int64)
    _fill_places(layout.first, trees, rows, columns)
    return rows, columns


@compiled
def _fill_places(
    first: IndexArray, trees: IndexArray, rows: IndexArray, columns: IndexArray
) -> None:
    place = 0
    for i in range(trees.shape[1]):
        for tree in trees[:, i]:
            if tree < 0:
                continue
            for row in range(3):
                for column in range(first[tree], first[tree + 1]):
                    rows[place] = 3 * i + row
                    columns[place] = column
                    place += 1
