"""Answers of the C library: solutions, derivatives and errors, as views of its memory."""

from __future__ import annotations

import ctypes
from typing import Any

from numpy.typing import NDArray

from sap_islands._library import c_solution
from sap_islands._library.c_memory import AnswerMemory, read
from sap_islands._library.problem_reader import problem_values
from sap_islands.derivatives import Derivatives, Gradient, Tangent
from sap_islands.errors import SapError
from sap_islands.problem import Regularization
from sap_islands.server_info import ServerInfo
from sap_islands.solution import Solution


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
        struct = read("sap_derivatives", address)
        gradients = _addresses(struct.gradients, struct.num_gradients)
        tangents = _addresses(struct.tangents, struct.num_tangents)
        return Derivatives(
            solution,
            tuple(self._gradient(read("sap_gradient", gradient)) for gradient in gradients),
            tuple(self._tangent(read("sap_tangent", tangent)) for tangent in tangents),
            self.view(struct.kink_margin),
            self.view(struct.adjoint_status),
        )

    def info(self) -> ServerInfo | SapError:
        """The information of the server, or the error."""
        address = self.library.sap_answer_info(self.handle)
        if address is None:
            return self.error()
        info = read("sap_server_info", address)
        limits = {
            name: getattr(info, name)
            for name, _ in info._fields_[1:]
            if name not in ServerInfo.__dataclass_fields__
        }
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
        return address is not None and bool(read("sap_solution", address).warm_started)

    def _tangent(self, tangent: Any) -> Tangent:
        values = self.arrays(tangent)
        for name in ("impulse", "contact_velocity", "angular_impulse"):
            values[name] = values[name].reshape(-1, 3)
        return Tangent(**values, cost=tangent.cost)

    def _gradient(self, gradient: Any) -> Gradient:
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
        self._struct = read("sap_solution", address)

    def _array(self, name: str) -> NDArray[Any]:
        return self._answer.view(getattr(self._struct, name))

    def _cost(self) -> float:
        return float(self._struct.cost)

    def _values(self, name: str) -> dict[str, Any]:
        if name == "timings":
            return c_solution.timings_of(self._struct)
        return c_solution.islands_of(self._answer, self._struct)


def _addresses(address: int, count: int) -> Any:
    """The pointers of a list."""
    return (ctypes.c_void_p * count).from_address(address) if count else ()
