"""Answers of the C library: solutions, derivatives and errors, as views of its memory."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sap_islands._library import c_solution
from sap_islands._library.c_memory import SIZE, AnswerMemory, Array, arrays, read
from sap_islands._library.c_solution import OUTPUTS, SolutionStruct
from sap_islands._library.problem_reader import problem_values
from sap_islands.derivatives import Derivatives, Gradient, Tangent
from sap_islands.errors import SapError
from sap_islands.problem import Regularization
from sap_islands.server_info import ServerInfo
from sap_islands.solution import Solution

_pointer = ctypes.c_void_p


class _Tangent(ctypes.Structure):
    _fields_ = (SIZE, *arrays(*OUTPUTS), ("cost", ctypes.c_double))


class _Gradient(ctypes.Structure):
    _fields_ = (
        SIZE,
        ("problem", _pointer),
        ("applied_impulse", Array),
        ("delassus_estimate", Array),
    )


class _Derivatives(ctypes.Structure):
    _fields_ = (
        SIZE,
        ("num_gradients", ctypes.c_int64),
        ("gradients", ctypes.POINTER(ctypes.POINTER(_Gradient))),
        ("num_tangents", ctypes.c_int64),
        ("tangents", ctypes.POINTER(ctypes.POINTER(_Tangent))),
        ("kink_margin", Array),
        ("adjoint_status", Array),
    )


# The limits of a sap_server_info, whose fields follow each other.
_LIMITS: dict[str, Any] = {
    "max_message_bytes": ctypes.c_uint64,
    "max_solve_memory_bytes": ctypes.c_uint64,
    "max_trees": ctypes.c_uint32,
    "max_tree_dofs": ctypes.c_uint32,
    "max_contacts": ctypes.c_uint32,
    "max_rows": ctypes.c_uint32,
    "max_row_entries": ctypes.c_uint32,
    "max_row_pairs": ctypes.c_uint32,
    "max_iterations": ctypes.c_uint32,
    "max_concurrent_calls": ctypes.c_uint32,
    "max_batch_problems": ctypes.c_uint32,
    "max_sessions": ctypes.c_uint32,
    "max_client_sessions": ctypes.c_uint32,
    "max_steps_in_flight": ctypes.c_uint32,
    "max_derivatives": ctypes.c_uint32,
    "high_priority": ctypes.c_int32,
    "max_solve_s": ctypes.c_double,
    "max_client_calls_per_s": ctypes.c_double,
    "max_client_calls": ctypes.c_uint32,
    "max_held_bytes": ctypes.c_uint64,
    "max_client_bytes": ctypes.c_uint64,
    "queue_timeout_s": ctypes.c_double,
    "read_timeout_s": ctypes.c_double,
    "session_idle_s": ctypes.c_double,
    "connection_age_s": ctypes.c_double,
}


class _Info(ctypes.Structure):
    _fields_ = (
        SIZE,
        ("version", ctypes.c_char_p),
        ("instruction_set", ctypes.c_char_p),
        ("boot_id", ctypes.c_char_p),
        ("processors", ctypes.c_uint32),
        ("solver_threads", ctypes.c_uint32),
        *_LIMITS.items(),
    )


class Answer(AnswerMemory):
    """The answer of a call."""

    def outcome(self) -> Solution | SapError:
        """The solution, or the error."""
        address = self.library.sap_answer_solution(self.handle)
        return self.error() if address is None else AnsweredSolution(self, address)

    def derivatives(self) -> Derivatives | SapError:
        """The derivatives, or the error."""
        address = self.library.sap_answer_derivatives(self.handle)
        solution = self.outcome()
        if isinstance(solution, SapError):
            return solution
        struct = read(_Derivatives, address)
        gradients = (struct.gradients[i].contents for i in range(struct.num_gradients))
        tangents = (struct.tangents[i].contents for i in range(struct.num_tangents))
        return Derivatives(
            solution,
            tuple(self._gradient(gradient) for gradient in gradients),
            tuple(self._tangent(tangent) for tangent in tangents),
            self.view(struct.kink_margin),
            self.view(struct.adjoint_status, np.int32),
        )

    def info(self) -> ServerInfo | SapError:
        """The information of the server, or the error."""
        address = self.library.sap_answer_info(self.handle)
        if address is None:
            return self.error()
        info = read(_Info, address)
        limits = {name: getattr(info, name) for name in _LIMITS}
        limits["high_priority"] = bool(info.high_priority)
        return ServerInfo(
            version=info.version.decode(),
            instruction_set=info.instruction_set.decode(),
            processors=info.processors,
            solver_threads=info.solver_threads,
            boot_id=info.boot_id.decode(),
            limits=limits,
        )

    @property
    def step_id(self) -> int:
        """Number of the step of a session."""
        return int(self.library.sap_answer_step_id(self.handle))

    @property
    def warm_started(self) -> bool:
        """Whether the step of a session started from the one before; False after an error."""
        address = self.library.sap_answer_solution(self.handle)
        return address is not None and bool(read(SolutionStruct, address).warm_started)

    def _tangent(self, tangent: _Tangent) -> Tangent:
        values = {name: self.view(getattr(tangent, name)) for name in OUTPUTS}
        for name in ("impulse", "contact_velocity", "angular_impulse"):
            values[name] = values[name].reshape(-1, 3)
        return Tangent(**values, cost=tangent.cost)

    def _gradient(self, gradient: _Gradient) -> Gradient:
        values = problem_values(self, gradient.problem)
        values["regularization"] = Regularization.of_values(values["regularization"])
        return Gradient(
            **values,
            applied_impulse=self.view(gradient.applied_impulse),
            delassus_estimate=self.view(gradient.delassus_estimate),
        )


class AnsweredSolution(Solution):
    """A solution in the memory of an answer, decoded when it is first read."""

    def __init__(self, answer: AnswerMemory, address: int) -> None:
        self._answer = answer
        self._struct = read(SolutionStruct, address)

    def _array(self, name: str, scalar: type[Any]) -> NDArray[Any]:
        return self._answer.view(getattr(self._struct, name), scalar)

    def _cost(self) -> float:
        return float(self._struct.cost)

    def _values(self, name: str) -> dict[str, Any]:
        if name == "timings":
            return c_solution.timings_of(self._struct)
        return c_solution.islands_of(self._answer, self._struct)
