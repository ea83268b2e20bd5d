"""The structs of the C headers as ctypes classes.

The library has the text of its headers, `sap_declarations`, so that the members of its structs are
declared there and nowhere else. Pointers are addresses (None: NULL) except those to texts.
"""

from __future__ import annotations

import ctypes
import functools
import re
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

_NUMBERS: dict[str, Any] = {
    "char": ctypes.c_char,
    "double": ctypes.c_double,
    "int32_t": ctypes.c_int32,
    "int64_t": ctypes.c_int64,
    "size_t": ctypes.c_size_t,
    "uint8_t": ctypes.c_uint8,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
}
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STRUCT = re.compile(r"typedef struct (\w+) \{(.*?)\} \1;", re.DOTALL)
_MEMBER = re.compile(r"(.+?) ?\b(\w+)(?:\[(\d+)\])?")

_bodies: dict[str, str] = {}


class Struct(ctypes.Structure):
    """A struct of the library.

    Attributes:
        pointees: Types of the numbers that members point to, by the names of these members.
        dtype: Of an array, as sap_doubles: the type of its numbers.
    """

    __slots__ = ("_kept",)
    pointees: ClassVar[dict[str, Any]] = {}
    dtype: ClassVar[Any] = None

    def point(self, name: str, target: Any) -> None:
        """Points a member at a struct or a number, which is kept."""
        if not isinstance(target, ctypes.Structure):
            target = self.pointees[name](target)
        setattr(self, name, ctypes.addressof(target))
        self.keep(target)

    def number(self, name: str) -> Any:
        """The number that a member points to; None: NULL."""
        address = getattr(self, name)
        return None if address is None else self.pointees[name].from_address(address).value

    def set_array(self, name: str, values: NDArray[Any]) -> None:
        """Sets an array, as sap_doubles, to values of its type, which are kept."""
        array = getattr(self, name)
        array.data, array.length = values.ctypes.data, values.size
        self.keep(values)

    def keep(self, target: Any) -> None:
        """Keeps something as long as the struct."""
        self._kept = (*getattr(self, "_kept", ()), target)


def declare(library: Any) -> None:
    """Takes the structs of a library; those of the first are kept."""
    if not _bodies:
        text = _COMMENT.sub("", library.sap_declarations().decode())
        _bodies.update(_STRUCT.findall(text))


@functools.cache
def struct_type(name: str) -> Any:
    """The class of a struct of a library that was loaded."""
    fields, pointees = [], {}
    for member in _bodies[name].split(";")[:-1]:
        match = _MEMBER.fullmatch(" ".join(member.split()))
        assert match, member
        declared, member_name, length = match.groups()
        target = declared.removeprefix("const ").removeprefix("volatile ").partition("*")[0]
        if "*" not in declared:
            declared_type = _type_of(declared)
        elif declared == "const char*":
            declared_type = ctypes.c_char_p
        else:
            declared_type = ctypes.c_void_p
            if target in _NUMBERS and declared.count("*") == 1:
                pointees[member_name] = _NUMBERS[target]
        fields.append((member_name, declared_type * int(length) if length else declared_type))
    members = {"__slots__": (), "_fields_": fields, "pointees": pointees}
    if [name for name, _ in fields] == ["data", "length"] and pointees:
        members["dtype"] = np.dtype(pointees["data"]).type
    return type(name, (Struct,), members)


def new(name: str, **members: Any) -> Any:
    """A struct that begins with its size; members that are not given are 0."""
    struct = struct_type(name)
    return struct(ctypes.sizeof(struct), **members)


@functools.cache
def array_names(name: str) -> tuple[str, ...]:
    """The members of a struct that are arrays, as sap_doubles."""
    return tuple(member for member, of in struct_type(name)._fields_ if getattr(of, "dtype", None))


def _type_of(declared: str) -> Any:
    """The type of a member that is no pointer: a number, a struct, or a function."""
    if declared in _NUMBERS:
        return _NUMBERS[declared]
    return struct_type(declared) if declared in _bodies else ctypes.c_void_p
