"""The solver in this process, through the C library: the calls of `Client`.

No message is made, and no other process or socket is involved. The bits are those of a server of
the same version and instruction set.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Iterator, Sequence

from sap_islands._library.c_answer import Forecast
from sap_islands._library.c_requests import Request, options_block
from sap_islands._library.c_solver import CSolver, Deadline, Stop
from sap_islands._library.embedded_session import EmbeddedSession
from sap_islands.derivatives import Derivatives, DifferentiateRequest
from sap_islands.errors import SapError, value_of
from sap_islands.options import Options
from sap_islands.problem import Problem
from sap_islands.server_info import ServerInfo
from sap_islands.solution import Solution
from sap_islands.v1 import solver_service_pb2 as service

# Problems of `stream_batch` that are solved together, per thread.
_STREAMED_PER_THREAD = 4
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


class EmbeddedSolver:
    """Threads and memory of the solver in this process. Threads and forked processes may share it.

    Its calls are those of `Client`, and a `stop` ends them from another thread.
    """

    address = "embedded:"

    def __init__(self, threads: int | None) -> None:
        """Loads the C library; `threads` and exceptions are those of `CSolver`."""
        self._solver = CSolver(threads)

    def new_stop(self) -> Stop:
        """A stop for calls of this solver and its sessions."""
        return Stop(self._solver.library)

    def close(self) -> None:
        self._solver.close()

    def solve(
        self,
        problem: Problem,
        options: Options | None,
        timeout: float | None,
        stop: Stop | None = None,
    ) -> Solution:
        solver = self._solver
        return value_of(
            solver.run(solver.library.sap_solve, solver.handle, problem, options, timeout, stop)[0]
        )

    def find_islands(self, problem: Problem) -> Forecast | SapError:
        """The islands of a problem that is checked and not solved, or its error."""
        solver = self._solver
        answer = solver.answer()
        with solver.blocks(1) as (block,):
            block.fill(problem)
            solver.library.sap_find_islands(solver.handle, block.address, answer.handle)
        return answer.forecast()

    def solve_batch(
        self,
        problems: Sequence[Problem],
        options: Options | None,
        timeout: float | None,
        stop: Stop | None = None,
    ) -> list[Solution | SapError]:
        deadline = Deadline(timeout)
        settings = options_block(options, deadline.longest)
        with self._solver.blocks(len(problems)) as blocks:
            for block, problem in zip(blocks, problems, strict=True):
                block.fill(problem)
            answers = self._solver.run_batch(
                self._solver.library.sap_solve_batch,
                [block.address for block in blocks],
                settings.address,
                stop,
            )
        deadline.check()
        return [answer.outcome(settings.mask) for answer in answers]

    def stream_batch(
        self, problems: Sequence[Problem], options: Options | None, timeout: float | None
    ) -> Iterator[tuple[int, Solution | SapError]]:
        """Solves some problems at a time."""
        end = None if timeout is None else time.monotonic() + timeout
        size = _STREAMED_PER_THREAD * self._solver.threads
        for first in range(0, len(problems), size):
            left = None if end is None else end - time.monotonic()
            yield from enumerate(
                self.solve_batch(problems[first : first + size], options, left), first
            )

    def differentiate(
        self, request: DifferentiateRequest, timeout: float | None, stop: Stop | None = None
    ) -> Derivatives:
        deadline = Deadline(timeout)
        settings = options_block(request.options, deadline.longest)
        with self._solver.blocks(1) as (block,):
            struct = Request(request, settings, block)
            answer = self._solver.differentiate(struct.address, stop)
        deadline.check()
        return value_of(answer.derivatives(settings.mask))

    def differentiate_batch(
        self,
        requests: Sequence[DifferentiateRequest],
        time_budget: float | None,
        timeout: float | None,
        stop: Stop | None = None,
    ) -> list[Derivatives | SapError]:
        deadline = Deadline(timeout)
        longest = [limit for limit in (time_budget, deadline.longest) if limit is not None]
        budget = ctypes.c_double(min(longest)) if longest else None
        with self._solver.blocks(len(requests)) as blocks:
            structs = [
                Request(request, options_block(request.options), block)
                for request, block in zip(requests, blocks, strict=True)
            ]
            answers = self._solver.run_batch(
                self._solver.library.sap_differentiate_batch,
                [struct.address for struct in structs],
                None if budget is None else ctypes.addressof(budget),
                stop,
            )
        deadline.check()
        return [
            answer.derivatives(struct.mask) for answer, struct in zip(answers, structs, strict=True)
        ]

    def session(
        self,
        options: Options | None,
        timeout: float | None,
        reconnect_within: float | None,
        low_latency: bool,
    ) -> EmbeddedSession:
        """Opens a session: there is nothing to reconnect to, and no latency to lower."""
        return EmbeddedSession(self._solver, options, timeout)

    def info(self, timeout: float | None = None) -> ServerInfo:
        """The limits are those of the solver."""
        library = self._solver.library
        limits: dict[str, float] = {}
        for field in service.ServerLimits.DESCRIPTOR.fields:
            if field.name == "high_priority":
                limits[field.name] = True
            elif field.name.endswith("_per_s"):
                limits[field.name] = 0.0
            else:
                limits[field.name] = _PROBLEM_LIMITS.get(field.name, sys.maxsize)
        return ServerInfo(
            version=library.sap_version().decode(),
            instruction_set=library.sap_instruction_set().decode(),
            processors=os.cpu_count() or 1,
            solver_threads=self._solver.threads,
            boot_id="",
            limits=limits,
        )
