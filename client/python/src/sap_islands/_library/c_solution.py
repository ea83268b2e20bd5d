"""The structs of a solution, read and written."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import numpy as np

from sap_islands._library.c_memory import SIZE, AnswerMemory, Array, arrays, read

OUTPUTS = (
    "velocity",
    "impulse",
    "contact_velocity",
    "row_impulse",
    "row_velocity",
    "angular_impulse",
)
ISLANDS: dict[str, Any] = {
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
    "coulomb_rounds": np.uint32,
    "coulomb_defect": np.float64,
    "rest_drift": np.float64,
    "sag": np.float64,
    "creep": np.float64,
}
TIMINGS = ("decode_s", "queue_s", "islands_s", "solve_s", "encode_s")
_ARRAYS = {**dict.fromkeys((*OUTPUTS, "delassus_estimate"), np.float64), "island_of_tree": np.int32}


class _IslandsStruct(ctypes.Structure):
    _fields_ = (SIZE, *arrays(*ISLANDS))


class SolutionStruct(ctypes.Structure):
    """A sap_solution."""

    _fields_ = (
        SIZE,
        *arrays(*OUTPUTS, "delassus_estimate"),
        ("cost", ctypes.c_double),
        ("island_of_tree", Array),
        ("islands", ctypes.POINTER(_IslandsStruct)),
        *((phase, ctypes.c_double) for phase in TIMINGS),
        ("warm_started", ctypes.c_int32),
    )


def islands_of(memory: AnswerMemory, struct: SolutionStruct) -> dict[str, Any]:
    """The arrays of `Islands`."""
    islands = struct.islands.contents
    return {name: memory.view(getattr(islands, name), dtype) for name, dtype in ISLANDS.items()}


def timings_of(struct: SolutionStruct) -> dict[str, float]:
    """The numbers of `Timings`."""
    return {phase: getattr(struct, phase) for phase in TIMINGS}


def values_at(memory: AnswerMemory, address: int) -> dict[str, Any]:
    """All fields of a solution by name; arrays are flat."""
    struct = read(SolutionStruct, address)
    return {
        **{name: memory.view(getattr(struct, name), dtype) for name, dtype in _ARRAYS.items()},
        "cost": struct.cost,
        "islands": islands_of(memory, struct),
        "timings": timings_of(struct),
    }


def struct_of(values: Mapping[str, Any]) -> SolutionStruct:
    """The sap_solution of such values, which must live as long as it."""
    islands = _IslandsStruct(ctypes.sizeof(_IslandsStruct))
    for name in ISLANDS:
        setattr(islands, name, _array(values["islands"][name]))
    struct = SolutionStruct(ctypes.sizeof(SolutionStruct), cost=values["cost"])
    for name in _ARRAYS:
        setattr(struct, name, _array(values[name]))
    struct.islands.contents = islands
    for phase, time in values["timings"].items():
        setattr(struct, phase, time)
    return struct


def _array(array: Any) -> Array:
    return Array(array.ctypes.data, array.size)
