"""The solver in this process, through the C library: the calls of `Client`.

No message is made, and no other process or socket is involved. The bits are those of a server of
the same version and instruction set.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sap_islands._embedded.c_answer import ALL_FIELDS, Answer, Forecast
from sap_islands._embedded.c_library import find_c_library, load
from sap_islands._embedded.c_structs import ProblemBlock
from sap_islands._embedded.embedded_session import EmbeddedSession
from sap_islands._remote.address import EMBEDDED
from sap_islands.derivatives import Cotangent, Derivatives, DifferentiateRequest
from sap_islands.errors import (
    DeadlineExceeded,
    InvalidArgument,
    SapError,
    Unavailable,
    value_of,
)
from sap_islands.options import Options, serialize
from sap_islands.problem import Problem
from sap_islands.server_info import ServerInfo
from sap_islands.solution import Solution
from sap_islands.v1 import solver_service_pb2 as service

_pointer = ctypes.c_void_p
_MAX_IDLE = 32  # blocks kept for the next calls
# Problems of `stream_batch` that are solved together, per thread.
_STREAMED_PER_THREAD = 4
_DEFAULTS = Options()
# Part of the time to a deadline that is left for the answer.
_RESERVE = 0.05
# What ProblemLimits of the solver accepts; a server has these as defaults.
_PROBLEM_LIMITS = {
    "max_trees": 1 << 20,
    "max_tree_dofs": 1024,
    "max_contacts": 1 << 22,
    "max_rows": 1 << 22,
    "max_row_entries": 1 << 24,
    "max_row_pairs": 1 << 20,
    "max_iterations": (1 << 31) - 1,
}


class _Options(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("relative_tolerance", ctypes.POINTER(ctypes.c_double)),
        ("absolute_speed_tolerance", ctypes.POINTER(ctypes.c_double)),
        ("max_iterations", ctypes.POINTER(ctypes.c_uint32)),
        ("time_budget_s", ctypes.POINTER(ctypes.c_double)),
        ("newton", ctypes.c_int32),
        ("one_island", ctypes.c_int32),
        ("max_memory_bytes", ctypes.c_uint64),
    )


class _Array(ctypes.Structure):
    _fields_ = (("data", _pointer), ("length", ctypes.c_int64))


class _Cotangent(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("velocity", _Array),
        ("impulse", _Array),
        ("contact_velocity", _Array),
        ("row_impulse", _Array),
        ("row_velocity", _Array),
        ("angular_impulse", _Array),
        ("cost", ctypes.c_double),
    )


class _Differentiation(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("problem", _pointer),
        ("options", _pointer),
        ("velocity", _Array),
        ("num_cotangents", ctypes.c_int64),
        ("cotangents", _pointer),
        ("num_tangents", ctypes.c_int64),
        ("tangents", _pointer),
        ("num_wanted", ctypes.c_int64),
        ("wanted", _pointer),
        ("hold_delassus", ctypes.c_int32),
    )


class _OptionsBlock:
    """Options as a struct, and the mask of the solution.

    Attributes:
        address: Of the sap_options.
        mask: The fields of the solution to return.
    """

    def __init__(self, options: Options, longest: float | None) -> None:
        serialize(options)  # refuses numbers that the message cannot hold
        self.mask = _mask(options)
        budget = options.time_budget
        if longest is not None:
            budget = longest if budget is None else min(budget, longest)
        struct = _Options(ctypes.sizeof(_Options))
        if options.relative_tolerance is not None:
            struct.relative_tolerance.contents = ctypes.c_double(options.relative_tolerance)
        if options.absolute_speed_tolerance is not None:
            speed = ctypes.c_double(options.absolute_speed_tolerance)
            struct.absolute_speed_tolerance.contents = speed
        if options.max_iterations is not None:
            struct.max_iterations.contents = ctypes.c_uint32(options.max_iterations)
        if budget is not None:
            struct.time_budget_s.contents = ctypes.c_double(budget)
        struct.newton = int(options.newton)
        struct.one_island = int(options.islands is False)
        self._struct = struct
        self.address = ctypes.addressof(struct)


@functools.lru_cache(maxsize=256)
def _unlimited(options: Options) -> _OptionsBlock:
    return _OptionsBlock(options, None)


def options_block(options: Options | None, longest: float | None = None) -> _OptionsBlock:
    """The options, with at most `longest` seconds."""
    options = options or _DEFAULTS
    return _unlimited(options) if longest is None else _OptionsBlock(options, longest)


def _mask(options: Options) -> frozenset[str]:
    for i, name in enumerate(options.response_mask):
        if name not in ALL_FIELDS:
            field = f"options.response_mask.paths[{i}]"
            message = f"{field} is '{name[:64]}'; it must be the name of a field of ContactSolution"
            raise InvalidArgument(message, field)
    return frozenset(options.response_mask) or ALL_FIELDS


class Stop:
    """Ends calls from another thread."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self.handle: int = library.sap_stop_new()

    def request(self) -> None:
        """Ends the calls with `Cancelled`."""
        self._library.sap_stop_request(self.handle)

    def __del__(self) -> None:
        self._library.sap_stop_free(self.handle)


class _Deadline:
    """The deadline of a call."""

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


def _addresses(handles: Sequence[int | None]) -> Any:
    return (_pointer * len(handles))(*handles)


class _Request:
    """A sap_differentiation, with all that it points to."""

    def __init__(
        self, request: DifferentiateRequest, options: _OptionsBlock, block: ProblemBlock
    ) -> None:
        block.fill(request.problem)
        tangents = [ProblemBlock() for _ in request.tangents]
        for tangent, direction in zip(tangents, request.tangents, strict=True):
            tangent.fill(direction, request.problem)
        cotangents = [_cotangent(cotangent) for cotangent in request.cotangents]
        texts = [path.encode() for path in request.wanted]
        lists = (
            _addresses([ctypes.addressof(cotangent) for cotangent in cotangents]),
            _addresses([tangent.address for tangent in tangents]),
            (ctypes.c_char_p * len(texts))(*texts),
        )
        self.mask = options.mask
        self._kept = (request, options, block, tangents, cotangents, texts, lists)
        self._struct = _Differentiation(
            ctypes.sizeof(_Differentiation),
            block.address,
            options.address,
            _array(request.velocity),
            len(cotangents),
            ctypes.addressof(lists[0]),
            len(tangents),
            ctypes.addressof(lists[1]),
            len(texts),
            ctypes.addressof(lists[2]),
            int(request.hold_delassus),
        )
        self.address = ctypes.addressof(self._struct)


def _array(array: Any) -> _Array:
    return _Array(array.ctypes.data, array.size)


def _cotangent(cotangent: Cotangent) -> _Cotangent:
    arrays = (_array(getattr(cotangent, name)) for name, _ in _Cotangent._fields_[1:-1])
    return _Cotangent(ctypes.sizeof(_Cotangent), *arrays, cotangent.cost)


class EmbeddedSolver:
    """Threads and memory of the solver in this process. Threads and forked processes may share it.

    Attributes:
        address: The address of `connect` that stands for it.
        library: The C library.
        handle: Its sap_solver there.
    """

    address = EMBEDDED

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
        self.handle: int = self.library.sap_solver_new(threads or 0)
        if not self.handle:
            raise MemoryError("no memory or threads for a solver")
        self._idle_answers: list[int] = []
        self._idle_blocks: list[ProblemBlock] = []
        self._open = True

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            for answer in self._idle_answers:
                self.library.sap_answer_free(answer)
            self.library.sap_solver_free(self.handle)

    def close(self) -> None:
        """Ends it: further calls raise Unavailable."""
        self._open = False

    def answer(self) -> Answer:
        """Memory for an answer."""
        return Answer(self.library, self._idle_answers)

    @contextmanager
    def _blocks(self, count: int) -> Iterator[list[ProblemBlock]]:
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
        if not self._open:
            raise Unavailable("the client is closed")
        deadline = None if timeout is None else _Deadline(timeout)
        settings = options_block(options, None if deadline is None else deadline.longest)
        block = self._take_block()
        block.fill(problem)
        answer = self.answer()
        function(
            handle,
            block.address,
            settings.address,
            None if stop is None else stop.handle,
            answer.handle,
        )
        self._idle_blocks.append(block)
        if deadline is not None:
            deadline.check()
        return answer.outcome(settings.mask), answer

    def solve(
        self,
        problem: Problem,
        options: Options | None,
        timeout: float | None,
        stop: Stop | None = None,
    ) -> Solution:
        """As `Client.solve`."""
        return value_of(
            self.run(self.library.sap_solve, self.handle, problem, options, timeout, stop)[0]
        )

    def find_islands(self, problem: Problem) -> Forecast | SapError:
        """The islands of a problem that is checked and not solved, or its error."""
        answer = self.answer()
        with self._blocks(1) as (block,):
            block.fill(problem)
            self.library.sap_find_islands(self.handle, block.address, answer.handle)
        return answer.forecast()

    def solve_batch(
        self,
        problems: Sequence[Problem],
        options: Options | None,
        timeout: float | None,
        stop: Stop | None = None,
    ) -> list[Solution | SapError]:
        """As `Client.solve_batch`."""
        deadline = _Deadline(timeout)
        settings = options_block(options, deadline.longest)
        with self._blocks(len(problems)) as blocks:
            for block, problem in zip(blocks, problems, strict=True):
                block.fill(problem)
            addresses = _addresses([block.address for block in blocks])
            answers = self._run_batch(
                self.library.sap_solve_batch, addresses, settings.address, stop
            )
        deadline.check()
        return [answer.outcome(settings.mask) for answer in answers]

    def stream_batch(
        self, problems: Sequence[Problem], options: Options | None, timeout: float | None
    ) -> Iterator[tuple[int, Solution | SapError]]:
        """As `Client.stream_batch`, some problems at a time."""
        end = None if timeout is None else time.monotonic() + timeout
        size = _STREAMED_PER_THREAD * int(self.library.sap_solver_threads(self.handle))
        for first in range(0, len(problems), size):
            left = None if end is None else end - time.monotonic()
            yield from enumerate(
                self.solve_batch(problems[first : first + size], options, left), first
            )

    def differentiate(
        self, request: DifferentiateRequest, timeout: float | None, stop: Stop | None = None
    ) -> Derivatives:
        """As `Client.differentiate`."""
        if not self._open:
            raise Unavailable("the client is closed")
        deadline = _Deadline(timeout)
        settings = options_block(request.options, deadline.longest)
        answer = self.answer()
        with self._blocks(1) as blocks:
            struct = _Request(request, settings, blocks[0])
            self.library.sap_differentiate(
                self.handle, struct.address, None if stop is None else stop.handle, answer.handle
            )
        deadline.check()
        return value_of(answer.derivatives(settings.mask))

    def differentiate_batch(
        self,
        requests: Sequence[DifferentiateRequest],
        time_budget: float | None,
        timeout: float | None,
        stop: Stop | None = None,
    ) -> list[Derivatives | SapError]:
        """As `Client.differentiate_batch`."""
        deadline = _Deadline(timeout)
        longest = [limit for limit in (time_budget, deadline.longest) if limit is not None]
        budget = ctypes.c_double(min(longest)) if longest else None
        with self._blocks(len(requests)) as blocks:
            structs = [
                _Request(request, options_block(request.options), block)
                for request, block in zip(requests, blocks, strict=True)
            ]
            answers = self._run_batch(
                self.library.sap_differentiate_batch,
                _addresses([struct.address for struct in structs]),
                None if budget is None else ctypes.addressof(budget),
                stop,
            )
        deadline.check()
        return [
            answer.derivatives(struct.mask) for answer, struct in zip(answers, structs, strict=True)
        ]

    def _run_batch(
        self, function: Callable[..., int], inputs: Any, settings: int | None, stop: Stop | None
    ) -> list[Answer]:
        """The answers of a batch; raises what ended all of it."""
        if not self._open:
            raise Unavailable("the client is closed")
        answers = [self.answer() for _ in inputs] or [self.answer()]
        handles = _addresses([answer.handle for answer in answers])
        kind = function(
            self.handle,
            len(inputs),
            ctypes.addressof(inputs),
            settings,
            None if stop is None else stop.handle,
            ctypes.addressof(handles),
        )
        if kind != 0:
            raise answers[0].error()
        return answers[: len(inputs)]

    def session(
        self,
        options: Options | None,
        timeout: float | None,
        reconnect_within: float | None,
        low_latency: bool,
    ) -> EmbeddedSession:
        """As `Client.session`: there is nothing to reconnect to, and no latency to lower."""
        return EmbeddedSession(self, options, timeout)

    def info(self, timeout: float | None = None) -> ServerInfo:
        """As `Client.info`: there are no limits but those of the solver."""
        limits: dict[str, float] = {}
        for field in service.ServerLimits.DESCRIPTOR.fields:
            if field.name == "high_priority":
                limits[field.name] = True
            elif field.name.endswith("_per_s"):
                limits[field.name] = 0.0
            else:
                limits[field.name] = _PROBLEM_LIMITS.get(field.name, sys.maxsize)
        return ServerInfo(
            version=self.library.sap_version().decode(),
            instruction_set=self.library.sap_instruction_set().decode(),
            processors=os.cpu_count() or 1,
            solver_threads=self.library.sap_solver_threads(self.handle),
            boot_id="",
            limits=limits,
        )
