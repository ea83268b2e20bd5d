"""The part of a session that does no I/O, shared by the synchronous and the asyncio session."""

from __future__ import annotations

import time
from collections import deque
from typing import NoReturn

from sap_islands._process.owner_process import OwnerProcess
from sap_islands._remote.attempts import Attempts, check_reconnect_within
from sap_islands._remote.loss import is_lost
from sap_islands._remote.messages import open_request, session_opened, step_outcome
from sap_islands._remote.server_identity import BuildCheck
from sap_islands._remote.session_state import SessionState
from sap_islands.errors import Cancelled, ResourceExhausted, SapError, Unavailable
from sap_islands.options import Options
from sap_islands.session import StepOutcome

# A step that ends so many streams, and over the whole time to reconnect, is not sent again: it may
# be what ends them.
_MAX_LOSSES = 10


class SessionBase:
    """Steps in flight, buffered outcomes, deadline, and the error that ended the session."""

    def __init__(
        self,
        options: Options | None,
        timeout: float | None,
        reconnect_within: float,
        low_latency: bool,
        build_check: BuildCheck,
    ) -> None:
        self._reconnect_within = check_reconnect_within(reconnect_within)
        self._build_check = build_check
        self._state = SessionState(options, reconnect_within > 0)
        self._opening = open_request(self._state.options, low_latency)
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._buffered_outcomes: deque[StepOutcome] = deque()
        self._end_reason: SapError | None = None
        self._max_in_flight = 1
        self._draining = False
        self._opened_draining = False  # from the first response of the stream on
        self._interrupted = False  # a call was left half-way, so the stream was given up
        self._owner = OwnerProcess()
        self._place = 0  # where the stream is, of the places that the client tries in turn
        self._losses = 0  # since the last outcome
        self._first_loss = 0.0

    @property
    def in_flight(self) -> int:
        return self._state.unanswered + len(self._buffered_outcomes)

    @property
    def open(self) -> bool:
        return self._end_reason is None and self._time_left() != 0

    def reset(self) -> None:
        self._check_open()
        self._check_idle()
        self._state.reset()

    def _time_left(self) -> float | None:
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    def _check_idle(self) -> None:
        if self.in_flight:
            raise RuntimeError("steps are in flight; receive their outcomes first")

    def _check_waiting(self) -> None:
        if not self._state.unanswered:
            raise RuntimeError("no step is in flight")

    def _check_open(self) -> None:
        self._owner.check("session")
        if self._end_reason is not None:
            raise self._end_reason

    def _mark_closed(self) -> None:
        self._end_reason = Unavailable("the session is closed")
        self._buffered_outcomes.clear()

    def _note_interruption(self) -> None:
        """Marks the stream as given up: nobody knows what it has taken and returned."""
        self._interrupted = True
        if self._reconnect_within <= 0 and self._end_reason is None:
            self._end_reason = Cancelled(
                "a call was interrupted, and the session may not reconnect"
            )

    def _end(self, error: SapError) -> NoReturn:
        self._end_reason = error
        raise error from None

    def _take_opened(self, response: bytes) -> None:
        """Takes the first response of a stream.

        Raises:
            FailedPrecondition: The server is of another build than the first one.
        """
        opened = session_opened(response)
        self._build_check.check(opened.server)
        self._max_in_flight, self._draining, _ = opened
        self._opened_draining = self._draining
        self._interrupted = False
        self._state.restart_stream()

    def _take_outcome(self, response: bytes) -> StepOutcome:
        outcome, self._draining = step_outcome(response)
        self._losses = 0
        return self._state.answer(outcome)

    @property
    def _is_leaving(self) -> bool:
        """Whether to open another stream, which another server may take.

        First the steps on the present stream are answered, and no others are sent on it. Where the
        same server takes the new stream, the session stays until that one ends.
        """
        return self._draining and not self._opened_draining and self._reconnect_within > 0

    def _note_loss(self, error: SapError) -> None:
        """Ends the session with `error` if no other stream may follow the one that it ended."""
        now = time.monotonic()
        if not self._losses:
            self._first_loss = now
        self._losses += 1
        in_vain = self._losses > _MAX_LOSSES and now > self._first_loss + self._reconnect_within
        if in_vain or self._reconnect_within <= 0 or not is_lost(error, in_session=True):
            self._end(error)

    def _check_closed(self, error: SapError) -> None:
        """Raises the error of a closed stream; a loss is none where no step is left."""
        if not is_lost(error, in_session=True):
            raise error from None

    def _search(self, lost: SapError | None) -> Attempts:
        """The attempts to open a stream, after one that ended with `lost` if there was one."""
        attempts = Attempts(self._reconnect_within)
        if lost is not None:
            attempts.next_pause()
        return attempts

    def _pause_after(self, error: SapError, lost: SapError | None, attempts: Attempts) -> float:
        """How long to wait before another attempt to open a stream, which may succeed in time [s].

        Args:
            error: Of the last attempt; unless another one may help, the session ends with it.
            lost: Why the stream before ended; None: there was none.
            attempts: Those until now.
        """
        # A server that has not noticed the loss may still count the old stream against its limit.
        full = lost is not None and isinstance(error, ResourceExhausted)
        if not full and not is_lost(error, in_session=True):
            self._end(error)
        pause = attempts.next_pause()
        if pause is None:
            self._end(lost or error)
        return pause
