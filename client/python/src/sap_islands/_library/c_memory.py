"""The memory of an answer of the C library: views of its arrays, and its error.

It is freed with the last array that shows a part of it.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sap_islands.errors import SapError, error_of_code

_pointer = ctypes.c_void_p
_MAX_IDLE = 32  # answers kept for the next calls, with their memory

SIZE = ("struct_size", ctypes.c_size_t)


class Array(ctypes.Structure):
    """An array of the library: sap_doubles and those of other numbers."""

    _fields_ = (("data", _pointer), ("length", ctypes.c_int64))


def arrays(*names: str) -> list[tuple[str, Any]]:
    """Fields of a struct that are arrays."""
    return [(name, Array) for name in names]


class ErrorStruct(ctypes.Structure):
    """A sap_error."""

    _fields_ = (
        SIZE,
        ("kind", ctypes.c_int32),
        ("lost_attempts", ctypes.c_int32),
        ("message", ctypes.c_char_p),
        ("field", ctypes.c_char_p),
        ("index", ctypes.c_int64),
        ("reason", ctypes.c_char_p),
        ("retry_after_s", ctypes.c_double),
        ("request_id", ctypes.c_char_p),
        ("server", ctypes.c_char_p),
    )


def read(kind: Any, address: int) -> Any:
    """The struct of the library at an address; what an older library does not have is 0."""
    size = ctypes.c_size_t.from_address(address).value
    if size >= ctypes.sizeof(kind):
        return kind.from_address(address)
    struct = kind()
    ctypes.memmove(ctypes.addressof(struct), address, size)
    return struct


def error_at(address: int) -> SapError:
    """The exception of a sap_error."""
    error = read(ErrorStruct, address)
    message, field, reason, request_id, server = (
        text.decode(errors="replace")
        for text in (error.message, error.field, error.reason, error.request_id, error.server)
    )
    return error_of_code(
        error.kind,
        message,
        field,
        reason,
        error.retry_after_s or None,
        request_id,
        server,
        error.lost_attempts,
    )


class AnswerMemory:
    """A sap_answer.

    Attributes:
        library: The C library.
        handle: The sap_answer.
    """

    def __init__(self, library: Any, idle: list[int]) -> None:
        """Takes an idle answer, or makes one.

        Args:
            library: The C library.
            idle: Answers that are free; this one goes there in the end.
        """
        self.library = library
        self._idle = idle
        try:
            self.handle: int = idle.pop()
        except IndexError:
            self.handle = library.sap_answer_new()
            if not self.handle:
                raise MemoryError("no memory for an answer") from None

    def __del__(self) -> None:
        handle = getattr(self, "handle", None)
        if not handle:
            return
        if len(self._idle) < _MAX_IDLE:
            self._idle.append(handle)
        else:
            self.library.sap_answer_free(handle)

    def view(self, array: Array, dtype: Any = np.float64) -> NDArray[Any]:
        """A read-only view, which keeps the answer."""
        length = array.length
        if not length:
            return _EMPTY[dtype]
        size = length * _EMPTY[dtype].itemsize
        memory: Any = (ctypes.c_char * size).from_address(array.data)
        memory.answer = self
        result: NDArray[Any] = np.frombuffer(memory, dtype)
        result.setflags(write=False)
        return result

    def error(self) -> SapError:
        """The error of the call that this is the answer of."""
        return error_at(self.library.sap_answer_error(self.handle))


def _empty(dtype: type[Any]) -> NDArray[Any]:
    array = np.empty(0, dtype)
    array.flags.writeable = False
    return array


_EMPTY = {dtype: _empty(dtype) for dtype in (np.float64, np.int32, np.uint32)}
