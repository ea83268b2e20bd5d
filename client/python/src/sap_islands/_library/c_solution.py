"""The structs of a solution, read and written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sap_islands._library.c_memory import AnswerMemory, read
from sap_islands._library.declarations import array_names, new

TIMINGS = ("decode_s", "queue_s", "islands_s", "solve_s", "encode_s")


def islands_of(memory: AnswerMemory, solution: Any) -> dict[str, Any]:
    """The arrays of `Islands`."""
    return memory.arrays(read("sap_island_reports", solution.islands))


def timings_of(solution: Any) -> dict[str, float]:
    """The numbers of `Timings`."""
    return {phase: getattr(solution, phase) for phase in TIMINGS}


def values_at(memory: AnswerMemory, address: int) -> dict[str, Any]:
    """All fields of a solution by name; arrays are flat."""
    solution = read("sap_solution", address)
    return {
        **memory.arrays(solution),
        "cost": solution.cost,
        "islands": islands_of(memory, solution),
        "timings": timings_of(solution),
    }


def struct_of(values: Mapping[str, Any]) -> Any:
    """The sap_solution of such values."""
    islands, solution = new("sap_island_reports"), new("sap_solution", cost=values["cost"])
    for name in array_names("sap_island_reports"):
        islands.set_array(name, values["islands"][name])
    for name in array_names("sap_solution"):
        solution.set_array(name, values[name])
    solution.point("islands", islands)
    for phase, time in values["timings"].items():
        setattr(solution, phase, time)
    return solution
