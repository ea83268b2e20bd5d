"""Problems as the structs of the C library: pointers to the arrays, which are not copied.

The structs of one problem stand one after the other in a block of 64-bit words that is used again
for the next problem. Where the arrays have the shapes that they had there last, their addresses
alone are written.
"""

from __future__ import annotations

import ctypes
import functools
import operator
from numbers import Real
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sap_islands._arrays.array_field import HAS_ARRAYS
from sap_islands._arrays.array_group import ArrayGroup
from sap_islands._arrays.bodies import RigidBodies, Trees
from sap_islands._arrays.constraint_rows import ConstraintRows
from sap_islands._arrays.contacts import BodyContacts, Contacts, HuntCrossley
from sap_islands._library.declarations import array_names, new, struct_type
from sap_islands.errors import InvalidArgument

WORD = 8  # bytes

GROUPS: tuple[type[ArrayGroup], ...] = (Trees, RigidBodies, Contacts, BodyContacts, ConstraintRows)
LAWS, PARAMETERS = "sap_contact_laws", "sap_hunt_crossley"
# The pointers from the struct of a group with contacts to that of its laws and so on.
_POINTERS = ("laws", "hunt_crossley")
_MAX_REMEMBERED = 4096  # cached sets of array shapes per group
_BYTE = np.dtype(np.uint8)  # of enumerations, which are int32 in the structs

Words: TypeAlias = "memoryview[Any]"
_ArrayShapes: TypeAlias = "list[tuple[int, ...]]"


_address_of = ctypes.addressof
_shape_of = operator.attrgetter("shape")
_from_buffer: Any = ctypes.c_char.from_buffer


@runtime_checkable
class AnyProblem(Protocol):
    """The members of a `Problem` that are read, and its groups."""

    time_step: float

    @property
    def regularization(self) -> Any:
        """The `Regularization`."""


class _Shapes(NamedTuple):
    """The plan by which arrays of one set of shapes are written.

    Attributes:
        lengths: Words of the arrays that are not empty, and their lengths in the struct.
        plain: Arrays that are passed as they are: their indices among the arrays of the group, and
            words.
        converted: Others: also their lengths, and how often they are repeated; 0: they are not.
    """

    lengths: list[tuple[int, int]]
    plain: list[tuple[int, int]]
    converted: list[tuple[int, int, int, int]]


class _Last(NamedTuple):
    """The arrays whose lengths are in a block, and the `count` that they were repeated to."""

    shapes: _ArrayShapes
    entries: int | None
    written: _Shapes


def structs_of(group: type[ArrayGroup]) -> tuple[str, ...]:
    """The structs of a group: its own, and if it has contacts those of their laws."""
    own = f"sap_{group.FIELD}"
    return (own, LAWS, PARAMETERS) if group in (Contacts, BodyContacts) else (own,)


def _word_of(struct: Any, member: str) -> int:
    return int(getattr(struct, member).offset) // WORD


class _Group:
    """Writes the structs of one group."""

    def __init__(self, group: type[ArrayGroup], start: int) -> None:
        """Lays out the structs from word `start` on."""
        self.kind = group
        self.start = start
        self.pointer = _word_of(struct_type("sap_problem"), group.FIELD)
        self.structs: list[tuple[int, Any]] = []
        words = {}
        for struct in structs_of(group):
            for name in array_names(struct):
                words[name] = start + _word_of(struct_type(struct), name)
            self.structs.append((start, struct_type(struct)))
            start += ctypes.sizeof(struct_type(struct)) // WORD
        self.end = start
        self.slots = list(words.values())
        self._extra = [name for name in words if name not in group._fields]
        fields = [(group._fields | HuntCrossley._fields)[name] for name in words]
        self._columns = [field.columns if field.repeats else 1 for field in fields]
        self._enumerations = [i for i, field in enumerate(fields) if field.dtype == _BYTE]
        self._arrays_of = operator.itemgetter(*(name for name in words if name in group._fields))
        self._shapes: dict[tuple[int | None, tuple[tuple[int, ...], ...]], _Shapes] = {}

    def arrays(self, group: Any) -> tuple[NDArray[Any], ...]:
        values = group.__dict__
        arrays: tuple[NDArray[Any], ...] = self._arrays_of(values)
        if not self._extra:
            return arrays
        extra = values["hunt_crossley"]
        if extra is None:
            return arrays
        return arrays + tuple(extra.__dict__[name] for name in self._extra)

    def shapes(
        self, shapes: _ArrayShapes, arrays: tuple[NDArray[Any], ...], group: Any, count: int | None
    ) -> _Shapes:
        """Returns the plan for arrays of these shapes, with `count` entries if that is given."""
        key = (count, tuple(shapes))
        known = self._shapes.get(key)
        if known is None:
            known = self._make_shapes(arrays, group.count if count is None else count)
            if len(self._shapes) >= _MAX_REMEMBERED:
                self._shapes.clear()
            self._shapes[key] = known
        return known

    def _make_shapes(self, arrays: tuple[NDArray[Any], ...], count: int) -> _Shapes:
        found = _Shapes([], [], [])
        for index, array in enumerate(arrays):
            columns = self._columns[index]
            length, repeat = array.size, 0
            if array.ndim == 0 or (columns > 1 and array.size == columns):
                length = count * columns
                repeat = length // array.size
            if not length:
                continue
            word = self.slots[index]
            found.lengths.append((word, length))
            if repeat or index in self._enumerations:
                found.converted.append((index, word, length, repeat))
            else:
                found.plain.append((index, word))
        return found


class _Layout(NamedTuple):
    """Where the structs of a problem are in a block, and its number of words."""

    groups: list[_Group]
    words: int


@functools.cache
def _layout() -> _Layout:
    groups: list[_Group] = []
    start = ctypes.sizeof(struct_type("sap_problem")) // WORD
    for group in GROUPS:
        groups.append(_Group(group, start))
        start = groups[-1].end
    return _Layout(groups, start)


class ProblemBlock:
    """Structs of one problem at a time.

    Attributes:
        address: Of the sap_problem.
    """

    def __init__(self) -> None:
        self._groups, words = _layout()
        self._memory = (ctypes.c_int64 * words)()
        self.address = ctypes.addressof(self._memory)
        self._words: Words = memoryview(self._memory).cast("B").cast("q")
        self._problem = struct_type("sap_problem").from_buffer(self._memory)
        self._problem.struct_size = ctypes.sizeof(self._problem)
        self._last: list[_Last | None] = [None] * len(self._groups)
        self._kept: list[Any] = []
        for group in self._groups:
            for start, struct in group.structs:
                self._words[start] = ctypes.sizeof(struct)
            links = zip(group.structs, _POINTERS, group.structs[1:], strict=False)
            for (start, struct), pointer, (target, _) in links:
                self._words[start + _word_of(struct, pointer)] = self.address + target * WORD
        self._numbers: dict[str, Any] = {}

    def fill(self, problem: AnyProblem, direction_of: AnyProblem | None = None) -> None:
        """Points at the arrays of a problem, and keeps them until `release` or the next call.

        Args:
            problem: The problem.
            direction_of: Given for a direction d(input): the problem that is differentiated. A
                direction has no index arrays, so numbers and rows are repeated as often as there.

        Raises:
            InvalidArgument: A part of the problem has the wrong type.
        """
        try:
            self._fill(problem, direction_of)
        except (AttributeError, KeyError, TypeError, ValueError):
            _check_types(problem)
            raise

    def _fill(self, problem: AnyProblem, direction_of: AnyProblem | None) -> None:
        words = self._words
        values = problem.__dict__
        self._problem.time_step = problem.time_step
        self._kept.clear()
        for number, layout in enumerate(self._groups):
            name = layout.kind.FIELD
            group = values[name]
            if HAS_ARRAYS not in group.__dict__:
                words[layout.pointer] = 0
                continue
            words[layout.pointer] = self.address + layout.start * WORD
            count = None if direction_of is None else getattr(direction_of, name).count
            arrays = layout.arrays(group)
            self._kept.append(arrays)
            last = self._last[number]
            shapes = list(map(_shape_of, arrays))
            if last is None or shapes != last.shapes or count != last.entries:
                last = self._write_lengths(layout, shapes, arrays, group, count)
                self._last[number] = last
            for index, word in last.written.plain:
                array = arrays[index]
                try:
                    # A fifth of the time that NumPy takes to tell its address.
                    words[word] = _address_of(_from_buffer(array))
                except TypeError:  # read-only
                    words[word] = array.ctypes.data
            for index, word, length, repeat in last.written.converted:
                words[word] = self._converted(arrays[index], length, repeat).ctypes.data
        self._fill_regularization(problem.regularization)

    def release(self) -> None:
        """Keeps the arrays no longer: the structs are not read any more."""
        self._kept.clear()

    def _write_lengths(
        self,
        layout: _Group,
        shapes: _ArrayShapes,
        arrays: tuple[NDArray[Any], ...],
        group: Any,
        count: int | None,
    ) -> _Last:
        self._clear(layout)
        written = layout.shapes(shapes, arrays, group, count)
        for word, length in written.lengths:
            self._words[word + 1] = length
        return _Last(shapes, count, written)

    def _converted(self, array: NDArray[Any], length: int, repeat: int) -> NDArray[Any]:
        """The array with all of its entries, in the type that the struct has."""
        if repeat:
            array = array.reshape(1, -1).repeat(repeat, 0)  # a tenth of the time of np.tile
        if array.dtype == _BYTE:
            array = array.astype(np.int32)
        self._kept.append(array)
        return array

    def _clear(self, layout: _Group) -> None:
        for word in layout.slots:
            self._words[word] = self._words[word + 1] = 0

    def _fill_regularization(self, given: Any) -> None:
        numbers = dict(vars(given))
        if numbers == self._numbers:
            return
        struct = new("sap_regularization", rule=int(numbers["rule"]))
        for name, value in numbers.items():
            if name != "rule" and value is not None:
                struct.point(name, value)
        self._numbers, self._regularization = numbers, struct
        self._problem.regularization = ctypes.addressof(struct)


def _check_types(problem: Any) -> None:
    """Raises InvalidArgument that names the first part of a problem with the wrong type, if any."""

    def check(path: str, value: Any, wanted_type: Any, wanted: str) -> None:
        if not isinstance(value, wanted_type):
            message = f"{path} has type {type(value).__name__}; {wanted} is needed"
            raise InvalidArgument(message, path)

    check("problem", problem, AnyProblem, "Problem")
    check("time_step", problem.time_step, Real, "a number")
    for group in GROUPS:
        check(group.FIELD, getattr(problem, group.FIELD), group, group.__name__)
    for name, value in vars(problem.regularization).items():
        check(f"regularization.{name}", value, (Real, type(None)), "a number")
