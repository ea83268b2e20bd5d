"""The linear solver of the compiled functions."""

from __future__ import annotations

import numpy as np
import pytest
from sap_islands.arrays import FloatArray
from sap_islands.numba_kernels import solve_in_place


def branched(n: int, seed: int) -> FloatArray:
    """A matrix that is 0 where neither dof is an ancestor of the other, as a mass matrix."""
    rng = np.random.default_rng(seed)
    parent = [int(rng.integers(-1, i)) for i in range(n)]
    rows = np.eye(n)
    for i in range(n):
        j = parent[i]
        while j >= 0:
            rows[i, j] = rng.normal()
            j = parent[j]
    return np.asarray(rows.T @ rows)


@pytest.mark.parametrize("seed", range(5))
def test_matrix_of_a_tree_is_solved_without_fill_in(seed: int) -> None:
    matrix = branched(12, seed)
    b = np.random.default_rng(seed).normal(size=12)
    factors, x = matrix.copy(), b.copy()
    solve_in_place(factors, x)
    assert matrix @ x == pytest.approx(b, abs=1e-9 * np.linalg.cond(matrix))
    lower = np.tril_indices(12)
    assert np.all(factors[lower][matrix[lower] == 0] == 0)


def test_solution_of_a_full_matrix_is_that_of_lapack() -> None:
    rng = np.random.default_rng(1)
    root = rng.normal(size=(7, 7))
    matrix, b = root @ root.T + np.eye(7), rng.normal(size=7)
    x = b.copy()
    solve_in_place(matrix.copy(), x)
    assert x == pytest.approx(np.linalg.solve(matrix, b), rel=1e-10)
