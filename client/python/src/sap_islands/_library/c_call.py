"""How calls of the C library are made: deadline, stop flag, in the background."""

from __future__ import annotations

import ctypes
from typing import Any

from sap_islands._library.declarations import new


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
        self._struct = struct = new("sap_call", servers=servers)
        if stop is not None:
            struct.stop = stop.handle
        if background:
            struct.background = True
        if done is not None:
            struct.done, struct.context = done, context
        if opens_later:
            struct.opens_later = True
        self._struct.point("kind", 0)
        if timeout is not None:
            self._struct.point("deadline_s", timeout)
        if reconnect_within is not None:
            self._struct.point("reconnect_within_s", reconnect_within)
        if low_latency is not None:
            self._struct.point("low_latency", low_latency)
        self.address = ctypes.addressof(self._struct)

    def set_servers(self, servers: int) -> None:
        """Sets by how many servers a scene is solved."""
        self._struct.servers = servers

    def stop(self) -> None:
        """Ends the call, which has a stop flag."""
        assert self._stop is not None
        self._stop.request()

    @property
    def kind(self) -> int:
        """The kind of error of a call in the background that has ended."""
        return int(self._struct.number("kind"))
