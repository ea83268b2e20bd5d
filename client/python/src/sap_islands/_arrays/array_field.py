"""Dataclass fields that hold the packed arrays of a message.

Any array-like value may be assigned. It is stored as a C-contiguous ndarray of the data type on
the wire. An array that has this layout and type already is stored without a copy, so changing it
in place changes the message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sap_islands.arrays import FloatArray
from sap_islands.errors import InvalidArgument

Float64: TypeAlias = np.float64

# Key in the __dict__ of a group to which an array was assigned: groups without it are not written.
HAS_ARRAYS = "_has_arrays"

ScalarT = TypeVar("ScalarT", np.float64, np.int32, np.uint32, np.uint8)


class ArrayField(Generic[ScalarT]):
    """An array of a message with `columns` numbers per tree, body, contact or row; else empty.

    A single number, or a single row of `columns` numbers, is repeated for all entries of the
    group: `contacts.friction = 0.5`. Without `repeats` the array has a length of its own, and
    nothing is repeated. Enumerations are uint8.
    """

    def __init__(self, scalar: type[ScalarT], columns: int = 1, repeats: bool = True) -> None:
        self.dtype: np.dtype[Any] = np.dtype(scalar).newbyteorder("<")
        self.columns = columns
        self.repeats = repeats
        self.empty: NDArray[Any] = np.empty(0, self.dtype)
        self.name = ""
        self.path = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.path = f"{getattr(owner, 'FIELD', owner.__name__)}.{name}"

    @overload
    def __get__(self, instance: None, owner: type) -> Any: ...
    @overload
    def __get__(self, instance: object, owner: type) -> NDArray[ScalarT]: ...
    def __get__(self, instance: object | None, owner: type) -> Any:
        """The array; read on the class, the default that `dataclass` uses: empty."""
        return () if instance is None else instance.__dict__[self.name]

    def __set__(self, instance: object, value: ArrayLike) -> None:
        """Converts the value to the data type on the wire and stores it.

        Raises:
            InvalidArgument: The value is not an array of numbers, an integer is out of range, or
                the last axis of several has another length than `columns`.
        """
        values = instance.__dict__
        if isinstance(value, tuple) and not value:
            values[self.name] = self.empty
            return
        values[self.name] = self._convert(value)
        values[HAS_ARRAYS] = True

    def _convert(self, value: ArrayLike) -> NDArray[ScalarT]:
        try:
            array = np.asarray(value)
        except ValueError as error:
            raise InvalidArgument(f"{self.path} is not an array: {error}", self.path) from error
        if array.ndim == 0 and not self.repeats:
            message = f"{self.path} is a single number; an array is needed"
            raise InvalidArgument(message, self.path)
        if array.dtype != self.dtype:
            array = self._cast(array)
        elif self.dtype == np.uint8:
            self._check_range(array)
        if array.ndim > 1 and array.size and array.shape[-1] != self.columns > 1:
            message = f"{self.path} has shape {array.shape}; the last axis must have {self.columns}"
            raise InvalidArgument(message, self.path)
        # ascontiguousarray would turn a scalar, shape (), into a vector of one number.
        return array if array.flags.c_contiguous else np.ascontiguousarray(array)

    def _cast(self, array: NDArray[Any]) -> NDArray[ScalarT]:
        if array.size == 0:
            return np.empty(0, self.dtype)
        kinds = "fiub" if self.dtype.kind == "f" else "iub"
        if array.dtype.kind not in kinds:
            wanted = "numbers" if self.dtype.kind == "f" else "integers"
            message = f"{self.path} has type {array.dtype}; {wanted} are needed"
            raise InvalidArgument(message, self.path)
        if self.dtype.kind != "f":
            self._check_range(array)
        return array.astype(self.dtype)

    def _check_range(self, array: NDArray[Any]) -> None:
        limits = np.iinfo(self.dtype)
        # An enumeration is a varint on the wire, which up to 127 is one byte.
        least, largest = limits.min, 127 if self.dtype == np.uint8 else limits.max
        outside = np.flatnonzero((array < least) | (array > largest))
        if outside.size:
            field = f"{self.path}[{outside[0]}]"
            found = array.flat[outside[0]]
            message = f"{field} is {found}; it must be in [{least}, {largest}]"
            raise InvalidArgument(message, field)


def concatenate(blocks: Sequence[FloatArray]) -> FloatArray:
    """Flattens matrices row-major and concatenates them, as `dynamics_matrix` and `jacobian`."""
    if not len(blocks):
        return np.empty(0)
    return np.concatenate([np.asarray(block, np.float64).ravel() for block in blocks])
