"""Session of the solver in this process."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

from sap_islands._embedded.c_answer import Answer
from sap_islands._remote.messages import StepOutcome
from sap_islands.errors import DeadlineExceeded, SapError, Unavailable, value_of
from sap_islands.options import Options
from sap_islands.problem import Problem
from sap_islands.session import Session
from sap_islands.solution import Solution

if TYPE_CHECKING:
    from sap_islands._embedded.embedded_solver import EmbeddedSolver, Stop


class EmbeddedSession(Session):
    """As `Session`, without a stream: `send` solves the step, and its outcome waits.

    A call ends with its solve: signals, as of Ctrl-C, are handled after it.
    """

    def __init__(
        self, solver: EmbeddedSolver, options: Options | None, timeout: float | None
    ) -> None:
        self._solver = solver
        self._options = options
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._outcomes: deque[StepOutcome] = deque()
        self._num_sent = 0
        self._end_reason: SapError | None = None
        # Options that are refused are refused now.
        solver.solve(Problem(1.0), options, timeout)
        self._handle: int = solver.library.sap_session_new(solver.handle)
        if not self._handle:
            raise MemoryError("no memory for a session")

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._solver.library.sap_session_free(self._handle)

    @property
    def in_flight(self) -> int:
        """As `Session.in_flight`."""
        return len(self._outcomes)

    def step(self, problem: Problem, options: Options | None = None) -> Solution:
        """As `Session.step`."""
        self._check_idle()
        return value_of(self._solve(problem, options, None)[0])

    def send(
        self, problem: Problem, options: Options | None = None, *, stop: Stop | None = None
    ) -> int:
        """As `Session.send`."""
        outcome = self.take(problem, options, stop)
        self._outcomes.append(outcome)
        return outcome.step_id

    def receive(self) -> StepOutcome:
        """As `Session.receive`."""
        if self._outcomes:
            return self._outcomes.popleft()
        self._check_open()
        raise RuntimeError("no step is in flight")

    def reset(self) -> None:
        """As `Session.reset`."""
        self._check_open()
        self._check_idle()
        self._solver.library.sap_session_reset(self._handle)

    def close(self) -> None:
        """As `Session.close`."""
        if self._end_reason is None:
            self._end_reason = Unavailable("the session is closed")
            self._outcomes.clear()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._end_reason is not None:
            raise self._end_reason

    def take(
        self, problem: Problem, options: Options | None, stop: Stop | None = None
    ) -> StepOutcome:
        """Solves a step.

        Raises:
            SapError: The session has ended.
        """
        outcome, answer = self._solve(problem, options, stop)
        return StepOutcome(self._num_sent, outcome, answer.warm_started)

    def _solve(
        self, problem: Problem, options: Options | None, stop: Stop | None
    ) -> tuple[Solution | SapError, Answer]:
        self._check_open()
        left = self._time_left()
        if left == 0:
            self._end(DeadlineExceeded("the deadline of the session has passed"))
        self._num_sent += 1
        return self._solver.run(
            self._solver.library.sap_session_step,
            self._handle,
            problem,
            options or self._options,
            left,
            stop,
        )
