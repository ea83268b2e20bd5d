"""Synchronous client: `connect`, single solves, batches and sessions.

A problem has the same solution, bit for bit, over TCP, a Unix socket or an embedded server of the
same version and instruction set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import grpc
from numpy.typing import ArrayLike

from sap_islands import messages
from sap_islands.channel import Endpoint, Tls
from sap_islands.client_base import (
    ClientBase,
    ServerInfo,
    check_embedded,
    parse_info,
    resolve_address,
)
from sap_islands.derivatives import Cotangent, Derivatives, DifferentiateRequest
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
    threads: int | None = None,
) -> Client:
    """Makes a client of the server at an address. Nothing is sent until the first call.

    Args:
        address: "HOST:PORT" or "unix:PATH" of a server; "embedded:" for the solver in this process;
            or "embedded:process" to start a server that the client owns, for isolation.
        tls: True or certificates to encrypt the connection; False: plain text.
        token: Bearer token sent with every call; needs TLS, a loopback address or a Unix socket.
        retry: Whether all calls but `stream_batch` are repeated while the server is unavailable,
            with at most 5 attempts; they are idempotent.
        server_arguments: Further command-line arguments of the server of "embedded:process".
        threads: That work on one problem of "embedded:"; None: all that the process may use.

    Raises:
        InvalidArgument: An argument is malformed; `field` names it.
        Unavailable: The library or server to embed was not found or did not start.
    """
    if check_embedded(address, threads, server_arguments):
        from sap_islands.embedded_client import EmbeddedClient  # a kind of Client

        return EmbeddedClient(threads)
    return Client(*resolve_address(address, tls, token, retry, server_arguments))


class Client(ClientBase):
    """Client of one server, made by `connect`. Threads may share it, forked processes may not.

    `timeout` is the deadline of a call [s]; None: no deadline. The server stops shortly before it
    and returns the best iterate if it has one. All calls raise `SapError`.
    """

    def __init__(self, endpoint: Endpoint, server: EmbeddedServer | None = None) -> None:
        super().__init__(endpoint, server, grpc)

    def solve(
        self, problem: Problem, options: Options | None = None, *, timeout: float | None = None
    ) -> Solution:
        """Solves one problem.

        Args:
            problem: The problem.
            options: None: the server's defaults.
            timeout: Deadline of the call [s].
        """
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
        """Solves independent problems concurrently.

        Returns:
            For each problem, in order, its solution or the error that it failed with.
        """
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
        """As `solve_batch`, but yields (index of the problem, outcome) as each is finished."""
        request = messages.batch_request(problems, options)
        call = self._stub.stream_batch(request, timeout=timeout, metadata=self._metadata(options))
        try:
            for response in call:
                yield messages.indexed_outcome(response)
        except grpc.RpcError as error:
            raise error_of_call(error) from None
        finally:
            call.cancel()

    def differentiate(
        self,
        problem: Problem,
        cotangents: Sequence[Cotangent] = (),
        *,
        tangents: Sequence[Problem] = (),
        velocity: ArrayLike = (),
        wanted: Sequence[str] = (),
        hold_delassus: bool = False,
        options: Options | None = None,
        timeout: float | None = None,
    ) -> Derivatives:
        """Derivatives of the solution of one problem with respect to its inputs.

        Reverse mode with `cotangents`, forward mode with `tangents`, or both. Each cotangent and
        tangent costs a solve with the factor of the Hessian that all share.

        Impulses have kinks: there the derivatives are those of one side, the branch that the solver
        takes (see `sap_islands.derivatives`), and never infinite or NaN. Check `kink_margin` of the
        result.

        Args:
            problem: The problem.
            cotangents: dL/d(output), in the shapes of `Solution`; one gradient is returned for
                each.
            tangents: Problems whose numbers are directions d(input); see `DifferentiateRequest`.
            velocity: [nv] velocity of the solution, if it is at hand [m/s, rad/s]. It is checked:
                an island where it does not meet the tolerance is solved from there.
            wanted: Inputs to return in gradients, for example "contacts.friction", "bodies.mass",
                "applied_impulse". Empty: all but dynamics_matrix, jacobian and angular_jacobian.
            hold_delassus: Whether the Delassus estimates w are constants.
            options: None: the server's defaults; `relative_tolerance` is 1e-10 here.
            timeout: Deadline of the call [s].

        Raises:
            InvalidArgument: `field` names the input, cotangent, tangent or path at fault.
        """
        request = messages.differentiate_request(
            DifferentiateRequest(
                problem, cotangents, tangents, velocity, wanted, hold_delassus, options
            )
        )
        return messages.derivatives_of_response(
            self._call(self._stub.differentiate, request, timeout, options)
        )

    def differentiate_batch(
        self,
        requests: Sequence[DifferentiateRequest],
        *,
        time_budget: float | None = None,
        timeout: float | None = None,
    ) -> list[Derivatives | SapError]:
        """Differentiates independent problems concurrently.

        Args:
            requests: The problems, each with its cotangents, tangents and options. The priority of
                the first is that of the batch.
            time_budget: Time for the whole batch [s]; None: unlimited.
            timeout: Deadline of the call [s].

        Returns:
            For each request, in order, its derivatives or the error that it failed with.
        """
        request = messages.differentiate_batch_request(requests, time_budget)
        options = requests[0].options if requests else None
        return messages.derivatives_of_batch(
            self._call(self._stub.differentiate_batch, request, timeout, options)
        )

    def session(
        self,
        options: Options | None = None,
        *,
        timeout: float | None = None,
        reconnect_within: float = 5.0,
        low_latency: bool = False,
    ) -> Session:
        """Opens a session: a sequence of problems, each warm-started from the one before.

        Args:
            options: Options of the steps that are sent without their own.
            timeout: Deadline of the whole session [s]; for one step use `Options.time_budget`.
            reconnect_within: How long to look for a server after a lost connection [s]; 0: the
                session ends.
            low_latency: Whether the server keeps its processors out of deep idle states for 50 ms
                after each answer, with threads of idle priority. This shortens mainly the tail of
                the latency. The operator of the server may forbid it.
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
        """Closes the connection; stops the server if it is embedded.

        In a process forked from that which made the client it does nothing.
        """
        if not self._owner.is_current:
            return
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
