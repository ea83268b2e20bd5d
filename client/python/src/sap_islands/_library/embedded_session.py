"""Session of the solver in this process."""

from __future__ import annotations

import time
from collections import deque

from sap_islands._library.c_answer import Answer
from sap_islands._library.c_solver import CSolver, Stop
from sap_islands.errors import DeadlineExceeded, SapError, Unavailable, value_of
from sap_islands.options import Options
from sap_islands.problem import Problem
from sap_islands.session import Session, StepOutcome
from sap_islands.solution import Solution


class EmbeddedSession(Session):
    """A sap_session of the C library: `send` solves the step, and its outcome waits."""

    def __init__(self, solver: CSolver, options: Options | None, timeout: float | None) -> None:
        solver.check_options(options)
        self._solver = solver
        self._options = options
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._outcomes: deque[StepOutcome] = deque()
        self._num_sent = 0
        self._end_reason: SapError | None = None
        self._time_left()
        self._handle = solver.open_session()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._solver.library.sap_session_free(self._handle)

    @property
    def in_flight(self) -> int:
        return len(self._outcomes)

    @property
    def open(self) -> bool:
        passed = self._deadline is not None and time.monotonic() >= self._deadline
        return self._end_reason is None and not passed

    def step(self, problem: Problem, options: Options | None = None) -> Solution:
        self.check_idle()
        return value_of(self._solve(problem, options, None)[0])

    def send(
        self, problem: Problem, options: Options | None = None, *, stop: Stop | None = None
    ) -> int:
        outcome = self.take(problem, options, stop)
        self._outcomes.append(outcome)
        return outcome.step_id

    def receive(self) -> StepOutcome:
        if self._outcomes:
            return self._outcomes.popleft()
        self._check_open()
        raise RuntimeError("no step is in flight")

    def reset(self) -> None:
        self._check_open()
        self.check_idle()
        self._solver.library.sap_session_reset(self._handle, self._solver.answer().handle)

    def close(self) -> None:
        if self._end_reason is None:
            self._end_reason = Unavailable("the session is closed")
            self._outcomes.clear()

    def take(
        self, problem: Problem, options: Options | None, stop: Stop | None = None
    ) -> StepOutcome:
        """Solves a step.

        Raises:
            SapError: The session has ended.
        """
        outcome, answer = self._solve(problem, options, stop)
        return StepOutcome(self._num_sent, outcome, answer.warm_started)

    def check_idle(self) -> None:
        """Raises RuntimeError if the outcome of a step waits."""
        if self._outcomes:
            raise RuntimeError("steps are in flight; receive their outcomes first")

    def _solve(
        self, problem: Problem, options: Options | None, stop: Stop | None
    ) -> tuple[Solution | SapError, Answer]:
        self._check_open()
        left = self._time_left()
        self._num_sent += 1
        return self._solver.run(
            self._solver.library.sap_session_step,
            self._handle,
            problem,
            options or self._options,
            left,
            stop,
        )

    def _time_left(self) -> float | None:
        """Raises DeadlineExceeded, and ends the session, if its deadline has passed."""
        if self._deadline is None:
            return None
        left = self._deadline - time.monotonic()
        if left <= 0:
            self._end_reason = DeadlineExceeded("the deadline of the session has passed")
            raise self._end_reason
        return left

    def _check_open(self) -> None:
        if self._end_reason is not None:
            raise self._end_reason
