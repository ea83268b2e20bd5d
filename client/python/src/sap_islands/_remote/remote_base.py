"""The part of the solver of servers that does no I/O, shared by both, synchronous and asyncio."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sap_islands._process.embedded_server import EmbeddedServer
from sap_islands._process.owner_process import OwnerProcess
from sap_islands._remote import messages
from sap_islands._remote.address import EMBEDDED_PROCESS
from sap_islands._remote.attempts import Attempts, check_reconnect_within
from sap_islands._remote.channel import Endpoint, Metadata, Tls, make_endpoint
from sap_islands._remote.loss import is_lost
from sap_islands._remote.server_identity import BuildCheck
from sap_islands.errors import DeadlineExceeded, SapError, Unavailable
from sap_islands.options import Options, Priority

_HIGH_PRIORITY = ("sap-priority", "high")


def resolve_address(
    address: str, tls: Tls | bool, token: str | None, server_arguments: Sequence[str]
) -> tuple[Endpoint, EmbeddedServer | None]:
    """The endpoint of an address; for "embedded:process" it starts a server and returns it too."""
    if address == EMBEDDED_PROCESS:
        server = EmbeddedServer(server_arguments)
        return make_endpoint(server.address, tls, token), server
    return make_endpoint(address, tls, token), None


class RemoteSolverBase:
    """Channels to servers, and the server if it is embedded."""

    _library: Any  # grpc or grpc.aio

    def __init__(
        self,
        endpoint: Endpoint,
        server: EmbeddedServer | None,
        reconnect_within: float,
        allow_mixed_servers: bool,
        fallback: Endpoint | None = None,
    ) -> None:
        """Opens channels.

        Calls go to `endpoint`, and where they are lost, to `fallback` and `endpoint` in turn.
        """
        self._owner = OwnerProcess()
        self._server = server
        self._endpoint = endpoint
        self._reconnect_within = check_reconnect_within(reconnect_within)
        self._build_check = BuildCheck(allow_mixed_servers)
        endpoints = (endpoint,) if fallback is None else (endpoint, fallback)
        self._channels = [place.open(self._library) for place in endpoints]
        self._methods = [messages.Stub(channel) for channel in self._channels]
        self._closed = False

    @property
    def address(self) -> str:
        """The address that `connect` got; of an embedded server, its Unix socket."""
        return self._endpoint.address

    def _stub(self, attempt: int = 0) -> messages.Stub:
        """The methods of the service, where that attempt of a call goes.

        Raises:
            RuntimeError: Another process made the client.
            Unavailable: The client is closed.
        """
        self._owner.check("client")
        if self._closed:
            raise Unavailable("the client is closed")
        return self._methods[attempt % len(self._methods)]

    def _pause_after(self, error: SapError, attempts: Attempts) -> float:
        """How long to wait before a call is repeated that ended with `error` [s].

        Raises:
            SapError: That error: it is the outcome of the call, or there is no time left.
            DeadlineExceeded: The connection was lost at the deadline of the call.
        """
        if not is_lost(error):
            raise error from None
        if attempts.time_left == 0:
            message = f"the deadline of the call has passed: {error.message}"
            raise DeadlineExceeded(message) from None
        pause = attempts.next_pause()
        if pause is None:
            raise error from None
        return pause

    def _metadata(self, options: Options | None) -> Metadata:
        """Headers of a call, with its priority: admission is decided before the message is read."""
        metadata = self._endpoint.metadata
        if options is not None and options.priority is Priority.HIGH:
            return (*metadata, _HIGH_PRIORITY)
        return metadata
