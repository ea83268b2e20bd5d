"""Client of the solver in this process, made by `connect("embedded:")`."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence

from numpy.typing import ArrayLike

from sap_islands.c_answer import Answer
from sap_islands.client import Client
from sap_islands.client_base import EMBEDDED, ServerInfo
from sap_islands.derivatives import Cotangent, Derivatives, DifferentiateRequest
from sap_islands.embedded_solver import EmbeddedSolver, Stop, value_of
from sap_islands.errors import DeadlineExceeded, SapError, Unavailable
from sap_islands.messages import StepOutcome
from sap_islands.options import Options
from sap_islands.problem import Problem
from sap_islands.session import Session
from sap_islands.solution import Solution

# Problems of `stream_batch` that are solved together, per thread.
_STREAMED_PER_THREAD = 4


class EmbeddedClient(Client):
    """As `Client`, without a server. Forked processes may use it too.

    A call ends with its solve: signals, as of Ctrl-C, are handled after it.
    """

    def __init__(self, threads: int | None = None) -> None:
        """Loads the solver; see `EmbeddedSolver`."""
        self._solver = EmbeddedSolver(threads)

    @property
    def address(self) -> str:
        """The address that `connect` got."""
        return EMBEDDED

    def solve(
        self, problem: Problem, options: Options | None = None, *, timeout: float | None = None
    ) -> Solution:
        """As `Client.solve`."""
        return self._solver.solve(problem, options, timeout)

    def solve_batch(
        self,
        problems: Sequence[Problem],
        options: Options | None = None,
        *,
        timeout: float | None = None,
    ) -> list[Solution | SapError]:
        """As `Client.solve_batch`."""
        return self._solver.solve_batch(problems, options, timeout)

    def stream_batch(
        self,
        problems: Sequence[Problem],
        options: Options | None = None,
        *,
        timeout: float | None = None,
    ) -> Iterator[tuple[int, Solution | SapError]]:
        """As `Client.stream_batch`."""
        return stream(self._solver, problems, options, timeout)

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
        """As `Client.differentiate`."""
        request = DifferentiateRequest(
            problem, cotangents, tangents, velocity, wanted, hold_delassus, options
        )
        return self._solver.differentiate(request, timeout)

    def differentiate_batch(
        self,
        requests: Sequence[DifferentiateRequest],
        *,
        time_budget: float | None = None,
        timeout: float | None = None,
    ) -> list[Derivatives | SapError]:
        """As `Client.differentiate_batch`."""
        return self._solver.differentiate_batch(requests, time_budget, timeout)

    def session(
        self,
        options: Options | None = None,
        *,
        timeout: float | None = None,
        reconnect_within: float = 5.0,
        low_latency: bool = False,
    ) -> Session:
        """As `Client.session`."""
        return EmbeddedSession(self._solver, options, timeout)

    def info(self, *, timeout: float | None = None) -> ServerInfo:
        """As `Client.info`."""
        return self._solver.info()

    def close(self) -> None:
        """As `Client.close`."""
        self._solver.close()


def stream(
    solver: EmbeddedSolver,
    problems: Sequence[Problem],
    options: Options | None,
    timeout: float | None,
) -> Iterator[tuple[int, Solution | SapError]]:
    """Outcomes with their indices, some problems at a time."""
    end = None if timeout is None else time.monotonic() + timeout
    size = _STREAMED_PER_THREAD * int(solver.info().solver_threads)
    for first in range(0, len(problems), size):
        left = None if end is None else end - time.monotonic()
        yield from enumerate(
            solver.solve_batch(problems[first : first + size], options, left), first
        )


class EmbeddedSession(Session):
    """As `Session`, without a stream: `send` solves the step, and its outcome waits.

    A call ends with its solve; there is nothing to reconnect to, and no latency to lower.
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
