"""The solver of servers, over gRPC: the calls of `Client`, which end with one outcome each.

A call whose connection or server is lost is repeated, until its deadline or for the time of
`connect`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import grpc

from sap_islands._remote import messages
from sap_islands._remote.attempts import Attempts
from sap_islands._remote.remote_base import RemoteSolverBase
from sap_islands._remote.remote_session import RemoteSession
from sap_islands._remote.server_identity import identity_of
from sap_islands._remote.streamed_batch import StreamedBatch
from sap_islands.derivatives import Derivatives, DifferentiateRequest
from sap_islands.errors import SapError, error_of_call
from sap_islands.options import Options
from sap_islands.problem import Problem
from sap_islands.server_info import ServerInfo, parse_info
from sap_islands.solution import Solution


class RemoteSolver(RemoteSolverBase):
    """Channels to servers, and the server if it is embedded. Threads may share it."""

    _library = grpc

    def solve(self, problem: Problem, options: Options | None, timeout: float | None) -> Solution:
        request = messages.solve_request(problem, options)
        return messages.solution_of_response(self._call("solve", request, timeout, options))

    def solve_batch(
        self, problems: Sequence[Problem], options: Options | None, timeout: float | None
    ) -> list[Solution | SapError]:
        request = messages.batch_request(problems, options)
        return messages.outcomes_of_response(self._call("solve_batch", request, timeout, options))

    def stream_batch(
        self, problems: Sequence[Problem], options: Options | None, timeout: float | None
    ) -> Iterator[tuple[int, Solution | SapError]]:
        batch = StreamedBatch(problems, options)
        attempts = Attempts(self._reconnect_within, timeout)
        metadata = self._metadata(options)
        while True:
            call = self._stub(attempts.number).stream_batch(
                batch.request, timeout=attempts.time_left, metadata=metadata
            )
            try:
                for number, response in enumerate(call):
                    if number == 0:  # the end of the stream would be too late
                        self._build_check.check(identity_of(call.initial_metadata()))
                    attempts.note_progress()
                    yield batch.take(response)
            except grpc.RpcError as failure:
                error = error_of_call(failure)
            else:
                batch.check_answered()
                return
            finally:
                call.cancel()
            if batch.is_answered:
                return
            self._wait(self._pause_after(error, attempts))
            batch.resend()

    def differentiate(self, request: DifferentiateRequest, timeout: float | None) -> Derivatives:
        serialized = messages.differentiate_request(request)
        return messages.derivatives_of_response(
            self._call("differentiate", serialized, timeout, request.options)
        )

    def differentiate_batch(
        self,
        requests: Sequence[DifferentiateRequest],
        time_budget: float | None,
        timeout: float | None,
    ) -> list[Derivatives | SapError]:
        request = messages.differentiate_batch_request(requests, time_budget)
        options = requests[0].options if requests else None
        return messages.derivatives_of_batch(
            self._call("differentiate_batch", request, timeout, options)
        )

    def session(
        self,
        options: Options | None,
        timeout: float | None,
        reconnect_within: float | None,
        low_latency: bool,
    ) -> RemoteSession:

        def open_stream(requests: Iterator[bytes], left: float | None, place: int) -> Any:
            return self._stub(place).solve_session(
                requests, timeout=left, metadata=self._endpoint.metadata
            )

        return RemoteSession(
            open_stream,
            options,
            timeout,
            self._reconnect_within if reconnect_within is None else reconnect_within,
            low_latency,
            self._build_check,
            self._wait,
        )

    def info(self, timeout: float | None) -> ServerInfo:
        return parse_info(self._call("info", b"", timeout))

    def close(self) -> None:
        if not self._owner.is_current:
            return
        self._closed = True
        for channel in self._channels:
            channel.close()
        if self._server is not None:
            self._server.stop()

    def _wait(self, seconds: float) -> None:
        """Waits, and lets the channels connect: they do so only while they are polled."""
        if seconds <= 0:
            return
        for channel in self._channels:
            channel.subscribe(_ignore_state, try_to_connect=True)
        try:
            time.sleep(seconds)
        finally:
            for channel in self._channels:
                channel.unsubscribe(_ignore_state)

    def _call(
        self, method: str, request: bytes, timeout: float | None, options: Options | None = None
    ) -> bytes:
        attempts = Attempts(self._reconnect_within, timeout)
        metadata = self._metadata(options)
        while True:
            try:
                response, call = getattr(self._stub(attempts.number), method).with_call(
                    request, timeout=attempts.time_left, metadata=metadata
                )
            except grpc.RpcError as failure:
                error = error_of_call(failure)
            else:
                self._build_check.check(identity_of(call.trailing_metadata()))
                return bytes(response)
            self._wait(self._pause_after(error, attempts))


def _ignore_state(state: grpc.ChannelConnectivity) -> None:
    """Takes what a channel reports."""
