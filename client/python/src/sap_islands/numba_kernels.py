"""Numba support for the Drake adapter: compilation, a linear solver.

A NumPy operation takes 1 to 2 us however small its arrays are. The adapter needs about a hundred of
them per step, and a step of a simulator takes 20 to 200 us. So the loops are compiled at their
first call on a machine; later processes load the machine code from disk.
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

if importlib.util.find_spec("numba") is None:
    raise ModuleNotFoundError(
        "the Drake adapter needs Numba: pip install 'numba>=0.61'", name="numba"
    )

import numba
import numpy as np
from numpy.typing import NDArray

from sap_islands.arrays import FloatArray
from sap_islands.problem import WORLD

IndexArray: TypeAlias = NDArray[np.int64]
FlagArray: TypeAlias = NDArray[np.uint8]

Function = TypeVar("Function", bound=Callable[..., Any])


def _delete_stale_machine_code() -> None:
    """Deletes cached machine code beside the package that is older than its newest source file.

    Numba checks only the source file of the compiled function, not those of the functions that it
    calls.
    """
    package = Path(__file__).parent
    newest = max(source.stat().st_mtime for source in package.rglob("*.py"))
    for code in package.rglob("__pycache__/*.nbi"):
        with contextlib.suppress(OSError):  # deleted by another process, or a read-only directory
            if code.stat().st_mtime < newest:
                code.unlink()


_delete_stale_machine_code()


def compiled(function: Function) -> Function:
    """Decorator: compiles a function at its first call and caches the machine code on disk."""
    # This error model lets division by zero give inf or nan, without a check.
    made: Function = numba.njit(cache=True, error_model="numpy")(function)
    return made


@compiled
def block_trees(tree_a: int, tree_b: int) -> tuple[int, int]:
    """Trees of the two Jacobian blocks of a contact, from the trees of its bodies (-1: fixed).

    The first is a tree that moves, or -1 if both bodies are fixed. The second is a different tree
    that moves, or `WORLD` if there is none.
    """
    if tree_a < 0:
        return tree_b, WORLD
    return tree_a, WORLD if tree_a == tree_b else tree_b


@compiled
def solve_in_place(matrix: FloatArray, b: FloatArray) -> None:
    """Solves a symmetric system in place: b becomes the solution, the matrix its factors.

    The factorization is L' D L from the last row on. For the mass matrix of a kinematic tree whose
    parents precede their children it has no fill-in, and zero entries are skipped.

    Args:
        matrix: [n, n] symmetric positive definite; overwritten.
        b: [n] right-hand side; overwritten.
    """
    n = len(b)
    for k in range(n - 1, -1, -1):
        pivot = matrix[k, k]
        for i in range(k - 1, -1, -1):
            if matrix[k, i] == 0.0:
                continue
            factor = matrix[k, i] / pivot
            for j in range(i + 1):
                matrix[i, j] -= factor * matrix[k, j]
            b[i] -= factor * b[k]
    for k in range(n):
        rest = b[k]
        for j in range(k):
            rest -= matrix[k, j] * b[j]
        b[k] = rest / matrix[k, k]
