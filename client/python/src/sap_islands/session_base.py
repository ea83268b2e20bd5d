"""The part of a session that does no I/O, shared by the synchronous and the asyncio session."""

from __future__ import annotations

import time
from collections import deque

from sap_islands.errors import SapError, Unavailable
from sap_islands.messages import StepOutcome, open_request
from sap_islands.options import Options
from sap_islands.session_state import SessionState
from sap_islands.solution import Solution

RECONNECT_PAUSE_S = 0.1


class SessionBase:
    """Steps in flight, buffered outcomes, deadline, and the error that ended the session."""

    def __init__(
        self,
        options: Options | None,
        timeout: float | None,
        reconnect_within: float,
        low_latency: bool,
    ) -> None:
        self._opening = open_request(options, low_latency)
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._reconnect_within = reconnect_within
        self._state = SessionState()
        self._buffered_outcomes: deque[StepOutcome] = deque()
        self._end_reason: SapError | None = None
        self._max_in_flight = 1

    @property
    def in_flight(self) -> int:
        """Number of steps that were sent and whose outcome was not received."""
        return self._state.unanswered + len(self._buffered_outcomes)

    @property
    def open(self) -> bool:
        """Whether steps can be sent: False after the end or the deadline of the session."""
        return self._end_reason is None and self._time_left() != 0

    def _time_left(self) -> float | None:
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    def _check_idle(self) -> None:
        if self.in_flight:
            raise RuntimeError("steps are in flight; receive their outcomes first")

    def _check_waiting(self) -> None:
        if not self._state.unanswered:
            raise RuntimeError("no step is in flight")

    def _check_open(self) -> None:
        if self._end_reason is not None:
            raise self._end_reason

    def _mark_closed(self) -> None:
        self._end_reason = Unavailable("the session is closed")
        self._buffered_outcomes.clear()

    def _raise_unless_retryable(self, may_retry: bool, error: SapError) -> None:
        """Ends the session with `error` and raises it, unless it is `Unavailable` and may retry."""
        if not may_retry or not isinstance(error, Unavailable):
            self._end_reason = error
            raise error from None


def solution_of(step: StepOutcome) -> Solution:
    """The solution of a step; raises its error if it failed."""
    if isinstance(step.outcome, SapError):
        raise step.outcome
    return step.outcome
