"""The memory of an answer of the C library: views of its arrays, and its error.

It is freed with the last array that shows a part of it.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sap_islands._library.declarations import array_names, struct_type
from sap_islands.errors import SapError, error_of_code

_MAX_IDLE = 32  # answers kept for the next calls, with their memory


def read(name: str, address: int) -> Any:
    """The struct of the library at an address; what an older library does not have is 0."""
    struct = struct_type(name)
    size = ctypes.c_size_t.from_address(address).value
    if size >= ctypes.sizeof(struct):
        return struct.from_address(address)
    copy = struct()
    ctypes.memmove(ctypes.addressof(copy), address, size)
    return copy


def error_at(address: int) -> SapError:
    """The exception of a sap_error."""
    error = read("sap_error", address)
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

    def view(self, array: Any) -> NDArray[Any]:
        """A read-only view of an array as sap_doubles, which keeps the answer."""
        length, dtype = array.length, array.dtype
        if not length:
            return _EMPTY[dtype]
        size = length * _EMPTY[dtype].itemsize
        memory: Any = (ctypes.c_char * size).from_address(array.data)
        memory.answer = self
        result: NDArray[Any] = np.frombuffer(memory, dtype)
        result.setflags(write=False)
        return result

    def arrays(self, struct: Any) -> dict[str, NDArray[Any]]:
        """Views of the arrays of a struct by name."""
        names = array_names(type(struct).__name__)
        return {name: self.view(getattr(struct, name)) for name in names}

    def error(self) -> SapError:
        """The error of the call that this is the answer of."""
        return error_at(self.library.sap_answer_error(self.handle))


def _empty(dtype: type[Any]) -> NDArray[Any]:
    array = np.empty(0, dtype)
    array.flags.writeable = False
    return array


_EMPTY = {dtype: _empty(dtype) for dtype in (np.float64, np.int32, np.uint32)}
