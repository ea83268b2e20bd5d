"""Worlds of MuJoCo at servers: models and arrays as structs of the C library."""

from __future__ import annotations

import ctypes
from typing import Any

from sap_islands._library.c_answer import Answer
from sap_islands._library.declarations import struct_type
from sap_islands._library.native_client import NativeCall, NativeClient
from sap_islands.errors import SapError

_MJB = 1


class WorldModel:
    """A sap_world_model: a model that servers keep by its hash, which is computed once.

    Attributes:
        library: The C library.
        handle: The sap_world_model.
    """

    def __init__(self, client: NativeClient, version: int, mjb: Any) -> None:
        """Copies a model.

        Args:
            client: A client of the library.
            version: `mj_version()`.
            mjb: The model in MuJoCo's binary format, as a contiguous array of bytes.
        """
        self.library = client.library
        self.handle: int = 0
        file = struct_type("sap_model_file")()
        file.content.data, file.content.length = mjb.ctypes.data, mjb.size
        made, answer = ctypes.c_void_p(), client.answer()
        if self.library.sap_world_model_create(
            _MJB, version, 1, ctypes.addressof(file), ctypes.addressof(made), answer.handle
        ):
            raise answer.error()
        self.handle = made.value or 0

    def __del__(self) -> None:
        if self.handle:
            self.library.sap_world_model_free(self.handle)


def advance_worlds(client: NativeClient, worlds: Any, timeout: float | None) -> None:
    """Calls sap_worlds_advance.

    Args:
        client: A client of servers.
        worlds: A sap_worlds that keeps its arrays.
        timeout: Deadline of the call [s].

    Raises:
        SapError: The call has failed. Worlds that have failed do not raise.
    """
    handle = client.live()
    before = (handle, ctypes.addressof(worlds))
    call = NativeCall(
        client.library.sap_worlds_advance, before, [client.answer()], _error_of, (), (worlds,)
    )
    client.run(call, timeout).result()


def _error_of(answer: Answer) -> SapError | None:
    error = answer.error()
    return error if error.code else None
