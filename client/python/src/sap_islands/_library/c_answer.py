"""Answers of the C library: solutions, derivatives and errors, as views of its memory.

An answer is freed with the last array that shows a part of it.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sap_islands._arrays import wire_format
from sap_islands._arrays.array_group import ArrayGroup
from sap_islands._arrays.contacts import HuntCrossley
from sap_islands._library import c_structs
from sap_islands.arrays import FloatArray, IntArray
from sap_islands.derivatives import Derivatives, Gradient, Tangent
from sap_islands.errors import SapError, error_of_code
from sap_islands.problem import Regularization
from sap_islands.server_info import ServerInfo
from sap_islands.solution import Solution
from sap_islands.v1 import solution_pb2

_pointer = ctypes.c_void_p
_MAX_IDLE = 32  # answers kept for the next calls, with their memory


class _Array(ctypes.Structure):
    _fields_ = (("data", _pointer), ("length", ctypes.c_int64))


_SIZE = ("struct_size", ctypes.c_size_t)


def _arrays(*names: str) -> list[tuple[str, Any]]:
    return [(name, _Array) for name in names]


class _Error(ctypes.Structure):
    _fields_ = (
        _SIZE,
        ("kind", ctypes.c_int32),
        ("lost_attempts", ctypes.c_int32),
        ("message", ctypes.c_char_p),
        ("field", ctypes.c_char_p),
        ("index", ctypes.c_int64),
        ("reason", ctypes.c_char_p),
        ("retry_after_s", ctypes.c_double),
        ("request_id", ctypes.c_char_p),
        ("server", ctypes.c_char_p),
    )


_OUTPUTS = (
    "velocity",
    "impulse",
    "contact_velocity",
    "row_impulse",
    "row_velocity",
    "angular_impulse",
)


_ISLANDS: dict[str, Any] = {
    "status": np.int32,
    "iterations": np.uint32,
    "factorizations": np.uint32,
    "momentum_residual": np.float64,
    "optimality_gap_bound": np.float64,
    "dofs": np.uint32,
    "contacts": np.uint32,
    "rows": np.uint32,
    "solve_time_s": np.float64,
    "swept": np.uint32,
    "cost": np.float64,
}


class _Islands(ctypes.Structure):
    _fields_ = (_SIZE, *_arrays(*_ISLANDS))


_TIMINGS = ("decode_s", "queue_s", "islands_s", "solve_s", "encode_s")


class _Solution(ctypes.Structure):
    _fields_ = (
        _SIZE,
        *_arrays(*_OUTPUTS, "delassus_estimate"),
        ("cost", ctypes.c_double),
        ("island_of_tree", _Array),
        ("islands", ctypes.POINTER(_Islands)),
        *((phase, ctypes.c_double) for phase in _TIMINGS),
        ("warm_started", ctypes.c_int32),
    )


class _Tangent(ctypes.Structure):
    _fields_ = (_SIZE, *_arrays(*_OUTPUTS), ("cost", ctypes.c_double))


class _Regularization(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        *((name, ctypes.POINTER(ctypes.c_double)) for name in c_structs.REGULARIZATION),
    )


class _Problem(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("time_step", ctypes.c_double),
        *((kind.FIELD, _pointer) for kind in c_structs.GROUPS),
        ("regularization", ctypes.POINTER(_Regularization)),
    )


class _Gradient(ctypes.Structure):
    _fields_ = (
        _SIZE,
        ("problem", ctypes.POINTER(_Problem)),
        ("applied_impulse", _Array),
        ("delassus_estimate", _Array),
    )


class _Derivatives(ctypes.Structure):
    _fields_ = (
        _SIZE,
        ("num_gradients", ctypes.c_int64),
        ("gradients", ctypes.POINTER(ctypes.POINTER(_Gradient))),
        ("num_tangents", ctypes.c_int64),
        ("tangents", ctypes.POINTER(ctypes.POINTER(_Tangent))),
        ("kink_margin", _Array),
        ("adjoint_status", _Array),
    )


class _Forecast(ctypes.Structure):
    _fields_ = (_SIZE, *_arrays("island_of_tree", "solve_time_s"))


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
        _SIZE,
        ("version", ctypes.c_char_p),
        ("instruction_set", ctypes.c_char_p),
        ("boot_id", ctypes.c_char_p),
        ("processors", ctypes.c_uint32),
        ("solver_threads", ctypes.c_uint32),
        *_LIMITS.items(),
    )


def _read(kind: Any, address: int) -> Any:
    """The struct of the library at an address; what an older library does not have is 0."""
    size = ctypes.c_size_t.from_address(address).value
    if size >= ctypes.sizeof(kind):
        return kind.from_address(address)
    struct = kind()
    ctypes.memmove(ctypes.addressof(struct), address, size)
    return struct


class Forecast(NamedTuple):
    """The islands of a problem, before it is solved.

    Attributes:
        island_of_tree: [T + B] as in `Solution`.
        solve_time_s: [I] predicted time of a warm solve of each island on one core [s].
    """

    island_of_tree: IntArray
    solve_time_s: FloatArray


class Answer:
    """Memory of one answer.

    Attributes:
        handle: The sap_answer.
    """

    def __init__(self, library: Any, idle: list[int]) -> None:
        """Takes an idle answer, or makes one.

        Args:
            library: The C library.
            idle: Answers that are free; this one goes there in the end.
        """
        self._library = library
        self._idle = idle
        try:
            self.handle: int = idle.pop()
        except IndexError:
            self.handle = library.sap_answer_new()
            if not self.handle:
                raise MemoryError("no memory for an answer") from None

    def __del__(self) -> None:
        handle = getattr(self, "handle", None)
        if not handle:
            return
        if len(self._idle) < _MAX_IDLE:
            self._idle.append(handle)
        else:
            self._library.sap_answer_free(handle)

    def view(self, array: _Array, dtype: Any = np.float64) -> NDArray[Any]:
        """A read-only view, which keeps the answer."""
        length = array.length
        if not length:
            return _EMPTY[dtype]
        memory: Any = (ctypes.c_char * (length * np.dtype(dtype).itemsize)).from_address(array.data)
        memory.answer = self
        result: NDArray[Any] = np.frombuffer(memory, dtype)
        result.flags.writeable = False
        return result

    def error(self) -> SapError:
        """The error of the call that this is the answer of."""
        error = _read(_Error, self._library.sap_answer_error(self.handle))
        message, field, reason, request_id, server = (
            text.decode(errors="replace")
            for text in (error.message, error.field, error.reason, error.request_id, error.server)
        )
        retry_after_s = error.retry_after_s or None
        return error_of_code(error.kind, message, field, reason, retry_after_s, request_id, server)

    def outcome(self) -> Solution | SapError:
        """The solution, or the error."""
        address = self._library.sap_answer_solution(self.handle)
        return self.error() if address is None else _AnsweredSolution(self, address)

    def forecast(self) -> Forecast | SapError:
        """The islands of the problem, or the error."""
        address = self._library.sap_answer_forecast(self.handle)
        if address is None:
            return self.error()
        struct = _read(_Forecast, address)
        return Forecast(self.view(struct.island_of_tree, np.int32), self.view(struct.solve_time_s))

    def derivatives(self) -> Derivatives | SapError:
        """The derivatives, or the error."""
        address = self._library.sap_answer_derivatives(self.handle)
        solution = self.outcome()
        if isinstance(solution, SapError):
            return solution
        struct = _read(_Derivatives, address)
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
        """What the server says about itself, or the error."""
        address = self._library.sap_answer_info(self.handle)
        if address is None:
            return self.error()
        info = _read(_Info, address)
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
        return int(self._library.sap_answer_step_id(self.handle))

    @property
    def warm_started(self) -> bool:
        """Whether the step of a session started from the one before; False after an error."""
        address = self._library.sap_answer_solution(self.handle)
        return address is not None and bool(_read(_Solution, address).warm_started)

    def _tangent(self, tangent: _Tangent) -> Tangent:
        values = {name: self.view(getattr(tangent, name)) for name in _OUTPUTS}
        for name in ("impulse", "contact_velocity", "angular_impulse"):
            values[name] = values[name].reshape(-1, 3)
        return Tangent(**values, cost=tangent.cost)

    def _gradient(self, gradient: _Gradient) -> Gradient:
        problem = gradient.problem.contents
        numbers = problem.regularization.contents
        given = {
            name: getattr(numbers, name)[0]
            for name in c_structs.REGULARIZATION
            if getattr(numbers, name)
        }
        groups: dict[str, Any] = {
            kind.FIELD: self._group(kind, getattr(problem, kind.FIELD)) for kind in c_structs.GROUPS
        }
        return Gradient(
            time_step=problem.time_step,
            regularization=Regularization(**given),
            applied_impulse=self.view(gradient.applied_impulse),
            delassus_estimate=self.view(gradient.delassus_estimate),
            **groups,
        )

    def _group(self, kind: type[ArrayGroup], address: int) -> ArrayGroup:
        struct = c_structs.STRUCTS[kind]
        values = self._group_arrays(kind, struct, address)
        if not struct.pointer:
            return kind.of_values(values)
        laws_at = _word(address, struct.pointer)
        values.update(self._group_arrays(kind, c_structs.LAWS, laws_at))
        parameters = self._group_arrays(
            HuntCrossley,
            c_structs.STRUCTS[HuntCrossley],
            _word(laws_at, c_structs.LAWS.pointer),
        )
        if any(array.size for array in parameters.values()):
            values["hunt_crossley"] = parameters
        return kind.of_values(values)

    def _group_arrays(
        self, kind: type[ArrayGroup], struct: c_structs.StructLayout, address: int
    ) -> dict[str, Any]:
        """The arrays of doubles of a struct; the others are empty."""
        values: dict[str, Any] = {}
        for name, word in struct.arrays.items():
            array = _Array.from_address(address + c_structs.WORD * word)
            field = kind._fields[name]
            values[name] = field.empty if field.dtype != np.float64 else self.view(array)
        return values


def _word(address: int, number: int) -> int:
    return int(ctypes.c_int64.from_address(address + c_structs.WORD * number).value)


def _empty(dtype: type[Any]) -> NDArray[Any]:
    array = np.empty(0, dtype)
    array.flags.writeable = False
    return array


_EMPTY = {dtype: _empty(dtype) for dtype in (np.float64, np.int32, np.uint32)}


class _AnsweredSolution(Solution):
    """A solution in the memory of an answer."""

    def __init__(self, answer: Answer, address: int) -> None:
        self._answer = answer
        self._struct = _read(_Solution, address)

    def to_bytes(self) -> bytes:
        message = solution_pb2.ContactSolution()
        for name in (*_OUTPUTS, "delassus_estimate", "island_of_tree"):
            scalar = np.int32 if name == "island_of_tree" else np.float64
            getattr(message, name).extend(self._array(name, scalar).tolist())
        message.cost = self.cost
        for name, array in self._values("islands").items():
            if array.size:
                getattr(message.islands, name).extend(array.tolist())
        for name, value in self._values("timings").items():
            setattr(message.timings, name, value)
        return message.SerializeToString()

    def _array(self, name: str, scalar: type[Any]) -> NDArray[Any]:
        if name == "cost":
            return np.array([self._struct.cost])
        return self._answer.view(getattr(self._struct, name), scalar)

    def _values(self, name: str, decoder: wire_format.ArrayDecoder | None = None) -> dict[str, Any]:
        if name == "timings":
            return {phase: getattr(self._struct, phase) for phase in _TIMINGS}
        islands = self._struct.islands.contents
        return {
            field: self._answer.view(getattr(islands, field), dtype)
            for field, dtype in _ISLANDS.items()
        }
