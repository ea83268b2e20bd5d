"""The loops of the adapter, C++ in the C library: `client/c/drake/adapter.h` documents them."""

from __future__ import annotations

import ctypes
import functools
from typing import Any, NamedTuple

from sap_islands._library.c_library import load
from sap_islands.binaries import find_c_library
from sap_islands.errors import Unavailable

MATERIAL_COLUMNS, POINT_COLUMNS = 6, 11  # numbers in sap_drake_material and sap_drake_point

_pointer, _int = ctypes.c_void_p, ctypes.c_int64


class Plant(ctypes.Structure):
    """Mirrors `sap_drake_plant`."""

    _fields_ = (
        ("time_step", ctypes.c_double),
        ("trees", _int),
        ("velocities", _int),
        ("first", _pointer),
        ("order", _pointer),
        ("tree_of_body", _pointer),
        ("position_of_free", _pointer),
    )


_plant = ctypes.POINTER(Plant)
_FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "write_dynamics": (None, (_plant, *(_pointer,) * 7)),
    "add_pairs": (_int, (_plant, _pointer, _int, *(_pointer,) * 6)),
    "add_faces": (_int, (_plant, _pointer, _int, *(_pointer,) * 11)),
    "measure_contacts": (_int, (_plant, _int, *(_pointer,) * 2)),
    "write_contacts": (None, (_plant, _int, *(_pointer,) * 5, _int, *(_pointer,) * 6)),
    "generalized_impulse": (None, (_plant, _int, *(_pointer,) * 5)),
    "contact_velocity": (None, (_plant, _int, *(_pointer,) * 5)),
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
        Unavailable: There is no C library, or it is of another version than this package.
    """
    path = find_c_library()
    library = load(path)
    if not _has_same_structs(library):
        raise Unavailable(f"{path} is of another version than this package: build it again")
    functions = {}
    for name, (result, arguments) in _FUNCTIONS.items():
        functions[name] = getattr(library, f"sap_drake_{name}")
        functions[name].restype, functions[name].argtypes = result, arguments
    return NativeCalls(**functions)


def _has_same_structs(library: Any) -> bool:
    if not hasattr(library, "sap_drake_struct_sizes"):
        return False
    sizes = (_int * 3)()
    library.sap_drake_struct_sizes(sizes)
    of_double = ctypes.sizeof(ctypes.c_double)
    return list(sizes) == [
        ctypes.sizeof(Plant),
        of_double * MATERIAL_COLUMNS,
        of_double * POINT_COLUMNS,
    ]
