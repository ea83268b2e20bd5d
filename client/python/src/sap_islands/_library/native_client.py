"""A client of the C library: its memory, its calls, and how they wait.

Calls in this process run on the calling thread. Calls to servers run in the background and are
awaited in slices of 50 ms, between which signals are handled: an exception, as of Ctrl-C, ends the
call. ctypes releases the interpreter's lock in both.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from sap_islands._library.c_answer import Answer
from sap_islands._library.c_call import CallSettings, Stop
from sap_islands._library.c_requests import (
    ConnectSettings,
    Request,
    addresses,
    options_block,
)
from sap_islands._library.c_structs import ProblemBlock
from sap_islands.derivatives import Derivatives, DifferentiateRequest
from sap_islands.errors import InvalidArgument, SapError, Unavailable, value_of
from sap_islands.options import Options
from sap_islands.problem import Problem
from sap_islands.server_info import ServerInfo
from sap_islands.solution import Solution

ResultT = TypeVar("ResultT")

EMBEDDED = "embedded:"
_ALL_SERVERS = -1  # of the address

_MAX_IDLE = 32  # blocks kept for the next calls
# Between two looks at whether a signal has come.
_SLICE = ctypes.c_double(0.05)
SLICE = ctypes.addressof(_SLICE)


def number_of_servers(split: bool | int) -> int:
    """Returns the number of servers in a sap_call for the argument `split`.

    Raises:
        InvalidArgument: It is not a bool or a positive number.
    """
    if isinstance(split, bool):
        return _ALL_SERVERS if split else 1
    if not isinstance(split, int) or split < 1:
        message = f"split is {split!r}; it must be True, False or a number of servers >= 1"
        raise InvalidArgument(message, "split")
    return split


class NativeCall(Generic[ResultT]):
    """A call that has been prepared.

    Attributes:
        answers: Its answers; at least one.
        is_batch: Whether it takes a list of answers.
        blocks: Structs of its problems, which are read until it has ended.
    """

    __slots__ = (
        "_before",
        "_count",
        "_function",
        "_handles",
        "_kept",
        "_read",
        "answers",
        "blocks",
        "is_batch",
    )

    def __init__(
        self,
        function: Callable[..., int],
        before: tuple[Any, ...],
        answers: list[Answer],
        read: Callable[[Answer], ResultT | SapError],
        blocks: Sequence[ProblemBlock] = (),
        kept: tuple[Any, ...] = (),
        count: int | None = None,
    ) -> None:
        """Prepares a call.

        Args:
            function: Of the C library.
            before: Its arguments before the sap_call.
            answers: Its answers.
            read: Makes the result of an answer.
            blocks: See above.
            kept: What else the arguments point to.
            count: Of a batch: how many results it has; None: it is none.
        """
        self._function = function
        self._before = before
        self._read = read
        self._kept = kept
        self._count = count
        self.answers = answers
        self.blocks = blocks
        self.is_batch = count is not None

    def begin(self, settings: CallSettings | None) -> int:
        """Calls the function; returns the kind of its error."""
        call = None if settings is None else settings.address
        if not self.is_batch:
            return self._function(*self._before, call, self.answers[0].handle)
        # Read until the call has ended, which may be in the background.
        self._handles = addresses([answer.handle for answer in self.answers])
        return self._function(*self._before, call, ctypes.addressof(self._handles))

    def result(self) -> ResultT:
        """The result of a call with one answer; raises its error."""
        return value_of(self._read(self.answers[0]))

    def results(self) -> list[ResultT | SapError]:
        """The results of a batch."""
        return [self._read(answer) for answer in self.answers[: self._count]]


class Handle:
    """A sap_client or sap_session as an argument; it is freed with the last call that uses it."""

    def __init__(self, free: Callable[[int], None], value: int) -> None:
        self._free = free
        self._as_parameter_ = value

    def __del__(self) -> None:
        self._free(self._as_parameter_)


class NativeClient:
    """A sap_client. Threads may share it.

    Attributes:
        library: The C library.
        address: That it was made of.
        waits: Whether its calls wait for servers.
        threads: Of this process, that work on one problem.
    """

    def __init__(
        self, library: Any, address: str, settings: ConnectSettings, threads: int = 1
    ) -> None:
        """Makes the client; nothing is sent.

        Raises:
            SapError: An argument is malformed, or the library cannot reach servers.
        """
        self.library = library
        self.address = address
        self.waits = address != EMBEDDED
        self.threads = threads
        self._idle_answers: list[int] = []
        self._idle_blocks: list[ProblemBlock] = []
        self._idle_settings: list[CallSettings] = []
        self._handle: Handle | None = None
        client = ctypes.c_void_p()
        answer = self.answer()
        library.sap_connect(
            address.encode(), settings.address, None, ctypes.addressof(client), answer.handle
        )
        if not client.value:
            raise answer.error()
        self._handle = Handle(library.sap_client_free, client.value)

    def __del__(self) -> None:
        for answer in getattr(self, "_idle_answers", ()):
            self.library.sap_answer_free(answer)

    def __reduce__(self) -> Any:
        raise TypeError("clients and sessions cannot be pickled; connect in each process")

    def close(self) -> None:
        """Ends it: further calls raise Unavailable."""
        self._handle = None

    @property
    def is_open(self) -> bool:
        """Whether it was not closed."""
        return self._handle is not None

    def live(self) -> Handle:
        """The handle; raises Unavailable after `close`."""
        handle = self._handle
        if handle is None:
            raise Unavailable("the client is closed")
        return handle

    def answer(self) -> Answer:
        """Memory for an answer."""
        return Answer(self.library, self._idle_answers)

    def take_block(self) -> ProblemBlock:
        """Memory for the structs of a problem."""
        try:
            return self._idle_blocks.pop()
        except IndexError:
            return ProblemBlock()

    def filled_block(self, problem: Problem) -> ProblemBlock:
        """The structs of a problem."""
        block = self.take_block()
        block.fill(problem)
        return block

    def run(
        self, call: NativeCall[ResultT], timeout: float | None, servers: int = 0
    ) -> NativeCall[ResultT]:
        """Makes a call and waits for its end; returns it.

        Raises:
            SapError: What ended all of a batch.
        """
        if not self.waits:
            settings = None if timeout is None else CallSettings(timeout)
            kind = call.begin(settings)
        else:
            settings = self._background_settings(timeout, servers)
            kind = call.begin(settings)
            if kind == 0:
                self._await(call.answers[0], settings)
                kind = settings.kind
            if timeout is None:
                self._idle_settings.append(settings)
        self.finish(call, kind)
        return call

    def finish(self, call: NativeCall[Any], kind: int) -> None:
        """Keeps the structs of a call that has ended; raises the error of a whole batch."""
        self.keep(call.blocks)
        if call.is_batch and kind != 0:
            raise call.answers[0].error()

    def keep(self, blocks: Sequence[ProblemBlock]) -> None:
        """Keeps structs that are not read any more for the next calls."""
        for block in blocks:
            block.release()
            if len(self._idle_blocks) < _MAX_IDLE:
                self._idle_blocks.append(block)

    def _background_settings(self, timeout: float | None, servers: int) -> CallSettings:
        """Settings of a call that is awaited; without a deadline those of one that has ended."""
        if timeout is None:
            try:
                settings = self._idle_settings.pop()
            except IndexError:
                pass
            else:
                settings.set_servers(servers)
                return settings
        stop = Stop(self.library)
        return CallSettings(timeout, stop=stop, servers=servers, background=True)

    def _await(self, answer: Answer, settings: CallSettings) -> None:
        try:
            while not self.library.sap_answer_await(answer.handle, SLICE):
                pass
        except BaseException:
            settings.stop()
            self.library.sap_answer_await(answer.handle, None)
            raise

    # ---- What is asked; `run`, or its counterpart for asyncio, makes the calls.

    def solve(self, problem: Problem, options: Options | None) -> NativeCall[Solution]:
        """A call of sap_solve."""
        handle, settings = self.live(), options_block(options)
        block = self.filled_block(problem)
        return NativeCall(
            self.library.sap_solve,
            (handle, block.address, settings.address),
            [self.answer()],
            Answer.outcome,
            [block],
            (settings,),
        )

    def solve_batch(
        self, problems: Iterable[Problem], options: Options | None
    ) -> NativeCall[Solution]:
        """A call of sap_solve_batch."""
        settings = options_block(options)
        blocks = [self.filled_block(problem) for problem in problems]
        return self._batch(
            self.library.sap_solve_batch,
            [block.address for block in blocks],
            settings.address,
            Answer.outcome,
            blocks,
            (settings,),
        )

    def differentiate(self, request: DifferentiateRequest) -> NativeCall[Derivatives]:
        """A call of sap_differentiate."""
        handle, block = self.live(), self.take_block()
        struct = Request(request, options_block(request.options), block)
        return NativeCall(
            self.library.sap_differentiate,
            (handle, struct.address),
            [self.answer()],
            Answer.derivatives,
            [block],
            (struct,),
        )

    def differentiate_batch(
        self, requests: Iterable[DifferentiateRequest], time_budget: float | None
    ) -> NativeCall[Derivatives]:
        """A call of sap_differentiate_batch."""
        blocks: list[ProblemBlock] = []
        structs = []
        for request in requests:
            blocks.append(self.take_block())
            structs.append(Request(request, options_block(request.options), blocks[-1]))
        budget = None if time_budget is None else ctypes.c_double(time_budget)
        return self._batch(
            self.library.sap_differentiate_batch,
            [struct.address for struct in structs],
            None if budget is None else ctypes.addressof(budget),
            Answer.derivatives,
            blocks,
            (budget, structs),
        )

    def info(self) -> NativeCall[ServerInfo]:
        """A call of sap_info."""
        handle = self.live()
        return NativeCall(self.library.sap_info, (handle,), [self.answer()], Answer.info)

    def _batch(
        self,
        function: Callable[..., int],
        inputs: Sequence[int],
        settings: int | None,
        read: Callable[[Answer], ResultT | SapError],
        blocks: Sequence[ProblemBlock],
        kept: tuple[Any, ...],
    ) -> NativeCall[ResultT]:
        handle = self.live()
        # An empty batch has no answer for the error of its options: one input that is missing has.
        pointers = addresses(inputs or [None])
        answers = [self.answer() for _ in pointers]
        before = (handle, len(answers), ctypes.addressof(pointers), settings)
        return NativeCall(function, before, answers, read, blocks, (pointers, *kept), len(inputs))
