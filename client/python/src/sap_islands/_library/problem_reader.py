"""Problems, and gradients in their shape, out of the structs of the C library."""

from __future__ import annotations

import math
from typing import Any

from sap_islands._arrays.array_group import ArrayGroup
from sap_islands._library import c_structs
from sap_islands._library.c_memory import AnswerMemory, read


def problem_values(memory: AnswerMemory, address: int) -> dict[str, Any]:
    """The attributes of a `Problem`; those of its regularization by name. Arrays are read-only."""
    problem = read("sap_problem", address)
    values: dict[str, Any] = {
        kind.FIELD: _group(memory, kind, getattr(problem, kind.FIELD)) for kind in c_structs.GROUPS
    }
    values["time_step"] = problem.time_step
    values["regularization"] = numbers = {}
    if problem.regularization:
        given = read("sap_regularization", problem.regularization)
        numbers["rule"] = given.rule
        for name in given.pointees:
            number = given.number(name)
            # Infinite is the default of one of them.
            if number is not None and math.isfinite(number):
                numbers[name] = number
    return values


def _group(memory: AnswerMemory, kind: type[ArrayGroup], address: int | None) -> ArrayGroup:
    if not address:
        return kind.none()
    own, *of_laws = c_structs.structs_of(kind)
    struct = read(own, address)
    values: dict[str, Any] = memory.arrays(struct)
    if of_laws and struct.laws:
        laws = read(c_structs.LAWS, struct.laws)
        values |= memory.arrays(laws)
        if laws.hunt_crossley:
            parameters = read(c_structs.PARAMETERS, laws.hunt_crossley)
            arrays = memory.arrays(parameters)
            if any(array.size for array in arrays.values()):
                values["hunt_crossley"] = arrays
    # A group within it has arrays that are not empty.
    if not any(isinstance(value, dict) or value.size for value in values.values()):
        return kind.none()
    return kind.of_values({name: field.empty for name, field in kind._fields.items()} | values)
