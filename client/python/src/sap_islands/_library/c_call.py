"""How calls of the C library are made: deadline, stop flag, in the background."""

from __future__ import annotations

import ctypes
from typing import Any

_pointer, _int = ctypes.c_void_p, ctypes.c_int32


class _Call(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("deadline_s", ctypes.POINTER(ctypes.c_double)),
        ("stop", _pointer),
        ("servers", _int),
        ("background", _int),
        ("done", _pointer),
        ("context", _pointer),
        ("request_id", ctypes.c_char_p),
        ("traceparent", ctypes.c_char_p),
        ("kind", ctypes.POINTER(_int)),
        ("reconnect_within_s", ctypes.POINTER(ctypes.c_double)),
        ("low_latency", ctypes.POINTER(_int)),
        ("opens_later", _int),
    )


class Stop:
    """Ends calls from another thread.

    Attributes:
        handle: The sap_stop.
    """

    def __init__(self, library: Any) -> None:
        self._library = library
        self.handle: int = library.sap_stop_new()
        if not self.handle:
            raise MemoryError("no memory for a stop flag")

    def request(self) -> None:
        """Ends the calls with `Cancelled`."""
        self._library.sap_stop_request(self.handle)

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self._library.sap_stop_free(self.handle)


class CallSettings:
    """A sap_call, with all that it points to.

    Attributes:
        address: Of the sap_call.
    """

    def __init__(
        self,
        timeout: float | None = None,
        *,
        stop: Stop | None = None,
        servers: int = 0,
        background: bool = False,
        done: int | None = None,
        context: int | None = None,
        reconnect_within: float | None = None,
        low_latency: bool | None = None,
        opens_later: bool = False,
    ) -> None:
        """Sets what is given.

        Args:
            timeout: Deadline of the call [s].
            stop: Ends the call.
            servers: By how many servers a scene is solved; -1: all of the address.
            background: Whether the function returns at once.
            done: Address of the function that is called at the end of a call in the background.
            context: Argument of `done`.
            reconnect_within: Of a session: how long it looks for a server [s]; None: as the client.
            low_latency: Of a session: whether it is to be quick; None: as the client.
            opens_later: Of a session: whether it is opened while it is waited for.
        """
        self._stop = stop
        self._struct = _Call(ctypes.sizeof(_Call))
        if timeout is not None:
            self._struct.deadline_s.contents = ctypes.c_double(timeout)
        self._struct.stop = None if stop is None else stop.handle
        self._struct.servers = servers
        self._struct.background = background
        self._struct.done = done
        self._struct.context = context
        self._kind = _int(0)
        self._struct.kind.contents = self._kind
        if reconnect_within is not None:
            self._struct.reconnect_within_s.contents = ctypes.c_double(reconnect_within)
        if low_latency is not None:
            self._struct.low_latency.contents = _int(low_latency)
        self._struct.opens_later = opens_later
        self.address = ctypes.addressof(self._struct)

    @property
    def kind(self) -> int:
        """The kind of error of a call in the background that has ended."""
        return self._kind.value
