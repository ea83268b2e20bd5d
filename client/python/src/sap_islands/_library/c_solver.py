"""The sap_solver of the C library: its memory, and its calls with deadlines and stops."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sap_islands._library.c_answer import Answer
from sap_islands._library.c_library import load
from sap_islands._library.c_requests import (
    CallSettings,
    ConnectOptions,
    addresses,
    options_block,
)
from sap_islands._library.c_structs import ProblemBlock
from sap_islands.binaries import find_c_library
from sap_islands.errors import DeadlineExceeded, InvalidArgument, SapError, Unavailable
from sap_islands.options import Options
from sap_islands.problem import Problem
from sap_islands.solution import Solution

_MAX_IDLE = 32  # blocks kept for the next calls
# Part of the time to a deadline that is left for the answer.
_RESERVE = 0.05


class Stop:
    """Ends calls from another thread.

    Attributes:
        call: Address of the sap_call with this flag.
    """

    def __init__(self, library: Any) -> None:
        self._library = library
        self.handle: int = library.sap_stop_new()
        self._call = CallSettings(ctypes.sizeof(CallSettings), None, self.handle)
        self.call = ctypes.addressof(self._call)

    def request(self) -> None:
        """Ends the calls with `Cancelled`."""
        self._library.sap_stop_request(self.handle)

    def __del__(self) -> None:
        self._library.sap_stop_free(self.handle)


def _call_of(stop: Stop | None) -> int | None:
    return None if stop is None else stop.call


class Deadline:
    """The deadline of a call.

    Attributes:
        longest: Time that the solver may take [s]; None: unlimited.
    """

    def __init__(self, timeout: float | None) -> None:
        """Raises DeadlineExceeded if it has passed."""
        self._end = None if timeout is None else time.monotonic() + timeout
        self.longest = None if timeout is None else (1 - _RESERVE) * timeout
        if timeout is not None:
            self.check()

    def check(self) -> None:
        """Raises DeadlineExceeded if it has passed."""
        if self._end is not None and time.monotonic() >= self._end:
            raise DeadlineExceeded("the deadline of the call has passed")


class CSolver:
    """A solver of the C library, with memory for problems and answers that is used again.

    Attributes:
        library: The C library.
        handle: A sap_client of "embedded:" there.
        threads: How many work on one problem.
    """

    def __init__(self, threads: int | None) -> None:
        """Loads the C library.

        Args:
            threads: That work on one problem; None: as many as the process may use.

        Raises:
            InvalidArgument: The number of threads is out of range.
            Unavailable: The library was not found or cannot be loaded.
        """
        if threads is not None and not 1 <= threads <= 1024:
            raise InvalidArgument(f"threads is {threads}; it must be in [1, 1024]", "threads")
        self.library = load(find_c_library())
        self._idle_answers: list[int] = []
        self.handle = self._connect(threads or 0)
        self.threads = threads or self._count_threads()
        self._idle_blocks: list[ProblemBlock] = []
        self._open = True

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            for answer in self._idle_answers:
                self.library.sap_answer_free(answer)
            self.library.sap_client_free(self.handle)

    def _connect(self, threads: int) -> int:
        options = ConnectOptions(ctypes.sizeof(ConnectOptions), threads)
        client = ctypes.c_void_p()
        answer = self.answer()
        self.library.sap_connect(
            b"embedded:", ctypes.addressof(options), None, ctypes.addressof(client), answer.handle
        )
        if not client.value:
            raise answer.error()
        return client.value

    def _count_threads(self) -> int:
        answer = self.answer()
        self.library.sap_info(self.handle, None, answer.handle)
        return answer.solver_threads

    def open_session(self) -> int:
        """A sap_session."""
        session = ctypes.c_void_p()
        answer = self.answer()
        self.library.sap_session_open(
            self.handle, None, None, ctypes.addressof(session), answer.handle
        )
        if not session.value:
            raise answer.error()
        return session.value

    def close(self) -> None:
        """Ends it: further calls raise Unavailable."""
        self._open = False

    def check_options(self, options: Options | None) -> None:
        """Raises InvalidArgument for options that are refused; solves nothing."""
        self.run_batch(self.library.sap_solve_batch, [], options_block(options).address, None)

    def answer(self) -> Answer:
        """Memory for an answer."""
        return Answer(self.library, self._idle_answers)

    @contextmanager
    def blocks(self, count: int) -> Iterator[list[ProblemBlock]]:
        """Memory for the structs of so many problems."""
        blocks = [self._take_block() for _ in range(count)]
        yield blocks
        self._idle_blocks.extend(blocks[: max(0, _MAX_IDLE - len(self._idle_blocks))])

    def _take_block(self) -> ProblemBlock:
        try:
            return self._idle_blocks.pop()
        except IndexError:
            return ProblemBlock()

    def run(
        self,
        function: Callable[..., int],
        handle: int,
        problem: Problem,
        options: Options | None,
        timeout: float | None,
        stop: Stop | None,
    ) -> tuple[Solution | SapError, Answer]:
        """Solves a problem by a function of the library, on a solver or a session.

        Raises:
            DeadlineExceeded: The time has passed.
        """
        self._check_open()
        deadline = None if timeout is None else Deadline(timeout)
        settings = options_block(options, None if deadline is None else deadline.longest)
        block = self._take_block()
        block.fill(problem)
        answer = self.answer()
        function(handle, block.address, settings.address, _call_of(stop), answer.handle)
        self._idle_blocks.append(block)
        if deadline is not None:
            deadline.check()
        return answer.outcome(settings.mask), answer

    def differentiate(self, address: int, stop: Stop | None) -> Answer:
        """The answer to a sap_differentiation."""
        self._check_open()
        answer = self.answer()
        self.library.sap_differentiate(self.handle, address, _call_of(stop), answer.handle)
        return answer

    def run_batch(
        self,
        function: Callable[..., int],
        inputs: Sequence[int],
        settings: int | None,
        stop: Stop | None,
    ) -> list[Answer]:
        """The answers of a batch, whose inputs are addresses; raises what ended all of it."""
        self._check_open()
        # An empty batch has no answer for the error of its options: one input that is missing has.
        pointers = addresses(inputs or [None])
        answers = [self.answer() for _ in pointers]
        handles = addresses([answer.handle for answer in answers])
        kind = function(
            self.handle,
            len(answers),
            ctypes.addressof(pointers),
            settings,
            _call_of(stop),
            ctypes.addressof(handles),
        )
        if kind != 0:
            raise answers[0].error()
        return answers[: len(inputs)]

    def _check_open(self) -> None:
        if not self._open:
            raise Unavailable("the client is closed")
