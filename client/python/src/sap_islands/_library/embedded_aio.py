"""The solver in this process for asyncio.

Calls run on threads of the event loop's executor. A cancelled call ends its solve.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, TypeVar

from sap_islands._library.embedded_session import EmbeddedSession
from sap_islands._library.embedded_solver import EmbeddedSolver
from sap_islands.derivatives import Derivatives, DifferentiateRequest
from sap_islands.errors import SapError, Unavailable, value_of
from sap_islands.options import Options
from sap_islands.problem import Problem
from sap_islands.server_info import ServerInfo
from sap_islands.session import AsyncSession, StepOutcome
from sap_islands.solution import Solution

ResultT = TypeVar("ResultT")


async def _run(
    solver: EmbeddedSolver, function: Callable[..., ResultT], *arguments: Any
) -> ResultT:
    """Calls a function with the arguments and a stop, on another thread."""
    stop = solver.new_stop()
    call = functools.partial(function, *arguments, stop=stop)
    future = asyncio.get_running_loop().run_in_executor(None, call)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        stop.request()
        await asyncio.wait((future,))
        if not future.cancelled():
            future.exception()  # else asyncio logs that nobody has asked for it
        raise


class AsyncEmbeddedSolver:
    """The calls of `EmbeddedSolver` as coroutines."""

    address = EmbeddedSolver.address

    def __init__(self, threads: int | None) -> None:
        """Loads the solver; see `EmbeddedSolver`."""
        self._solver = EmbeddedSolver(threads)

    async def solve(
        self, problem: Problem, options: Options | None, timeout: float | None
    ) -> Solution:
        return await _run(self._solver, self._solver.solve, problem, options, timeout)

    async def solve_batch(
        self, problems: Sequence[Problem], options: Options | None, timeout: float | None
    ) -> list[Solution | SapError]:
        return await _run(self._solver, self._solver.solve_batch, problems, options, timeout)

    async def stream_batch(
        self, problems: Sequence[Problem], options: Options | None, timeout: float | None
    ) -> AsyncIterator[tuple[int, Solution | SapError]]:
        outcomes = self._solver.stream_batch(problems, options, timeout)
        while (indexed := await asyncio.to_thread(next, outcomes, None)) is not None:
            yield indexed

    async def differentiate(
        self, request: DifferentiateRequest, timeout: float | None
    ) -> Derivatives:
        return await _run(self._solver, self._solver.differentiate, request, timeout)

    async def differentiate_batch(
        self,
        requests: Sequence[DifferentiateRequest],
        time_budget: float | None,
        timeout: float | None,
    ) -> list[Derivatives | SapError]:
        return await _run(
            self._solver, self._solver.differentiate_batch, requests, time_budget, timeout
        )

    def session(
        self,
        options: Options | None,
        timeout: float | None,
        reconnect_within: float | None,
        low_latency: bool,
    ) -> AsyncEmbeddedSession:
        return AsyncEmbeddedSession(self._solver, options, timeout)

    async def info(self, timeout: float | None) -> ServerInfo:
        return self._solver.info()

    async def close(self) -> None:
        self._solver.close()


class AsyncEmbeddedSession(AsyncSession):
    """An `EmbeddedSession` that is made at its first use.

    `send` starts the step, in the order of the calls.
    """

    def __init__(
        self, solver: EmbeddedSolver, options: Options | None, timeout: float | None
    ) -> None:
        self._solver = solver
        self._settings = (options, timeout)
        self._session: EmbeddedSession | None = None
        self._closed = False

    @property
    def in_flight(self) -> int:
        return 0 if self._session is None else self._session.in_flight

    @property
    def open(self) -> bool:
        return not self._closed and (self._session is None or self._session.open)

    def reset(self) -> None:
        if self._session is not None:
            self._session.reset()

    async def step(self, problem: Problem, options: Options | None = None) -> Solution:
        session = self._opened()
        session.check_idle()
        return value_of((await _run(self._solver, session.take, problem, options)).outcome)

    async def send(self, problem: Problem, options: Options | None = None) -> int:
        return await _run(self._solver, self._opened().send, problem, options)

    async def receive(self) -> StepOutcome:
        return self._opened().receive()

    async def close(self) -> None:
        self._closed = True
        if self._session is not None:
            self._session.close()

    async def __aenter__(self) -> AsyncSession:
        self._opened()
        return self

    def _opened(self) -> EmbeddedSession:
        if self._session is None:
            if self._closed:
                raise Unavailable("the session is closed")
            self._session = self._solver.session(*self._settings, None, False)
        return self._session
