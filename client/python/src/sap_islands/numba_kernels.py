"""Numba support for the adapters: compilation, tables of array addresses, a linear solver.

A NumPy operation takes 1 to 2 us however small its arrays are. An adapter needs about a hundred of
them per step, and a step of a simulator takes 20 to 200 us. So the loops are compiled at their
first call on a machine; later processes load the machine code from disk.

The arrays of a simulator keep their addresses while it exists. A table holds the address and
length of each array, so that one argument passes all of them to a compiled function, which reads
their current values. The rows of a table are named by a class,

    class StateArrays(NamedTuple):
        qpos: Real
        geom: Integer

    STATE = StateArrays(*range(len(StateArrays._fields)))       # row numbers

and a compiled function reads `reals(table, STATE.qpos)`.
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar, get_args, get_type_hints

if importlib.util.find_spec("numba") is None:
    raise ModuleNotFoundError("the adapters need Numba: pip install 'numba>=0.61'", name="numba")

import numba
import numpy as np
from numba.extending import intrinsic
from numpy.typing import NDArray

from sap_islands.arrays import FloatArray, IntArray
from sap_islands.problem import WORLD

IndexArray: TypeAlias = NDArray[np.int64]
FlagArray: TypeAlias = NDArray[np.uint8]

# Types of the rows of a table: the data type of the array at the address.
Real: TypeAlias = Annotated[int, "f8"]
Integer: TypeAlias = Annotated[int, "i4"]
Index: TypeAlias = Annotated[int, "i8"]
Flag: TypeAlias = Annotated[int, "u1"]

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
    """Decorator: compiles a function at its first call and caches the machine code on disk.

    It runs without Python's lock, so that threads step environments side by side.
    """
    # This error model lets division by zero give inf or nan, without a check.
    made: Function = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return made


def make_table(rows: type, arrays: Mapping[str, NDArray[Any]]) -> IndexArray:
    """Makes a table [n, 2]: address and length of each array, in the order of `rows`.

    The caller must keep the arrays alive as long as the table.

    Args:
        rows: NamedTuple class that names the rows and gives their data types.
        arrays: The arrays by name.

    Raises:
        TypeError: An array has another data type than its row, or is not contiguous.
    """
    table = np.zeros((len(arrays), 2), np.int64)
    hints = get_type_hints(rows, include_extras=True)
    for i, (name, kind) in enumerate(hints.items()):
        array = arrays[name]
        wanted = np.dtype(get_args(kind)[1])
        is_flag = wanted.kind == "u" and array.dtype == bool
        if not (array.dtype == wanted or is_flag) or not array.flags.c_contiguous:
            raise TypeError(f"{name} is an array of {array.dtype}; contiguous {wanted} is needed")
        table[i] = array.ctypes.data, array.size
    return table


@intrinsic  # type: ignore[untyped-decorator]  # Numba has no type for it
def _pointer(_: Any, address: Any) -> Any:
    """Converts an address to a pointer for numba.carray."""
    pointer = numba.types.voidptr

    def generate(context: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(pointer))

    return pointer(address), generate


@compiled
def address_of(array: FloatArray) -> int:
    """Address of the first element."""
    address: int = np.int64(array.ctypes.data)  # type: ignore[assignment]  # an int when compiled
    return address


@compiled
def reals_at(address: int, count: int) -> FloatArray:
    """View of `count` doubles at an address."""
    array: FloatArray = numba.carray(_pointer(address), (count,), np.float64)
    return array


@compiled
def integers_at(address: int, count: int) -> IntArray:
    """View of `count` 32-bit integers at an address."""
    array: IntArray = numba.carray(_pointer(address), (count,), np.int32)
    return array


@compiled
def reals(table: IndexArray, row: int) -> FloatArray:
    """Flat view of an array of doubles in a table."""
    return reals_at(table[row, 0], table[row, 1])


@compiled
def integers(table: IndexArray, row: int) -> IntArray:
    """Flat view of an array of 32-bit integers in a table."""
    return integers_at(table[row, 0], table[row, 1])


@compiled
def indices(table: IndexArray, row: int) -> IndexArray:
    """Flat view of an array of 64-bit integers in a table."""
    array: IndexArray = numba.carray(_pointer(table[row, 0]), (table[row, 1],), np.int64)
    return array


@compiled
def flags(table: IndexArray, row: int) -> FlagArray:
    """Flat view of an array of flags in a table."""
    return bytes_at(table[row, 0], table[row, 1])


@compiled
def bytes_at(address: int, count: int) -> FlagArray:
    """View of `count` bytes at an address."""
    array: FlagArray = numba.carray(_pointer(address), (count,), np.uint8)
    return array


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
