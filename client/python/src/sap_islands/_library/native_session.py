"""A session of the C library, which has the state of it: velocities, and steps in flight.

In this process `send` solves the step, and its outcome waits. From a server, waits are in slices,
and a call that an exception interrupts has no effect.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass

from sap_islands._library.c_answer import Answer
from sap_islands._library.c_call import CallSettings
from sap_islands._library.c_requests import check_reconnect_within, options_block
from sap_islands._library.native_client import SLICE, Handle, NativeCall, NativeClient, ResultT
from sap_islands.errors import SapError, Unavailable, value_of
from sap_islands.options import Options
from sap_islands.problem import Problem
from sap_islands.session import Session, StepOutcome
from sap_islands.solution import Solution


@dataclass
class SessionSettings:
    """The arguments of `Client.session`."""

    options: Options | None
    timeout: float | None
    reconnect_within: float | None
    low_latency: bool

    def __post_init__(self) -> None:
        if self.reconnect_within is not None:
            check_reconnect_within(self.reconnect_within)


class SessionHandle:
    """A sap_session.

    Attributes:
        client: Its client.
    """

    def __init__(
        self, client: NativeClient, settings: SessionSettings, background: bool = False
    ) -> None:
        """Begins to open the session; see `wait_for_opening`.

        Args:
            client: Its client.
            settings: Of the session.
            background: Whether the library serves it, rather than who waits.

        Raises:
            SapError: The options are refused, or no session can be opened.
        """
        self.client = client
        self._handle: Handle | None = None
        self._library = client.library
        session = ctypes.c_void_p()
        answer = client.answer()
        options = options_block(settings.options)
        call = CallSettings(
            settings.timeout,
            background=background,
            reconnect_within=settings.reconnect_within,
            low_latency=settings.low_latency,
            opens_later=client.waits,
        )
        client.library.sap_session_open(
            client.live(),
            options.address,
            call.address,
            ctypes.addressof(session),
            answer.handle,
        )
        if not session.value:
            raise answer.error()
        self._handle = Handle(client.library.sap_session_free, session.value)

    def free(self) -> None:
        """Closes it: steps in flight are cancelled, when no call of another thread uses it."""
        self._handle = None

    @property
    def in_flight(self) -> int:
        """Number of steps that were sent and not taken."""
        handle = self._handle
        return 0 if handle is None else int(self._library.sap_session_in_flight(handle))

    @property
    def open(self) -> bool:
        """Whether steps can be sent."""
        handle = self._handle if self.client.is_open else None
        return handle is not None and bool(self._library.sap_session_is_open(handle))

    def check_opened(self) -> None:
        """Raises why the session has ended, if it has."""
        if not self._library.sap_session_is_open(self._live()):
            raise self.take().error()

    def check_idle(self) -> None:
        """Raises Unavailable after `free`, and RuntimeError if steps are in flight."""
        if self._live() and self.in_flight:
            raise RuntimeError("steps are in flight; receive their outcomes first")

    def check_in_flight(self) -> None:
        """Raises RuntimeError if no step is in flight, and why the session has ended if it has."""
        if not (self._live() and self.in_flight):
            self.check_opened()
            raise RuntimeError("no step is in flight")

    def step_call(self, problem: Problem, options: Options | None) -> NativeCall[Solution]:
        """A call that solves a step."""
        return self._call(self._library.sap_session_step, problem, options, Answer.outcome)

    def send_call(self, problem: Problem, options: Options | None) -> NativeCall[int]:
        """A call that sends a step; its result is the number of the step."""
        return self._call(
            self._library.sap_session_send,
            problem,
            options,
            lambda answer: answer.step_id or answer.error(),
        )

    def run(self, call: NativeCall[ResultT]) -> ResultT:
        """Makes a call on this thread."""
        self.client.finish(call, call.begin(None))
        return call.result()

    # Each says whether it is so, and waits for it as long as the double at `wait` says.

    def wait_for_opening(self, wait: int | None) -> bool:
        """Whether the session has been opened, or has ended."""
        return bool(self._library.sap_session_await_open(self._live(), wait))

    def wait_for_room(self, wait: int | None) -> bool:
        """Whether `send` would return at once."""
        return bool(self._library.sap_session_await_room(self._live(), wait))

    def wait_for_outcome(self, wait: int | None) -> bool:
        """Whether `take` would return at once."""
        return bool(self._library.sap_session_await_outcome(self._live(), wait))

    def take(self) -> Answer:
        """Takes the outcome of the oldest step in flight."""
        answer = self.client.answer()
        self._library.sap_session_take(self._live(), None, answer.handle)
        return answer

    def take_outcome(self) -> StepOutcome:
        """Takes the outcome of the oldest step in flight; raises why the session has ended."""
        answer = self.take()
        if not answer.step_id:
            raise answer.error()
        return StepOutcome(answer.step_id, answer.outcome(), answer.warm_started)

    def notify(self, function: int | None, context: int | None) -> None:
        """Sets the function that is called, with `context`, when a wait may have ended."""
        answer = self.client.answer()
        if self._library.sap_session_notify(self._live(), function, context, answer.handle):
            raise answer.error()

    def withdraw(self, call: NativeCall[int]) -> None:
        """Makes the step that the call sends, and all later ones, not to have been sent."""
        answer = call.answers[0]
        if self.in_flight and answer.step_id:
            self._library.sap_session_withdraw(
                self._live(), answer.step_id, self.client.answer().handle
            )

    def reset(self) -> None:
        """Forgets the velocities."""
        self.check_idle()
        answer = self.client.answer()
        if self._library.sap_session_reset(self._live(), answer.handle):
            raise answer.error()

    def _call(
        self,
        function: Callable[..., int],
        problem: Problem,
        options: Options | None,
        read: Callable[[Answer], ResultT | SapError],
    ) -> NativeCall[ResultT]:
        handle = self._live()
        settings = None if options is None else options_block(options)
        block = self.client.filled_block(problem)
        before = (handle, block.address, None if settings is None else settings.address)
        return NativeCall(function, before, [self.client.answer()], read, (block,), (settings,))

    def _live(self) -> Handle:
        handle = self._handle
        if handle is None:
            raise Unavailable("the session is closed")
        self.client.live()
        return handle


class NativeSession(Session):
    """The session that `Client.session` returns."""

    def __init__(self, client: NativeClient, settings: SessionSettings) -> None:
        """Opens it; see `SessionHandle`."""
        self._session = SessionHandle(client, settings)
        if client.waits:
            while not self._session.wait_for_opening(SLICE):
                pass
            self._session.check_opened()

    @property
    def in_flight(self) -> int:
        return self._session.in_flight

    @property
    def open(self) -> bool:
        return self._session.open

    def step(self, problem: Problem, options: Options | None = None) -> Solution:
        session = self._session
        session.check_idle()
        if not session.client.waits:
            return session.run(session.step_call(problem, options))
        call = session.send_call(problem, options)
        try:
            session.run(call)
            while not session.wait_for_outcome(SLICE):
                pass
        except BaseException:
            session.withdraw(call)
            raise
        return value_of(session.take().outcome())

    def send(self, problem: Problem, options: Options | None = None) -> int:
        while not self._session.wait_for_room(SLICE):
            pass
        return self._session.run(self._session.send_call(problem, options))

    def receive(self) -> StepOutcome:
        self._session.check_in_flight()
        while not self._session.wait_for_outcome(SLICE):
            pass
        return self._session.take_outcome()

    def reset(self) -> None:
        self._session.reset()

    def close(self) -> None:
        self._session.free()
