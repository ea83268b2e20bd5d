"""The solver of servers for asyncio: `sap_islands._remote.remote_solver` with coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import grpc
import grpc.aio

from sap_islands._remote import messages
from sap_islands._remote.attempts import Attempts
from sap_islands._remote.remote_base import RemoteSolverBase
from sap_islands._remote.server_identity import identity_of
from sap_islands._remote.session_aio import AsyncRemoteSession
from sap_islands._remote.streamed_batch import StreamedBatch
from sap_islands.derivatives import Derivatives, DifferentiateRequest
from sap_islands.errors import SapError, error_of_call
from sap_islands.options import Options
from sap_islands.problem import Problem
from sap_islands.server_info import ServerInfo, parse_info
from sap_islands.solution import Solution


class AsyncRemoteSolver(RemoteSolverBase):
    """A `RemoteSolver` with coroutines. Use it in one event loop only."""

    _library = grpc.aio

    async def solve(
        self, problem: Problem, options: Options | None, timeout: float | None
    ) -> Solution:
        request = messages.solve_request(problem, options)
        return messages.solution_of_response(await self._call("solve", request, timeout, options))

    async def solve_batch(
        self, problems: Sequence[Problem], options: Options | None, timeout: float | None
    ) -> list[Solution | SapError]:
        request = messages.batch_request(problems, options)
        return messages.outcomes_of_response(
            await self._call("solve_batch", request, timeout, options)
        )

    async def stream_batch(
        self, problems: Sequence[Problem], options: Options | None, timeout: float | None
    ) -> AsyncIterator[tuple[int, Solution | SapError]]:
        batch = StreamedBatch(problems, options)
        attempts = Attempts(self._reconnect_within, timeout)
        metadata = self._metadata(options)
        while True:
            call = self._stub(attempts.number).stream_batch(
                batch.request, timeout=attempts.time_left, metadata=metadata
            )
            try:
                is_checked = False
                async for response in call:
                    if not is_checked:  # the end of the stream would be too late
                        self._build_check.check(identity_of(await call.initial_metadata()))
                        is_checked = True
                    attempts.note_progress()
                    yield batch.take(response)
                batch.check_answered()
                return
            except grpc.aio.AioRpcError as failure:
                error = error_of_call(failure)
            finally:
                call.cancel()
            if batch.is_answered:
                return
            await asyncio.sleep(self._pause_after(error, attempts))
            batch.resend()

    async def differentiate(
        self, request: DifferentiateRequest, timeout: float | None
    ) -> Derivatives:
        serialized = messages.differentiate_request(request)
        return messages.derivatives_of_response(
            await self._call("differentiate", serialized, timeout, request.options)
        )

    async def differentiate_batch(
        self,
        requests: Sequence[DifferentiateRequest],
        time_budget: float | None,
        timeout: float | None,
    ) -> list[Derivatives | SapError]:
        request = messages.differentiate_batch_request(requests, time_budget)
        options = requests[0].options if requests else None
        return messages.derivatives_of_batch(
            await self._call("differentiate_batch", request, timeout, options)
        )

    def session(
        self,
        options: Options | None,
        timeout: float | None,
        reconnect_within: float | None,
        low_latency: bool,
    ) -> AsyncRemoteSession:
        """A session, not yet open."""

        def open_stream(left: float | None, place: int) -> Any:
            return self._stub(place).solve_session(timeout=left, metadata=self._endpoint.metadata)

        return AsyncRemoteSession(
            open_stream,
            options,
            timeout,
            self._reconnect_within if reconnect_within is None else reconnect_within,
            low_latency,
            self._build_check,
        )

    async def info(self, timeout: float | None) -> ServerInfo:
        return parse_info(await self._call("info", b"", timeout))

    async def close(self) -> None:
        if not self._owner.is_current:
            return
        self._closed = True
        for channel in self._channels:
            await channel.close()
        if self._server is not None:
            await asyncio.to_thread(self._server.stop)

    async def _call(
        self, method: str, request: bytes, timeout: float | None, options: Options | None = None
    ) -> bytes:
        attempts = Attempts(self._reconnect_within, timeout)
        metadata = self._metadata(options)
        while True:
            call = getattr(self._stub(attempts.number), method)(
                request, timeout=attempts.time_left, metadata=metadata
            )
            try:
                response = await call
            except grpc.aio.AioRpcError as failure:
                error = error_of_call(failure)
            else:
                self._build_check.check(identity_of(await call.trailing_metadata()))
                return bytes(response)
            await asyncio.sleep(self._pause_after(error, attempts))
