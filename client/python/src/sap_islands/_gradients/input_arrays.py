"""Inputs of a problem by their paths, as "contacts.friction".

Which of them can be differentiated, and how arrays given for them enter a problem and their
gradients leave it.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np

from sap_islands._arrays.array_group import ArrayGroup
from sap_islands._arrays.bodies import RigidBodies, Trees
from sap_islands._arrays.constraint_rows import ConstraintRows
from sap_islands._arrays.contacts import BodyContacts, Contacts
from sap_islands.arrays import FloatArray
from sap_islands.errors import InvalidArgument
from sap_islands.problem import Problem

APPLIED_IMPULSE = "applied_impulse"

_GROUPS: tuple[type[ArrayGroup], ...] = (Trees, RigidBodies, Contacts, BodyContacts, ConstraintRows)
_NUMBERS = (
    "time_step",
    "regularization.beta",
    "regularization.sigma",
    "regularization.row_beta",
    "regularization.stiction_speed",
    "regularization.reference_time_step",
)
_NO_INPUTS = (
    "guess_velocity",
    "initial_velocity",
    "guess_impulse",
    "guess_angular_impulse",
)
# Arrays that do not have one entry per tree, body, contact or row.
_FLAT = ("trees.", ".jacobian", ".angular_jacobian", ".coefficient", ".target_angular_velocity")


def _columns_of_inputs() -> dict[str, int]:
    """For each input that is an array of doubles, the numbers of an entry."""
    columns = {}
    for kind in _GROUPS:
        members = [("", kind), *((f"{name}.", group) for name, group in kind._groups.items())]
        for prefix, group in members:
            for name, field in group._fields.items():
                if field.dtype.kind == "f" and name not in _NO_INPUTS:
                    columns[f"{kind.FIELD}.{prefix}{name}"] = field.columns
    return columns


_COLUMNS = _columns_of_inputs()


class Input:
    """One input of a problem.

    Attributes:
        path: Its path, as "contacts.friction", or `APPLIED_IMPULSE`.
        shape: Shape of the array with all entries.
    """

    def __init__(self, problem: Problem, path: str) -> None:
        """Finds the shape of the input in a problem.

        Raises:
            InvalidArgument: The solution has no derivative with respect to `path`.
        """
        self.path = path
        self._columns = _COLUMNS.get(path, 1)
        self._has_entries = path in _COLUMNS and not any(part in path for part in _FLAT)
        self.shape: tuple[int, ...] = ()
        if path == APPLIED_IMPULSE:
            self.shape = (problem.num_velocities,)
        elif self._has_entries:
            count = getattr(problem, path.partition(".")[0]).count
            self.shape = (count, self._columns) if self._columns > 1 else (count,)
        elif path in _COLUMNS:
            self.shape = np.shape(get(problem, path))
        elif path not in _NUMBERS:
            message = f"{path!r} is no input with a derivative; there are {APPLIED_IMPULSE}, "
            raise InvalidArgument(message + ", ".join([*_NUMBERS, *_COLUMNS]), path)

    def check(self, shape: tuple[int, ...]) -> None:
        """Raises InvalidArgument if a value of this shape cannot be expanded."""
        fits = math.prod(shape) == math.prod(self.shape)
        rows_fit = len(shape) < 2 or self._columns in (1, shape[-1])
        if not (fits and rows_fit) and not self._is_repeated(shape):
            message = f"{self.path} has shape {shape}; {self.shape} is needed"
            raise InvalidArgument(message, self.path)

    def expand(self, value: FloatArray) -> FloatArray:
        """The array with all entries; a single number or row is repeated, as in a problem."""
        if value.size == math.prod(self.shape):
            return value.reshape(self.shape)
        return np.broadcast_to(value, self.shape)

    def reduce(self, gradient: FloatArray, shape: tuple[int, ...]) -> FloatArray:
        """The gradient with respect to a value of this shape, which `expand` has expanded."""
        if math.prod(shape) == math.prod(self.shape):
            return gradient.reshape(shape)
        total: FloatArray = np.sum(gradient.reshape(-1, *shape), axis=0)
        return total

    def _is_repeated(self, shape: tuple[int, ...]) -> bool:
        return self._has_entries and (shape == () or (shape == (self._columns,) != (1,)))


def get(values: Any, path: str) -> FloatArray:
    """The array at a path in a problem or gradient; empty if its group is absent."""
    for name in path.split("."):
        values = getattr(values, name, None)
    return np.empty(0) if values is None else np.asarray(values, np.float64)


def with_inputs(problem: Problem, arrays: dict[str, FloatArray]) -> Problem:
    """A problem with these arrays at these paths; it shares all others with `problem`."""
    result = copy.copy(problem)
    copied: set[str] = set()
    for path, array in arrays.items():
        *groups, name = path.split(".")
        owner: Any = result
        for depth, group in enumerate(groups):
            part = getattr(owner, group)
            if (key := ".".join(groups[: depth + 1])) not in copied:
                copied.add(key)
                part = _NESTED[group]() if part is None else copy.copy(part)
                setattr(owner, group, part)
            owner = part
        setattr(owner, name, array if groups and groups[0] != "regularization" else float(array))
    return result


_NESTED: dict[str, type[ArrayGroup]] = {
    name: group for kind in _GROUPS for name, group in kind._groups.items()
}
