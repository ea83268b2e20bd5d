"""Calls and sessions of the C library for asyncio, which `sap_islands.aio` has.

They run in the background and set wakeups of the event loop: no thread of Python is involved. A
cancelled call ends its solve.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import AsyncIterator, Iterable
from typing import Any

from sap_islands._library.c_call import CallSettings, Stop
from sap_islands._library.native_batch import WAITS, NativeBatch
from sap_islands._library.native_client import NativeCall, NativeClient, ResultT
from sap_islands._library.native_session import SessionHandle, SessionSettings
from sap_islands._library.wakeups import Switchboard, Wakeup
from sap_islands.derivatives import Derivatives, DifferentiateRequest
from sap_islands.errors import SapError, Unavailable, value_of
from sap_islands.options import Options
from sap_islands.problem import Problem
from sap_islands.server_info import ServerInfo
from sap_islands.session import AsyncSession, StepOutcome
from sap_islands.solution import Solution

_NO_TIME = ctypes.c_double(0.0)
NO_TIME = ctypes.addressof(_NO_TIME)


class AsyncNativeClient:
    """Makes the calls of a `NativeClient` in one event loop."""

    def __init__(self, client: NativeClient) -> None:
        self.client = client
        self._board: Switchboard | None = None

    def __del__(self) -> None:
        self.close()

    def wakeup(self) -> Wakeup:
        """A wakeup of the running event loop."""
        loop = asyncio.get_running_loop()
        if self._board is None or self._board.loop is not loop:
            self.close()
            self._board = Switchboard.for_loop(loop, self.client.library)
        return self._board.wakeup()

    def close(self) -> None:
        """Leaves the descriptor to other clients, when no call uses it any more."""
        if self._board is not None:
            self._board.leave()
            self._board = None

    async def run(
        self, call: NativeCall[ResultT], timeout: float | None, servers: int = 0
    ) -> NativeCall[ResultT]:
        """Makes a call and waits for its end; returns it.

        Raises:
            SapError: What ended all of a batch.
        """
        stop = Stop(self.client.library)
        wakeup = self.wakeup()
        settings = CallSettings(
            timeout,
            stop=stop,
            servers=servers,
            background=True,
            done=wakeup.done,
            context=wakeup.context,
        )
        try:
            kind = call.begin(settings)
            if kind == 0:
                await self._wait(call, stop, wakeup)
                kind = settings.kind
        finally:
            wakeup.close()
        self.client.finish(call, kind)
        return call

    async def _wait(self, call: NativeCall[Any], stop: Stop, wakeup: Wakeup) -> None:
        library, answer = self.client.library, call.answers[0].handle
        try:
            while not library.sap_answer_await(answer, NO_TIME):
                await wakeup.wait()
        except BaseException:
            # The arrays of the call are read until it has ended, which is soon.
            stop.request()
            library.sap_answer_await(answer, None)
            raise

    async def stream_batch(
        self, problems: Iterable[Problem], options: Options | None, timeout: float | None
    ) -> AsyncIterator[tuple[int, Solution | SapError]]:
        """Yields (index of the problem, outcome) as each is finished."""
        wakeup = self.wakeup()
        try:
            batch = NativeBatch(
                self.client, problems, options, timeout, done=wakeup.done, context=wakeup.context
            )
            try:
                for _ in range(batch.count):
                    while (number := batch.next(NO_TIME)) == WAITS:
                        await wakeup.wait()
                    yield number, batch.outcome(number)
            finally:
                batch.free()
        finally:
            wakeup.close()


class AsyncNativeSession(AsyncSession):
    """A session that is opened at its first use."""

    def __init__(self, client: AsyncNativeClient, settings: SessionSettings) -> None:
        self._client = client
        self._settings = settings
        self._session: SessionHandle | None = None
        self._wakeup: Wakeup | None = None
        self._is_open = False
        self._closed = False

    def __del__(self) -> None:
        self._free()

    @property
    def in_flight(self) -> int:
        return 0 if self._session is None else self._session.in_flight

    @property
    def open(self) -> bool:
        return not self._closed and (self._session is None or self._session.open)

    def reset(self) -> None:
        if self._session is not None:
            self._session.reset()
        elif self._closed:
            raise Unavailable("the session is closed")

    async def step(self, problem: Problem, options: Options | None = None) -> Solution:
        session, wakeup = await self._opened()
        session.check_idle()
        if not session.client.waits:
            call = session.step_call(problem, options)
            return (await self._client.run(call, None)).result()
        sent = session.send_call(problem, options)
        try:
            session.run(sent)
            while not session.wait_for_outcome(NO_TIME):
                await wakeup.wait()
        except BaseException:
            session.withdraw(sent)
            raise
        return value_of(session.take().outcome())

    async def send(self, problem: Problem, options: Options | None = None) -> int:
        session, wakeup = await self._opened()
        if not session.client.waits:
            call = session.send_call(problem, options)
            return (await self._client.run(call, None)).result()
        while not session.wait_for_room(NO_TIME):
            await wakeup.wait()
        return session.run(session.send_call(problem, options))

    async def receive(self) -> StepOutcome:
        session, wakeup = await self._opened()
        session.check_in_flight()
        while not session.wait_for_outcome(NO_TIME):
            await wakeup.wait()
        return session.take_outcome()

    async def close(self) -> None:
        self._closed = True
        self._free()

    async def __aenter__(self) -> AsyncSession:
        await self._opened()
        return self

    async def _opened(self) -> tuple[SessionHandle, Wakeup]:
        if self._session is None or self._wakeup is None:
            if self._closed:
                raise Unavailable("the session is closed")
            self._session, self._wakeup = self._begin()
        if not self._is_open:
            while not self._session.wait_for_opening(NO_TIME):
                await self._wakeup.wait()
            self._session.check_opened()
            self._is_open = True
        return self._session, self._wakeup

    def _begin(self) -> tuple[SessionHandle, Wakeup]:
        wakeup = self._client.wakeup()
        try:
            session = SessionHandle(self._client.client, self._settings, background=True)
            session.notify(wakeup.done, wakeup.context)
        except BaseException:
            wakeup.close()
            raise
        return session, wakeup

    def _free(self) -> None:
        """Frees the session, wakes who waits for it, and then frees its wakeup."""
        if self._session is not None:
            self._session.free()
        if self._wakeup is not None:
            self._wakeup.wake()
            self._wakeup.close()


class AsyncNativeSolver:
    """The calls of a client as coroutines of one event loop."""

    def __init__(self, client: NativeClient) -> None:
        self._client = client
        self._calls = AsyncNativeClient(client)
        self.address = client.address

    async def close(self) -> None:
        self._client.close()
        self._calls.close()

    async def solve(
        self, problem: Problem, options: Options | None, timeout: float | None, servers: int
    ) -> Solution:
        call = self._client.solve(problem, options)
        return (await self._calls.run(call, timeout, servers)).result()

    async def solve_batch(
        self, problems: Iterable[Problem], options: Options | None, timeout: float | None
    ) -> list[Solution | SapError]:
        call = self._client.solve_batch(problems, options)
        return (await self._calls.run(call, timeout)).results()

    def stream_batch(
        self, problems: Iterable[Problem], options: Options | None, timeout: float | None
    ) -> AsyncIterator[tuple[int, Solution | SapError]]:
        return self._calls.stream_batch(problems, options, timeout)

    async def differentiate(
        self, request: DifferentiateRequest, timeout: float | None
    ) -> Derivatives:
        return (await self._calls.run(self._client.differentiate(request), timeout)).result()

    async def differentiate_batch(
        self,
        requests: Iterable[DifferentiateRequest],
        time_budget: float | None,
        timeout: float | None,
    ) -> list[Derivatives | SapError]:
        call = self._client.differentiate_batch(requests, time_budget)
        return (await self._calls.run(call, timeout)).results()

    def session(self, settings: SessionSettings) -> AsyncSession:
        return AsyncNativeSession(self._calls, settings)

    async def info(self, timeout: float | None) -> ServerInfo:
        return (await self._calls.run(self._client.info(), timeout)).result()
