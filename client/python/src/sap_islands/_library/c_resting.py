"""Which bodies rest, by the C library."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sap_islands._library import c_solution
from sap_islands._library.c_library import load
from sap_islands._library.c_memory import AnswerMemory, read
from sap_islands._library.c_structs import ProblemBlock
from sap_islands._library.declarations import new
from sap_islands.binaries import find_c_library
from sap_islands.problem import Problem
from sap_islands.solution import Solution

COUNTS = ("woken_by_pair", "woken_by_input", "long_steps", "long_steps_refused")


class Moves:
    """A sap_body_moves.

    Attributes:
        arrays: Ids [M], durations [M] and velocities [M, 6].
        resting: How many of the bodies, the first ones, rest.
    """

    def __init__(self, answer: AnswerMemory) -> None:
        """Reads that of an answer."""
        moves = read("sap_body_moves", answer.library.sap_answer_moves(answer.handle))
        self.arrays = (
            answer.view(moves.body_id),
            answer.view(moves.duration),
            answer.view(moves.velocity).reshape(-1, 6),
        )
        self.resting = int(moves.resting)


class Resting:
    """A sap_resting."""

    def __init__(self, horizon: float, tolerance: float, time_step: float) -> None:
        """Makes one by these rules.

        Raises:
            InvalidArgument: One of them is out of range.
        """
        self._handle = 0
        self._library = load(find_c_library())
        self._idle: list[int] = []
        self._block = ProblemBlock()
        rules = new("sap_rest_rules", horizon=horizon, tolerance=tolerance, time_step=time_step)
        resting = ctypes.c_void_p()
        answer = AnswerMemory(self._library, self._idle)
        places = ctypes.addressof(rules), ctypes.addressof(resting)
        if self._library.sap_resting_create(*places, answer.handle) != 0:
            raise answer.error()
        self._handle = resting.value or 0

    def __del__(self) -> None:
        if self._handle:
            self._library.sap_resting_free(self._handle)

    def horizon(self) -> float:
        """The horizon in whole time steps [s]."""
        return float(self._library.sap_resting_horizon(self._handle))

    def islands(self, body_id: NDArray[np.uint32]) -> NDArray[np.int32]:
        """The number of the island that each body rests in, -1: it is awake."""
        islands = np.empty(body_id.size, np.int32)
        self._library.sap_resting_islands(
            self._handle, body_id.ctypes.data, body_id.size, islands.ctypes.data
        )
        return islands

    def counts(self) -> tuple[int, ...]:
        """The numbers of COUNTS."""
        counts = new("sap_rest_counts")
        self._library.sap_resting_counts(self._handle, ctypes.addressof(counts))
        return tuple(getattr(counts, name) for name in COUNTS)

    def due(self) -> Moves:
        """Bodies whose horizon ends now."""
        return self._call("due")

    def wake(self, body_id: NDArray[np.uint32], reason: int) -> Moves:
        """Wakes their islands."""
        return self._call("wake", body_id.ctypes.data, body_id.size, reason)

    def set_time_step(self, time_step: float) -> Moves:
        """Wakes all."""
        return self._call("set_time_step", time_step)

    def take(self, which: str, problem: Problem, solution: Solution) -> Moves:
        """Calls sap_resting_take_step or sap_resting_take_long_steps."""
        self._block.fill(problem)
        struct = c_solution.struct_of(solution.fields())
        return self._call(which, self._block.address, ctypes.addressof(struct))

    def _call(self, which: str, *arguments: Any) -> Moves:
        answer = AnswerMemory(self._library, self._idle)
        function = getattr(self._library, f"sap_resting_{which}")
        if function(self._handle, *arguments, answer.handle) != 0:
            raise answer.error()
        return Moves(answer)
