"""The loops of the adapter, C++ in the C library; see `client/mujoco/python_calls.h`."""

from __future__ import annotations

import ctypes
import functools
from typing import Any, NamedTuple

import mujoco
import numpy as np

from sap_islands._library.c_library import load, pointer_to
from sap_islands._library.declarations import struct_type
from sap_islands.arrays import FloatArray, IntArray, UIntArray
from sap_islands.binaries import find_c_library
from sap_islands.mujoco.fields import FieldTable, make_field_table

_LAW_SAP, _SPARSE = 1, 2


class Buffers(NamedTuple):
    """Arrays that the loops wrote; those of the problem are views of them.

    Attributes:
        layout: Where they are in the buffers.
        doubles: Numbers.
        unsigned: Non-zeros of each row, and their velocities.
        integers: Indices.
    """

    layout: Any
    doubles: FloatArray
    unsigned: UIntArray
    integers: IntArray


class NativeCalls(NamedTuple):
    """The functions of the library, and the table of fields that they need."""

    measure: Any
    build: Any
    store_forces: Any
    store_island_arrays: Any
    compare: Any
    fields: FieldTable

    def state(self, model: mujoco.MjModel, data: mujoco.MjData, as_sap: bool) -> tuple[int, ...]:
        """The first arguments of every function: fields, model, data, flags."""
        flags = (_LAW_SAP if as_sap else 0) | (_SPARSE if mujoco.mj_isSparse(model) else 0)
        return self.fields.address, model._address, data._address, flags


@functools.cache
def load_native_calls() -> NativeCalls:
    """The calls.

    Raises:
        Unavailable: There is no C library, or it is older than this package.
        ImportError: It does not know the structs of the installed MuJoCo.
    """
    library = load(find_c_library())
    pointer, layout = ctypes.c_void_p, ctypes.POINTER(struct_type("sap_mujoco_layout"))
    state = (pointer, pointer, pointer, ctypes.c_int32)
    arguments = {
        "measure": (*state, layout),
        "build": (*state, ctypes.c_double, layout, pointer, pointer, pointer),
        "store_forces": (*state, layout, pointer, pointer, pointer),
        "store_island_arrays": state,
        "compare": (
            *state[:3],
            ctypes.POINTER(struct_type("sap_mujoco_velocities")),
            pointer,
            ctypes.POINTER(struct_type("sap_mujoco_comparison")),
        ),
    }
    functions = {}
    for name, types in arguments.items():
        functions[name] = getattr(library, f"sap_mujoco_{name}")
        functions[name].restype, functions[name].argtypes = None, types
    library.sap_mujoco_fields.restype = ctypes.c_char_p
    return NativeCalls(**functions, fields=make_field_table(library.sap_mujoco_fields().decode()))


def fill_buffers(model: mujoco.MjModel, data: mujoco.MjData, as_sap: bool, sigma: float) -> Buffers:
    """All arrays of the problem of a state; `sigma` is the slip parameter of rows, or 0."""
    calls, layout = load_native_calls(), struct_type("sap_mujoco_layout")()
    state = calls.state(model, data, as_sap)
    calls.measure(*state, layout)
    doubles = np.empty(layout.doubles)
    if data.nefc:
        velocities = doubles[layout.velocities : layout.coupling]
        mujoco.mj_mulJacVec(model, data, velocities, data.qvel)
    unsigned = np.empty(layout.unsigned_integers, np.uint32)
    integers = np.empty(layout.integers, np.int32)
    calls.build(
        *state,
        sigma,
        layout,
        pointer_to(doubles),
        pointer_to(unsigned),
        pointer_to(integers),
    )
    return Buffers(layout, doubles, unsigned, integers)
