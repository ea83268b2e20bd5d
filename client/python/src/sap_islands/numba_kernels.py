"""Loops over the state of a simulator, compiled by Numba: what adapters share.

NumPy takes one or two microseconds for an operation, however small its arrays are, and an adapter
needs a hundred of them for a step that takes the simulator 20 to 200. So the loops are compiled,
when they are first called on a machine; later runs of Python find them on the disk.

The arrays of a simulator stay where they are for as long as it lives. A table has the address and
the length of each, so that a call takes one argument for all of them, and always sees the values
of the moment. What a table has is said by a class of names,

    class StateArrays(NamedTuple):
        qpos: Real
        geom: Integer

    STATE = StateArrays(*range(len(StateArrays._fields)))       # the rows of the table

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

# Rows of a table, by what the array has.
Real: TypeAlias = Annotated[int, "f8"]
Integer: TypeAlias = Annotated[int, "i4"]
Index: TypeAlias = Annotated[int, "i8"]
Flag: TypeAlias = Annotated[int, "u1"]

Function = TypeVar("Function", bound=Callable[..., Any])


def _delete_stale_machine_code() -> None:
    """Deletes machine code that is older than the package.

    Numba sees that the file of a function has changed, but not those of what the function calls.
    """
    package = Path(__file__).parent
    newest = max(source.stat().st_mtime for source in package.rglob("*.py"))
    for code in package.rglob("__pycache__/*.nbi"):
        with contextlib.suppress(OSError):  # another process may do the same, or none may
            if code.stat().st_mtime < newest:
                code.unlink()


_delete_stale_machine_code()


def compiled(function: Function) -> Function:
    """The function as machine code, made for the types of its first arguments, and kept."""
    # Division by zero gives what NumPy gives, without a test.
    made: Function = numba.njit(cache=True, error_model="numpy")(function)
    return made


def make_table(rows: type, arrays: Mapping[str, NDArray[Any]]) -> IndexArray:
    """Address and length of each array [n, 2], in the order of `rows`.

    Whoever keeps the table has to see to it that the arrays live as long.

    Raises:
        TypeError: An array is not what the compiled functions take it for.
    """
    table = np.zeros((len(arrays), 2), np.int64)
    hints = get_type_hints(rows, include_extras=True)
    for i, (name, kind) in enumerate(hints.items()):
        array = arrays[name]
        wanted = np.dtype(get_args(kind)[1])
        is_flag = wanted.kind == "u" and array.dtype == bool
        if not (array.dtype == wanted or is_flag) or not array.flags.c_contiguous:
            raise TypeError(f"{name} is an array of {array.dtype}; {wanted} is needed")
        table[i] = array.ctypes.data, array.size
    return table


@intrinsic  # type: ignore[untyped-decorator]  # Numba has no type for it
def _pointer(_: Any, address: Any) -> Any:
    """An address as something that numba.carray takes."""
    pointer = numba.types.voidptr

    def generate(context: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(pointer))

    return pointer(address), generate


@compiled
def address_of(array: FloatArray) -> int:
    """Where the first number is."""
    address: int = np.int64(array.ctypes.data)  # type: ignore[assignment]  # an int when compiled
    return address


@compiled
def reals_at(address: int, count: int) -> FloatArray:
    """Numbers in the memory of a simulator."""
    array: FloatArray = numba.carray(_pointer(address), (count,), np.float64)
    return array


@compiled
def integers_at(address: int, count: int) -> IntArray:
    """Numbers in the memory of a simulator."""
    array: IntArray = numba.carray(_pointer(address), (count,), np.int32)
    return array


@compiled
def reals(table: IndexArray, row: int) -> FloatArray:
    """An array of a table, flat."""
    return reals_at(table[row, 0], table[row, 1])


@compiled
def integers(table: IndexArray, row: int) -> IntArray:
    """An array of a table, flat."""
    return integers_at(table[row, 0], table[row, 1])


@compiled
def indices(table: IndexArray, row: int) -> IndexArray:
    """An array of a table, flat."""
    array: IndexArray = numba.carray(_pointer(table[row, 0]), (table[row, 1],), np.int64)
    return array


@compiled
def flags(table: IndexArray, row: int) -> FlagArray:
    """An array of a table, flat."""
    return bytes_at(table[row, 0], table[row, 1])


@compiled
def bytes_at(address: int, count: int) -> FlagArray:
    """Bytes in the memory of a simulator."""
    array: FlagArray = numba.carray(_pointer(address), (count,), np.uint8)
    return array


@compiled
def block_trees(tree_a: int, tree_b: int) -> tuple[int, int]:
    """The trees of a contact's blocks: the first is one that moves, the second another, if any."""
    if tree_a < 0:
        return tree_b, WORLD
    return tree_a, WORLD if tree_a == tree_b else tree_b


@compiled
def solve_in_place(matrix: FloatArray, b: FloatArray) -> None:
    """Replaces b by the solution of a symmetric system, and the matrix by its factors.

    Factors L' D L, from the last row on: for the mass matrix of a kinematic tree, whose parents
    come first, that fills in nothing, and what is 0 is passed over.

    Args:
        matrix: [n, n] positive definite.
        b: [n].
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
