"""Session of a server, over a stream."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Protocol

import grpc

from sap_islands._remote.server_identity import BuildCheck
from sap_islands._remote.session_base import SessionBase
from sap_islands._remote.session_state import LastSolved
from sap_islands.errors import Cancelled, Internal, SapError, Unavailable, error_of_call, value_of
from sap_islands.options import Options
from sap_islands.problem import Problem
from sap_islands.session import Session, StepOutcome
from sap_islands.solution import Solution


class _Stream(Protocol):
    """An open call of SolveSession."""

    def __next__(self) -> bytes: ...
    def cancel(self) -> bool: ...


OpenStream = Callable[[Iterator[bytes], float | None, int], _Stream]


class RemoteSession(SessionBase, Session):
    """A stream of steps to one server, or after a loss to another one."""

    def __init__(
        self,
        open_stream: OpenStream,
        options: Options | None,
        timeout: float | None,
        reconnect_within: float,
        low_latency: bool,
        build_check: BuildCheck,
        wait: Callable[[float], None],
    ) -> None:
        super().__init__(options, timeout, reconnect_within, low_latency, build_check)
        self._open_stream = open_stream
        self._wait = wait
        self._requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._connect()

    def step(self, problem: Problem, options: Options | None = None) -> Solution:
        self._check_idle()
        last_solved = self._state.last_solved
        try:
            self.send(problem, options)
            outcome = self.receive()
        except BaseException:
            if self.in_flight or self._state.last_solved is not last_solved:
                self._undo(0, last_solved)
            raise
        return value_of(outcome.outcome)

    def send(self, problem: Problem, options: Options | None = None) -> int:
        self._check_open()
        while self._state.unanswered >= self._max_in_flight:
            self._buffered_outcomes.append(self._receive())
        step_id = self._state.add(problem, options)
        try:
            self._flush()
        except BaseException:
            self._undo(step_id, self._state.last_solved)
            raise
        return step_id

    def receive(self) -> StepOutcome:
        if self._buffered_outcomes:
            return self._buffered_outcomes.popleft()
        self._check_open()
        return self._receive()

    def close(self) -> None:
        if self._end_reason is not None or not self._owner.is_current:
            return
        self._mark_closed()
        self._requests.put(None)
        if self._state.unanswered:
            self._stream.cancel()
            return
        # All steps are answered, so that only the status of the stream is left to read.
        try:
            next(self._stream, None)
        except grpc.RpcError as error:
            self._check_closed(error_of_call(error))

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        elif self._end_reason is None:
            self._abandon()

    def __del__(self) -> None:
        if getattr(self, "_end_reason", 0) is None and hasattr(self, "_stream"):
            self._abandon()

    def _abandon(self) -> None:
        if not self._owner.is_current:
            return
        self._mark_closed()
        self._requests.put(None)
        self._stream.cancel()

    def _undo(self, step_id: int, last_solved: LastSolved | None) -> None:
        """Makes the steps from `step_id` on, which may be on their way, not to have been sent."""
        self._state.withdraw(step_id, last_solved)
        self._interrupt()

    def _interrupt(self) -> None:
        """Gives the stream up, unless the session has ended."""
        if self._end_reason is None:
            self._note_interruption()
            self._stream.cancel()

    def _flush(self) -> None:
        if self._interrupted:
            return
        if self._is_leaving:
            if self._state.on_stream:
                return
            self._leave_server()
        for request in self._state.take_sendable(self._max_in_flight):
            self._requests.put(request)

    def _receive(self) -> StepOutcome:
        self._check_waiting()
        try:
            return self._next_outcome()
        except BaseException:
            self._interrupt()
            raise

    def _next_outcome(self) -> StepOutcome:
        while True:
            if self._interrupted:
                self._recover(Cancelled("a call was interrupted"))
            elif not self._state.on_stream:
                self._flush()  # what was held back to leave the server
            try:
                response = next(self._stream)
            except grpc.RpcError as error:
                self._recover(error_of_call(error))
            except StopIteration:
                self._recover(Unavailable("the server ended the session"))
            else:
                outcome = self._take_outcome(response)
                if self._state.has_unsent and not self._is_leaving:
                    self._flush()
                return outcome

    def _recover(self, error: SapError) -> None:
        """Opens a new stream and resends the unanswered steps; raises if that is not allowed."""
        self._requests.put(None)
        self._note_loss(error)
        self._connect(error)
        self._flush()

    def _connect(self, lost: SapError | None = None) -> None:
        """Opens a stream within `reconnect_within` seconds after one that ended with `lost`."""
        attempts = self._search(lost)
        place = self._place
        while (
            error := self._try_to_open(attempts.search_left, place + attempts.number)
        ) is not None:
            self._wait(self._pause_after(error, lost, attempts))

    def _try_to_open(self, limit_s: float, place: int) -> SapError | None:
        """Replaces the stream by a new one, or returns why that could not be opened."""
        requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        requests.put(self._opening)
        try:
            stream = self._open_stream(iter(requests.get, None), self._time_left(), place)
        except SapError as closed:
            self._end(closed)
        # Where packets vanish, gRPC itself would wait for much longer.
        limit = threading.Timer(max(0.0, limit_s), stream.cancel)
        limit.daemon = True
        if self._reconnect_within > 0:
            limit.start()
        give_up = time.monotonic() + limit_s
        try:
            self._take_opened(next(stream))
            self._stream, self._requests, self._place = stream, requests, place
            return None
        except StopIteration:
            return Internal("the server ended the session before it opened")
        except grpc.RpcError as failure:
            error = error_of_call(failure)
            if isinstance(error, Cancelled) and time.monotonic() >= give_up:
                error = Unavailable("no server opened the session in time")
            return error
        except SapError as failure:
            return failure
        finally:
            limit.cancel()
            if self._requests is not requests:
                requests.put(None)
                stream.cancel()

    def _leave_server(self) -> None:
        """Opens a stream at another server; keeps the present one if there is none."""
        stream, requests = self._stream, self._requests
        if self._try_to_open(self._reconnect_within, self._place + 1) is None:
            requests.put(None)
            stream.cancel()
        else:
            self._opened_draining = True
