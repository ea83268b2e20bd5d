"""The loops of the adapter, C++ in the C library; see `client/c/drake/python_calls.h`."""

from __future__ import annotations

import ctypes
import functools
from typing import Any, NamedTuple

from sap_islands._library.c_library import load, pointer_to
from sap_islands._library.declarations import struct_type
from sap_islands.binaries import find_c_library

_pointer, _int = ctypes.c_void_p, ctypes.c_int64
# Result, and the arguments after the sap_drake_plant: structs by their names.
_FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "write_dynamics": (None, (_pointer,) * 7),
    "add_pairs": (_int, (_pointer, "pairs", "points")),
    "add_faces": (_int, (_pointer, "surfaces", "points")),
    "measure_contacts": (_int, (_int, *(_pointer,) * 2)),
    "write_contacts": (None, (_int, "points", "state", "contacts")),
    "generalized_impulse": (None, (_int, *(_pointer,) * 5)),
    "contact_velocity": (None, (_int, *(_pointer,) * 5)),
}


class NativeCalls(NamedTuple):
    """The functions of the library."""

    write_dynamics: Any
    add_pairs: Any
    add_faces: Any
    measure_contacts: Any
    write_contacts: Any
    generalized_impulse: Any
    contact_velocity: Any


@functools.cache
def load_native_calls() -> NativeCalls:
    """The calls.

    Raises:
        Unavailable: There is no C library, or it is older than this package.
    """
    library = load(find_c_library())
    functions = {}
    for name, (result, arguments) in _FUNCTIONS.items():
        functions[name] = getattr(library, f"sap_drake_{name}")
        functions[name].restype = result
        functions[name].argtypes = [
            ctypes.POINTER(struct_type(f"sap_drake_{kind}")) if isinstance(kind, str) else kind
            for kind in ("plant", *arguments)
        ]
    return NativeCalls(**functions)


def struct_of(name: str, *members: Any) -> Any:
    """A struct of numbers and arrays, which are not kept."""
    return struct_type(f"sap_drake_{name}")(
        *(member if isinstance(member, int) else _address_of(member) for member in members)
    )


def _address_of(array: Any) -> int:
    return ctypes.addressof(pointer_to(array))


def columns_of(struct: str) -> int:
    """The numbers in a struct that has nothing but doubles."""
    load_native_calls()
    return ctypes.sizeof(struct_type(struct)) // ctypes.sizeof(ctypes.c_double)
