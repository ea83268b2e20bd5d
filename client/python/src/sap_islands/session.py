"""Session: a sequence of contact problems, one per time step of a simulation.

Memory and symbolic factorizations are reused between steps. Each step starts from the velocities of
the last solved step, matched by `tree_id` and `body_id`, unless it has a guess.

    with client.session() as session:
        while ...:
            solution = session.step(problem)            # sends and waits

Steps may also be sent before earlier ones are answered; outcomes are received in the same order:

    session.send(first)
    session.send(second)
    outcome = session.receive()                         # of the first
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from sap_islands.errors import SapError
from sap_islands.options import Options
from sap_islands.problem import Problem
from sap_islands.solution import Solution


class StepOutcome(NamedTuple):
    """Outcome of one step of a session.

    Attributes:
        step_id: The number that `send` returned.
        outcome: The solution, or the error that the step failed with.
        warm_started: Whether a tree or body started from its velocity in the last solved step.
    """

    step_id: int
    outcome: Solution | SapError
    warm_started: bool


class _AnySession(ABC):
    """The part of a session that does not wait, which both kinds share."""

    @property
    @abstractmethod
    def in_flight(self) -> int:
        """Number of steps that were sent and whose outcome was not received."""

    @property
    @abstractmethod
    def open(self) -> bool:
        """Whether steps can be sent: False after the end or the deadline of the session."""

    @abstractmethod
    def reset(self) -> None:
        """Makes the next step start as the first one of a session, from v* if it has no guess.

        An episode that is repeated then has the same bits, whatever the session solved before.

        Raises:
            SapError: The session has ended.
            RuntimeError: Steps are in flight.
        """


class Session(_AnySession):
    """A sequence of steps, opened by `Client.session`. Not thread-safe.

    A failed step, for example one with an invalid field, does not end the session; the next step
    starts from the last solved one. The state of a session is in this process: the last velocities,
    and the unanswered steps. If the connection is lost, or the server restarts or ends the session
    as idle, it opens a new stream within `reconnect_within` seconds, at any server of the address,
    and sends the unanswered steps again, with the same results. If that fails, or after the
    deadline of the session, every call raises the reason.

    A call to a server that an exception such as KeyboardInterrupt ends while it waits has no
    effect: the step is not taken, or not sent, or its outcome is still to be received. The session
    goes on with a new stream. In "embedded:", `send` solves the step and its outcome waits; a call
    ends with its solve, and signals are handled after it.
    """

    @abstractmethod
    def step(self, problem: Problem, options: Options | None = None) -> Solution:
        """Sends a step and waits for its solution.

        Args:
            problem: The problem of this step.
            options: Options of this step; None: those of the session.

        Raises:
            SapError: The step failed; the session is still usable if `open` is True.
            RuntimeError: Another step is in flight.
        """

    @abstractmethod
    def send(self, problem: Problem, options: Options | None = None) -> int:
        """Sends a step without waiting for its outcome; returns its number: 1, 2, ...

        If the server's limit of steps in flight is reached, this waits for the oldest outcome and
        buffers it for `receive`. The problem is copied: it may be changed afterwards.
        """

    @abstractmethod
    def receive(self) -> StepOutcome:
        """Waits for the outcome of the oldest step in flight.

        Raises:
            SapError: The session has ended.
            RuntimeError: No step is in flight.
        """

    @abstractmethod
    def close(self) -> None:
        """Ends the session; steps in flight are cancelled and their outcomes are lost."""

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close()


class AsyncSession(_AnySession):
    """`Session` with coroutines, for asyncio. Use it from one task at a time.

    A cancelled call, for example by `asyncio.wait_for`, has no effect; in "embedded:" a cancelled
    `step` has none unless it was solved at that moment.
    """

    @abstractmethod
    async def step(self, problem: Problem, options: Options | None = None) -> Solution:
        """Sends a step and waits for its solution; see `Session.step`."""

    @abstractmethod
    async def send(self, problem: Problem, options: Options | None = None) -> int:
        """Sends a step without waiting for its outcome; see `Session.send`."""

    @abstractmethod
    async def receive(self) -> StepOutcome:
        """Waits for the outcome of the oldest step in flight; see `Session.receive`."""

    @abstractmethod
    async def close(self) -> None:
        """Ends the session; steps in flight are cancelled and their outcomes are lost."""

    def __await__(self) -> Any:
        return self.__aenter__().__await__()

    @abstractmethod
    async def __aenter__(self) -> AsyncSession:
        """Opens the session."""

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await self.close()
