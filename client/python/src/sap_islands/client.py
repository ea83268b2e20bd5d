"""A server, wherever it is: `connect`, solve, batches, sessions.

The three kinds of address take the same types and give the same results, to the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import grpc

from sap_islands import messages
from sap_islands.channel import Endpoint, Tls
from sap_islands.client_base import ClientBase, ServerInfo, parse_info, resolve_address
from sap_islands.embedded import EmbeddedServer
from sap_islands.errors import SapError, error_of_call
from sap_islands.options import Options
from sap_islands.problem import Problem
from sap_islands.session import Session
from sap_islands.solution import Solution


def connect(
    address: str,
    *,
    tls: Tls | bool = False,
    token: str | None = None,
    retry: bool = True,
    server_arguments: Sequence[str] = (),
) -> Client:
    """A client of the server at an address. Nothing is sent yet.

    Args:
        address: "HOST:PORT", "unix:PATH", or "embedded:" for a server of the client's own.
        tls: True, or certificates: the connection is encrypted.
        token: Sent with every call as a bearer token. Only with TLS, or within this machine.
        retry: Whether calls are repeated when the server is not there; all of them are safe to be.
        server_arguments: More of the command line of an embedded server.
    """
    return Client(*resolve_address(address, tls, token, retry, server_arguments))


class Client(ClientBase):
    """Calls of a server; made by `connect`. For any number of threads at once.

    Timeouts are in seconds; None: as long as it takes. The server returns the best iterate a
    little before the timeout, if it can.
    """

    def __init__(self, endpoint: Endpoint, server: EmbeddedServer | None = None) -> None:
        super().__init__(endpoint, server, grpc)

    def solve(
        self, problem: Problem, options: Options | None = None, *, timeout: float | None = None
    ) -> Solution:
        """Solves one problem."""
        request = messages.solve_request(problem, options)
        return messages.solution_of_response(
            self._call(self._stub.solve, request, timeout, options)
        )

    def solve_batch(
        self,
        problems: Sequence[Problem],
        options: Options | None = None,
        *,
        timeout: float | None = None,
    ) -> list[Solution | SapError]:
        """Solves independent problems concurrently; each has an outcome of its own, in order."""
        request = messages.batch_request(problems, options)
        return messages.outcomes_of_response(
            self._call(self._stub.solve_batch, request, timeout, options)
        )

    def stream_batch(
        self,
        problems: Sequence[Problem],
        options: Options | None = None,
        *,
        timeout: float | None = None,
    ) -> Iterator[tuple[int, Solution | SapError]]:
        """As `solve_batch`, each problem's number and outcome as soon as it is there."""
        request = messages.batch_request(problems, options)
        call = self._stub.stream_batch(request, timeout=timeout, metadata=self._metadata(options))
        try:
            for response in call:
                yield messages.indexed_outcome(response)
        except grpc.RpcError as error:
            raise error_of_call(error) from None
        finally:
            call.cancel()

    def session(
        self,
        options: Options | None = None,
        *,
        timeout: float | None = None,
        reconnect_within: float = 5.0,
        low_latency: bool = False,
    ) -> Session:
        """Opens a session: problems over time, each started from the one before.

        Args:
            options: For steps that bring none of their own.
            timeout: Of the whole session [s]. For each step there is `Options.time_budget`.
            reconnect_within: How long to look for the server when the connection is lost [s]; 0:
                the session then ends.
            low_latency: Whether the server should be awake for each next step: for 50 ms after an
                answer it keeps processors from falling asleep, by threads at idle priority.
                Answers come sooner, above all the latest ones. Its operator may forbid it.
        """

        def open_stream(requests: Iterator[bytes], left: float | None) -> Any:
            return self._stub.solve_session(
                requests, timeout=left, metadata=self._endpoint.metadata
            )

        return Session(open_stream, options, timeout, reconnect_within, low_latency)

    def info(self, *, timeout: float | None = None) -> ServerInfo:
        """Version, limits and hardware of the server."""
        return parse_info(self._call(self._stub.info, b"", timeout))

    def close(self) -> None:
        """Closes the connection, and stops the server if it is embedded."""
        self._channel.close()
        if self._server is not None:
            self._server.stop()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(
        self, method: Any, request: bytes, timeout: float | None, options: Options | None = None
    ) -> bytes:
        try:
            response: bytes = method(request, timeout=timeout, metadata=self._metadata(options))
        except grpc.RpcError as error:
            raise error_of_call(error) from None
        return response
