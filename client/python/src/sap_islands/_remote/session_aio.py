"""Session of a server for asyncio."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

import grpc
import grpc.aio

from sap_islands._remote.server_identity import BuildCheck
from sap_islands._remote.session_base import SessionBase
from sap_islands._remote.session_state import LastSolved
from sap_islands.errors import Cancelled, Internal, SapError, Unavailable, error_of_call, value_of
from sap_islands.options import Options
from sap_islands.problem import Problem
from sap_islands.session import AsyncSession, StepOutcome
from sap_islands.solution import Solution


class AsyncRemoteSession(SessionBase, AsyncSession):
    """`RemoteSession` with coroutines."""

    def __init__(
        self,
        open_stream: Callable[[float | None, int], Any],
        options: Options | None,
        timeout: float | None,
        reconnect_within: float,
        low_latency: bool,
        build_check: BuildCheck,
    ) -> None:
        super().__init__(options, timeout, reconnect_within, low_latency, build_check)
        self._open_stream = open_stream
        self._stream: Any = None
        self._reading: asyncio.Task[Any] | None = None  # the next response, read during a write
        self._responses: deque[bytes] = deque()  # read and not yet taken

    async def step(self, problem: Problem, options: Options | None = None) -> Solution:
        self._check_idle()
        last_solved = self._state.last_solved
        try:
            await self.send(problem, options)
            outcome = await self.receive()
        except BaseException:
            if self.in_flight or self._state.last_solved is not last_solved:
                self._undo(0, last_solved)
            raise
        return value_of(outcome.outcome)

    async def send(self, problem: Problem, options: Options | None = None) -> int:
        await self._ensure_open()
        while self._state.unanswered >= self._max_in_flight:
            self._buffered_outcomes.append(await self._receive())
        step_id = self._state.add(problem, options)
        try:
            await self._flush_or_recover()
        except BaseException:
            self._undo(step_id, self._state.last_solved)
            raise
        return step_id

    async def receive(self) -> StepOutcome:
        if self._buffered_outcomes:
            return self._buffered_outcomes.popleft()
        await self._ensure_open()
        return await self._receive()

    async def close(self) -> None:
        if self._end_reason is not None or self._stream is None or not self._owner.is_current:
            return
        self._mark_closed()
        if self._interrupted:
            return
        if self._state.unanswered:
            await self._cancel()
            return
        try:
            await self._stream.done_writing()
            await self._stream.read()
        except grpc.aio.AioRpcError as error:
            self._check_closed(_error_of_stream(error))
        except asyncio.InvalidStateError:
            return

    async def __aenter__(self) -> AsyncSession:
        await self._ensure_open()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            await self.close()
        elif self._end_reason is None and self._stream is not None:
            self._mark_closed()
            await self._cancel()

    def _undo(self, step_id: int, last_solved: LastSolved | None) -> None:
        """Makes the steps from `step_id` on, which may be on their way, not to have been sent."""
        self._state.withdraw(step_id, last_solved)
        self._interrupt()

    def _interrupt(self) -> None:
        """Gives the stream up, unless the session has ended."""
        if self._end_reason is not None or self._stream is None:
            return
        self._note_interruption()
        self._stream.cancel()
        self._responses.clear()
        if self._reading is not None:
            self._reading.cancel()
            self._reading.add_done_callback(_ignore_outcome)
            self._reading = None

    async def _cancel(self) -> None:
        self._stream.cancel()
        if self._reading is not None:
            await asyncio.wait((self._reading,))

    async def _ensure_open(self) -> None:
        self._check_open()
        if self._stream is None:
            await self._connect()

    async def _flush_or_recover(self) -> None:
        if self._interrupted:
            return
        if self._is_leaving:
            if self._state.on_stream:
                return
            await self._leave_server()
        requests = self._state.take_sendable(self._max_in_flight)
        owed = self._state.on_stream - len(requests) - len(self._responses)
        try:
            for request in requests:
                owed += 1 - await self._write(request, owed)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            # The next read raises the reason; `_receive` reconnects there.
            return

    async def _write(self, request: bytes, owed: int) -> int:
        """Writes a request, and returns how many of the `owed` responses it has read meanwhile.

        A server at its limit of bytes receives no step before one of its responses is taken.
        """
        if owed == 0:
            await self._stream.write(request)
            return 0
        count = 0
        write = asyncio.ensure_future(self._stream.write(request))
        try:
            while count < owed and not write.done():
                reading = self._start_reading()
                await asyncio.wait((write, reading), return_when=asyncio.FIRST_COMPLETED)
                if not reading.done():
                    continue
                if reading.cancelled() or reading.exception() or reading.result() is grpc.aio.EOF:
                    break  # the stream has ended, and so does the write
                self._reading = None
                self._responses.append(reading.result())
                count += 1
            await write
        except asyncio.CancelledError:
            write.cancel()
            raise
        return count

    def _start_reading(self) -> asyncio.Task[Any]:
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._stream.read())
        return self._reading

    async def _next_response(self) -> Any:
        if self._responses:
            return self._responses.popleft()
        if self._reading is None:
            return await self._stream.read()
        reading, self._reading = self._reading, None
        return await reading

    async def _receive(self) -> StepOutcome:
        self._check_waiting()
        try:
            return await self._next_outcome()
        except BaseException:
            self._interrupt()
            raise

    async def _next_outcome(self) -> StepOutcome:
        while True:
            if self._interrupted:
                await self._recover(Cancelled("a call was interrupted"))
            elif not self._state.on_stream:
                await self._flush_or_recover()  # what was held back to leave the server
            try:
                response = await self._next_response()
            except grpc.aio.AioRpcError as error:
                await self._recover(_error_of_stream(error))
                continue
            if response is grpc.aio.EOF:
                await self._recover(Unavailable("the server ended the session"))
                continue
            outcome = self._take_outcome(response)
            if self._state.has_unsent and not self._is_leaving:
                await self._flush_or_recover()
            return outcome

    async def _recover(self, error: SapError) -> None:
        """Opens a new stream and resends the unanswered steps; raises if that is not allowed."""
        self._note_loss(error)
        await self._connect(error)
        await self._flush_or_recover()

    async def _connect(self, lost: SapError | None = None) -> None:
        """Opens a stream within `reconnect_within` seconds after one that ended with `lost`."""
        attempts = self._search(lost)
        place = self._place
        while (
            error := await self._try_to_open(attempts.search_left, place + attempts.number)
        ) is not None:
            await asyncio.sleep(self._pause_after(error, lost, attempts))

    async def _try_to_open(self, limit_s: float, place: int) -> SapError | None:
        """Replaces the stream by a new one, or returns why that could not be opened."""
        try:
            stream = self._open_stream(self._time_left(), place)
        except SapError as closed:
            self._end(closed)
        # Where packets vanish, gRPC itself would wait for much longer.
        limit = max(0.0, limit_s) if self._reconnect_within > 0 else None
        try:
            response = await asyncio.wait_for(_first_response(stream, self._opening), limit)
            if response is grpc.aio.EOF:
                return Internal("the server ended the session before it opened")
            self._take_opened(response)
            # The old stream is what remains to be ended.
            self._stream, stream = stream, self._stream
            self._place = place
        except asyncio.TimeoutError:
            return Unavailable("no server opened the session in time")
        except grpc.aio.AioRpcError as failure:
            return _error_of_stream(failure)
        except asyncio.InvalidStateError:
            return Unavailable("the server ended the session before it opened")
        except SapError as failure:
            return failure
        finally:
            if stream is not None:
                stream.cancel()
        return None

    async def _leave_server(self) -> None:
        """Opens a stream at another server; keeps the present one if there is none."""
        if await self._try_to_open(self._reconnect_within, self._place + 1) is not None:
            self._opened_draining = True


def _ignore_outcome(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()  # else asyncio logs that nobody has asked for it


async def _first_response(stream: Any, opening: bytes) -> Any:
    await stream.write(opening)
    return await stream.read()


def _error_of_stream(error: grpc.aio.AioRpcError) -> SapError:
    """The exception for a stream that ended.

    After a write to a broken stream, gRPC for asyncio reports INTERNAL "Internal error from Core"
    instead of the status with which the stream ended; that is a lost connection.
    """
    if error.code() is grpc.StatusCode.INTERNAL and error.details() == "Internal error from Core":
        return Unavailable("the connection is lost")
    return error_of_call(error)
