"""Answers of the C library: solutions, derivatives and errors, as views of its memory.

An answer is freed with the last array that shows a part of it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Collection
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


class _Solution(ctypes.Structure):
    _fields_ = (
        _SIZE,
        *_arrays(*_OUTPUTS, "delassus_estimate"),
        ("cost", ctypes.c_double),
        ("island_of_tree", _Array),
        ("islands", ctypes.POINTER(_Islands)),
        ("decode_s", ctypes.c_double),
        ("queue_s", ctypes.c_double),
        ("islands_s", ctypes.c_double),
        ("solve_s", ctypes.c_double),
        ("encode_s", ctypes.c_double),
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


class _Info(ctypes.Structure):
    _fields_ = (
        _SIZE,
        ("version", ctypes.c_char_p),
        ("instruction_set", ctypes.c_char_p),
        ("boot_id", ctypes.c_char_p),
        ("processors", ctypes.c_uint32),
        ("solver_threads", ctypes.c_uint32),
    )


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
        error = _Error.from_address(self._library.sap_answer_error(self.handle))
        message, field, reason = (
            text.decode(errors="replace") for text in (error.message, error.field, error.reason)
        )
        return error_of_code(error.kind, message, field, reason)

    def outcome(self, mask: frozenset[str]) -> Solution | SapError:
        """The solution with the fields of the mask, or the error."""
        address = self._library.sap_answer_solution(self.handle)
        return self.error() if address is None else _AnsweredSolution(self, address, mask)

    def forecast(self) -> Forecast | SapError:
        """The islands of the problem, or the error."""
        address = self._library.sap_answer_forecast(self.handle)
        if address is None:
            return self.error()
        struct = _Forecast.from_address(address)
        return Forecast(self.view(struct.island_of_tree, np.int32), self.view(struct.solve_time_s))

    def derivatives(self, mask: frozenset[str]) -> Derivatives | SapError:
        """The derivatives with the fields of the solution in the mask, or the error."""
        address = self._library.sap_answer_derivatives(self.handle)
        solution = self.outcome(mask)
        if isinstance(solution, SapError):
            return solution
        struct = _Derivatives.from_address(address)
        gradients = (struct.gradients[i].contents for i in range(struct.num_gradients))
        tangents = (struct.tangents[i].contents for i in range(struct.num_tangents))
        return Derivatives(
            solution,
            tuple(self._gradient(gradient) for gradient in gradients),
            tuple(self._tangent(tangent) for tangent in tangents),
            self.view(struct.kink_margin),
            self.view(struct.adjoint_status, np.int32),
        )

    @property
    def solver_threads(self) -> int:
        """How many threads work on one problem, of the sap_server_info."""
        return int(_Info.from_address(self._library.sap_answer_info(self.handle)).solver_threads)

    @property
    def warm_started(self) -> bool:
        """Whether the step of a session started from the one before; False after an error."""
        address = self._library.sap_answer_solution(self.handle)
        return address is not None and bool(_Solution.from_address(address).warm_started)

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
ALL_FIELDS = frozenset(field.name for field in solution_pb2.ContactSolution.DESCRIPTOR.fields)


class _AnsweredSolution(Solution):
    """A solution in the memory of an answer."""

    def __init__(self, answer: Answer, address: int, mask: frozenset[str]) -> None:
        self._answer = answer
        self._struct = _Solution.from_address(address)
        self._mask = mask

    def to_bytes(self) -> bytes:
        message = solution_pb2.ContactSolution()
        for name in (*_OUTPUTS, "delassus_estimate", "island_of_tree"):
            scalar = np.int32 if name == "island_of_tree" else np.float64
            getattr(message, name).extend(self._array(name, scalar).tolist())
        message.cost = self.cost
        if "islands" in self._mask:
            for name, array in self._values("islands").items():
                getattr(message.islands, name).extend(array.tolist())
        for name, value in self._values("timings").items():
            setattr(message.timings, name, value)
        return message.SerializeToString()

    def without(self, names: Collection[str]) -> Solution:
        return _AnsweredSolution(
            self._answer, ctypes.addressof(self._struct), self._mask.difference(names)
        )

    def _array(self, name: str, scalar: type[Any]) -> NDArray[Any]:
        if name not in self._mask:
            return _EMPTY[scalar]
        if name == "cost":
            return np.array([self._struct.cost])
        return self._answer.view(getattr(self._struct, name), scalar)

    def _values(self, name: str, decoder: wire_format.ArrayDecoder | None = None) -> dict[str, Any]:
        if name not in self._mask:
            return {} if decoder is None else decoder.decode(b"", 0, 0)
        if name == "timings":
            struct = self._struct
            return {
                "decode_s": struct.decode_s,
                "islands_s": struct.islands_s,
                "solve_s": struct.solve_s,
            }
        islands = self._struct.islands.contents
        return {
            field: self._answer.view(getattr(islands, field), dtype)
            for field, dtype in _ISLANDS.items()
        }
