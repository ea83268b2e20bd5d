"""Constraint rows are the entries of their matrix."""

from __future__ import annotations

import numpy as np
import pytest
import sap_islands as sap
from scipy import sparse


def random_matrix(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    matrix = rng.standard_normal((rows, columns))
    return np.where(rng.random(matrix.shape) < 0.3, matrix, 0.0)


def dense(rows: sap.ConstraintRows, columns: int) -> np.ndarray:
    """J, entry by entry."""
    J = np.zeros((rows.count, columns))
    entry = 0
    for row, entries in enumerate(rows.entries.tolist()):
        for _ in range(entries):
            J[row, rows.velocity_index[entry]] = rows.coefficient[entry]
            entry += 1
    assert entry == rows.velocity_index.size == rows.coefficient.size
    return J


@pytest.mark.parametrize("seed", range(10))
def test_rows_of_a_matrix_have_its_entries_in_ascending_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    J = random_matrix(rng, 7, 19)
    rows = sap.ConstraintRows.from_dense(J, stiffness=100.0)
    assert np.array_equal(dense(rows, 19), J)
    for part in np.split(rows.velocity_index, np.cumsum(rows.entries)[:-1]):
        assert np.all(np.diff(part.astype(int)) > 0)
    assert rows.entries.dtype == rows.velocity_index.dtype == np.dtype("<u4")
    assert rows.coefficient.dtype == rows.stiffness.dtype == np.dtype("<f8")


@pytest.mark.parametrize("seed", range(10))
def test_rows_of_a_sparse_matrix_are_those_of_the_dense_one(seed: int) -> None:
    J = random_matrix(np.random.default_rng(seed), 7, 19)
    matrix = sparse.csr_array(J)
    rows = sap.ConstraintRows.from_csr(
        matrix.indptr, matrix.indices, matrix.data, force_lower=0.0, position_error=np.arange(7)
    )
    expected = sap.ConstraintRows.from_dense(J, force_lower=0.0, position_error=np.arange(7))
    assert sap.Problem(0.5, rows=rows).to_bytes() == sap.Problem(0.5, rows=expected).to_bytes()


def test_single_numbers_are_repeated_for_all_rows() -> None:
    rows = sap.ConstraintRows.from_dense(np.eye(3), force_upper=2.0)
    again = sap.Problem.from_bytes(sap.Problem(0.5, rows=rows).to_bytes()).rows
    assert again.force_upper.tolist() == [2.0, 2.0, 2.0]
    assert len(rows) == 3


@pytest.mark.parametrize("name", ["entries", "velocity_index", "coefficient"])
def test_single_numbers_for_entries_are_refused(name: str) -> None:
    with pytest.raises(sap.InvalidArgument, match=rf"rows\.{name} is a single number"):
        sap.ConstraintRows(**{name: 1})


def test_values_of_the_wrong_type_are_refused_by_name() -> None:
    with pytest.raises(sap.InvalidArgument, match="J has shape"):
        sap.ConstraintRows.from_dense([1.0, 2.0])
    with pytest.raises(sap.InvalidArgument, match=r"rows\.stiffness has type"):
        sap.ConstraintRows.from_dense(np.eye(1), stiffness="stiff")
    with pytest.raises(sap.InvalidArgument, match=r"rows\.velocity_index\[1\] is -1"):
        sap.ConstraintRows.from_csr([0, 2], [0, -1], [1.0, 1.0])
    with pytest.raises(TypeError, match="stifness"):
        sap.ConstraintRows.from_dense(np.eye(1), stifness=1.0)
