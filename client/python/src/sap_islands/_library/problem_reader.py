"""Problems, and gradients in their shape, out of the structs of the C library."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np

from sap_islands._arrays.array_group import ArrayGroup
from sap_islands._arrays.contacts import HuntCrossley
from sap_islands._library import c_structs
from sap_islands._library.c_memory import AnswerMemory, Array, read


class _Regularization(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        *(
            (name, ctypes.c_int32 if name == "rule" else ctypes.POINTER(ctypes.c_double))
            for name in c_structs.REGULARIZATION_MEMBERS
        ),
    )


class _Problem(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_size_t),
        ("time_step", ctypes.c_double),
        *((kind.FIELD, ctypes.c_void_p) for kind in c_structs.GROUPS),
        ("regularization", ctypes.POINTER(_Regularization)),
    )


def problem_values(memory: AnswerMemory, address: int) -> dict[str, Any]:
    """The attributes of a `Problem`; those of its regularization by name. Arrays are read-only."""
    problem = read(_Problem, address)
    values: dict[str, Any] = {
        kind.FIELD: _group(memory, kind, getattr(problem, kind.FIELD)) for kind in c_structs.GROUPS
    }
    values["time_step"] = problem.time_step
    values["regularization"] = numbers = {}
    if problem.regularization:
        given = problem.regularization.contents
        numbers["rule"] = given.rule
        for name in c_structs.NUMBERS:
            number = getattr(given, name)
            if number and math.isfinite(number[0]):  # infinite is the default of one of them
                numbers[name] = number[0]
    return values


def _group(memory: AnswerMemory, kind: type[ArrayGroup], address: int | None) -> ArrayGroup:
    if not address:
        return kind.none()
    struct = c_structs.STRUCTS[kind]
    values = _arrays(memory, kind, struct, address)
    if struct.pointer:
        laws_at = _word(address, struct.pointer)
        if laws_at:
            values.update(_arrays(memory, kind, c_structs.LAWS, laws_at))
            parameters_at = _word(laws_at, c_structs.LAWS.pointer)
            values.update(_parameters(memory, parameters_at))
    # A group within it has arrays that are not empty.
    if not any(isinstance(value, dict) or value.size for value in values.values()):
        return kind.none()
    return kind.of_values({name: field.empty for name, field in kind._fields.items()} | values)


def _parameters(memory: AnswerMemory, address: int) -> dict[str, Any]:
    if not address:
        return {}
    parameters = _arrays(memory, HuntCrossley, c_structs.STRUCTS[HuntCrossley], address)
    given = any(array.size for array in parameters.values())
    return {"hunt_crossley": parameters} if given else {}


def _arrays(
    memory: AnswerMemory, kind: type[ArrayGroup], struct: c_structs.StructLayout, address: int
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, word in struct.arrays.items():
        array = Array.from_address(address + c_structs.WORD * word)
        scalar = kind._fields[name].dtype.type
        # Enumerations are int32 in the structs.
        values[name] = memory.view(array, np.int32 if scalar is np.uint8 else scalar)
    return values


def _word(address: int, number: int) -> int:
    return int(ctypes.c_int64.from_address(address + c_structs.WORD * number).value)
