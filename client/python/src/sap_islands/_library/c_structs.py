"""Problems as the structs of the C library: pointers to the arrays, which are not copied.

The structs of one problem stand one after the other in a block of 64-bit words that is used again
for the next problem. Where the arrays have the shapes that they had there last, their addresses
alone are written.
"""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Iterable
from numbers import Real
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sap_islands._arrays.array_field import HAS_ARRAYS
from sap_islands._arrays.array_group import ArrayGroup
from sap_islands._arrays.bodies import RigidBodies, Trees
from sap_islands._arrays.constraint_rows import ConstraintRows
from sap_islands._arrays.contacts import BodyContacts, Contacts, HuntCrossley
from sap_islands.errors import InvalidArgument

WORD = 8  # bytes

# In the order of the pointers in sap_problem.
GROUPS: tuple[type[ArrayGroup], ...] = (Trees, RigidBodies, Contacts, BodyContacts, ConstraintRows)
_WITH_LAWS = (Contacts, BodyContacts)
_LAWS = frozenset(Contacts._fields) & frozenset(BodyContacts._fields)
# The arrays that a pointer to another struct follows: structs grow at their ends only.
_BEFORE_POINTERS = ("angular_jacobian", "tangent", "law")


class StructLayout:
    """Places in a struct, in words: it begins with its size.

    Attributes:
        arrays: First of the two words of each array.
        pointer: Word of the pointer to another struct; 0: it has none.
        end: Number of words.
    """

    def __init__(self, names: Iterable[str]) -> None:
        """Lays out the arrays of these names, in the order of the struct."""
        self.arrays: dict[str, int] = {}
        self.pointer = 0
        self.end = 1
        for name in names:
            self.arrays[name] = self.end
            self.end += 2
            if name in _BEFORE_POINTERS:
                self.pointer = self.end
                self.end += 1


def _struct_of(kind: type[ArrayGroup]) -> StructLayout:
    """The struct of a group, without that of its laws."""
    shared = _LAWS if kind in _WITH_LAWS else ()
    return StructLayout(name for name in kind._fields if name not in shared)


STRUCTS = {kind: _struct_of(kind) for kind in (*GROUPS, HuntCrossley)}
LAWS = StructLayout(name for name in Contacts._fields if name in _LAWS)
# Members of sap_regularization after its size, in order; all but `rule` are pointers to numbers.
REGULARIZATION_MEMBERS = (
    "beta",
    "sigma",
    "row_beta",
    "stiction_speed",
    "rule",
    "load_reference_speed",
    "reference_time_step",
)
NUMBERS = tuple(name for name in REGULARIZATION_MEMBERS if name != "rule")
# Numbers that have derivatives.
REGULARIZATION = tuple(name for name in NUMBERS if name != "load_reference_speed")
_RULE = 1 + REGULARIZATION_MEMBERS.index("rule")
_REGULARIZATION_WORDS = 1 + len(REGULARIZATION_MEMBERS)
_NUMBER_PLACES = tuple(1 + REGULARIZATION_MEMBERS.index(name) for name in NUMBERS)
_PROBLEM_WORDS = 8
_MAX_REMEMBERED = 4096  # cached sets of array shapes per group
_BYTE = np.dtype(np.uint8)  # of enumerations, which are int32 in the structs

Words: TypeAlias = "memoryview[Any]"
_ArrayShapes: TypeAlias = "list[tuple[int, ...]]"


_address_of = ctypes.addressof
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
        present: For each array that is not empty: its index among the arrays of the group, its
            word, its length in the struct, how often it is repeated, 0: it is not; and whether it
            is passed as it is.
    """

    present: list[tuple[int, int, int, int, bool]]


class _Last(NamedTuple):
    """The arrays whose lengths are in a block, and the `count` that they were repeated to."""

    shapes: _ArrayShapes
    entries: int | None
    written: _Shapes


class _Group:
    """Writes the structs of one group: its own, and those of its laws if it has contacts."""

    def __init__(self, kind: type[ArrayGroup], start: int) -> None:
        """Lays out the structs from word `start` on."""
        self.kind = kind
        self.start = start
        self.structs = [(start, STRUCTS[kind])]
        for struct in (LAWS, STRUCTS[HuntCrossley]) if kind in _WITH_LAWS else ():
            first, before = self.structs[-1]
            self.structs.append((first + before.end, struct))
        first, last = self.structs[-1]
        self.end = first + last.end
        names = [name for _, struct in self.structs for name in struct.arrays]
        self._extra = [name for name in names if name not in kind._fields]
        self._slots = [
            first + word for first, struct in self.structs for word in struct.arrays.values()
        ]
        fields = [(kind._fields | HuntCrossley._fields)[name] for name in names]
        self._columns = [field.columns if field.repeats else 1 for field in fields]
        self._enumerations = [i for i, field in enumerate(fields) if field.dtype == _BYTE]
        self._arrays_of = operator.itemgetter(*(name for name in names if name in kind._fields))
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
        present = []
        for index, array in enumerate(arrays):
            columns = self._columns[index]
            length, repeat = array.size, 0
            if array.ndim == 0 or (columns > 1 and array.size == columns):
                length = count * columns
                repeat = length // array.size
            if length:
                as_it_is = not repeat and index not in self._enumerations
                present.append((index, self._slots[index], length, repeat, as_it_is))
        return _Shapes(present)


def _lay_out() -> tuple[list[_Group], int]:
    groups = []
    start = _PROBLEM_WORDS
    for kind in GROUPS:
        groups.append(_Group(kind, start))
        start = groups[-1].end
    return groups, start


_GROUPS, _REGULARIZATION_START = _lay_out()
_NUMBERS_START = _REGULARIZATION_START + _REGULARIZATION_WORDS
_NUM_WORDS = _NUMBERS_START + _REGULARIZATION_WORDS


class ProblemBlock:
    """Structs of one problem at a time.

    Attributes:
        address: Of the sap_problem.
    """

    def __init__(self) -> None:
        self._memory = (ctypes.c_int64 * _NUM_WORDS)()
        self.address = ctypes.addressof(self._memory)
        self._words: Words = memoryview(self._memory).cast("B").cast("q")
        self._doubles: Words = memoryview(self._memory).cast("B").cast("d")
        self._last: list[_Last | None] = [None] * len(_GROUPS)
        self._kept: list[Any] = []
        words = self._words
        words[0] = _PROBLEM_WORDS * WORD
        for group in _GROUPS:
            for place, (start, struct) in enumerate(group.structs):
                words[start] = struct.end * WORD
                if struct.pointer:
                    target, _ = group.structs[place + 1]
                    words[start + struct.pointer] = self.address + target * WORD
        words[_REGULARIZATION_START] = _REGULARIZATION_WORDS * WORD
        self._numbers: tuple[Any, ...] = ()

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
        self._doubles[1] = problem.time_step
        self._kept.clear()
        for number, layout in enumerate(_GROUPS):
            name = layout.kind.FIELD
            group = values[name]
            if HAS_ARRAYS not in group.__dict__:
                words[2 + number] = 0
                continue
            words[2 + number] = self.address + layout.start * WORD
            count = None if direction_of is None else getattr(direction_of, name).count
            arrays = layout.arrays(group)
            self._kept.append(arrays)
            last = self._last[number]
            shapes = [array.shape for array in arrays]
            if last is None or shapes != last.shapes or count != last.entries:
                last = self._write_lengths(layout, shapes, arrays, group, count)
                self._last[number] = last
            for index, word, length, repeat, as_it_is in last.written.present:
                array = arrays[index]
                if not as_it_is:
                    array = self._converted(array, length, repeat)
                try:
                    # A fifth of the time that NumPy takes to tell its address.
                    words[word] = _address_of(_from_buffer(array))
                except TypeError:  # read-only
                    words[word] = array.ctypes.data
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
        for _, word, length, _, _ in written.present:
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
        for start, struct in layout.structs:
            for word in struct.arrays.values():
                self._words[start + word] = self._words[start + word + 1] = 0

    def _fill_regularization(self, given: Any) -> None:
        numbers = (
            given.beta,
            given.sigma,
            given.row_beta,
            given.stiction_speed,
            given.load_reference_speed,
            given.reference_time_step,
            given.rule,
        )
        if numbers == self._numbers:
            return
        self._numbers = numbers
        words = self._words
        words[7] = self.address + _REGULARIZATION_START * WORD
        for place, value in zip(_NUMBER_PLACES, numbers[:-1], strict=True):
            word = _NUMBERS_START + place
            words[_REGULARIZATION_START + place] = (
                0 if value is None else self.address + word * WORD
            )
            if value is not None:
                self._doubles[word] = value
        words[_REGULARIZATION_START + _RULE] = int(given.rule)


def _check_types(problem: Any) -> None:
    """Raises InvalidArgument that names the first part of a problem with the wrong type, if any."""

    def check(path: str, value: Any, kind: Any, wanted: str) -> None:
        if not isinstance(value, kind):
            message = f"{path} has type {type(value).__name__}; {wanted} is needed"
            raise InvalidArgument(message, path)

    check("problem", problem, AnyProblem, "Problem")
    check("time_step", problem.time_step, Real, "a number")
    for kind in GROUPS:
        check(kind.FIELD, getattr(problem, kind.FIELD), kind, kind.__name__)
    for name in REGULARIZATION_MEMBERS:
        value = getattr(problem.regularization, name)
        check(f"regularization.{name}", value, (Real, type(None)), "a number")
