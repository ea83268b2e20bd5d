"""The loops of the adapter, C++ in the C library: `client/mujoco/adapter.h` documents them."""

from __future__ import annotations

import ctypes
import functools
from typing import Any, NamedTuple

import mujoco
import numpy as np

from sap_islands._library.c_library import load, pointer_to
from sap_islands.arrays import FloatArray, IntArray, UIntArray
from sap_islands.binaries import find_c_library
from sap_islands.errors import Unavailable
from sap_islands.mujoco.fields import FieldTable, make_field_table

_LAW_SAP, _SPARSE = 1, 2


class Layout(ctypes.Structure):
    """Mirrors `sap_mujoco_layout`."""

    _fields_ = tuple(
        (name, ctypes.c_int64)
        for name in (
            "rows",
            "simulator_rows",
            "non_zeros",
            "contacts",
            "turning",
            "two_frictions",
            "doubles",
            "unsigned_integers",
            "integers",
            "part_trees",
            "tree_count",
            "couplings",
            "v_star",
            "guess",
            "laws",
            "row_capacity",
            "coefficient",
            "jacobian",
            "angular",
            "scalars",
            "rolling",
            "target",
            "target_angular",
            "servos",
            "velocities",
            "coupling",
            "parts",
            "sizes",
            "row",
            "contact",
            "trees",
            "joint",
            "coupled",
        )
    )


class Velocities(ctypes.Structure):
    """Mirrors `sap_mujoco_velocities`."""

    _fields_ = (
        ("recorded", ctypes.c_void_p),
        ("exact", ctypes.c_void_p),
        ("v_free", ctypes.c_void_p),
        ("solution", ctypes.c_void_p),
        ("island_of_tree", ctypes.c_void_p),
        ("gap", ctypes.c_void_p),
        ("islands", ctypes.c_int64),
        ("slow", ctypes.c_double),
        ("sleeps", ctypes.c_int32),
    )


class NativeComparison(ctypes.Structure):
    """Mirrors `sap_mujoco_comparison`."""

    _fields_ = (
        ("error", ctypes.c_double),
        ("bound", ctypes.c_double),
        ("scale", ctypes.c_double),
        ("island_error", ctypes.c_double),
        ("worst_tree", ctypes.c_int64),
        ("asleep", ctypes.c_int64),
    )


class Buffers(NamedTuple):
    """Arrays that the loops wrote; those of the problem are views of them.

    Attributes:
        layout: Where they are in the buffers.
        doubles: Numbers.
        unsigned: Non-zeros of each row, and their velocities.
        integers: Indices.
    """

    layout: Layout
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
        Unavailable: There is no C library, or it is of another version than this package.
        ImportError: It does not know the structs of the installed MuJoCo.
    """
    path = find_c_library()
    library = load(path)
    if not hasattr(library, "sap_mujoco_layout_size") or (
        library.sap_mujoco_layout_size() != ctypes.sizeof(Layout)
    ):
        raise Unavailable(f"{path} is of another version than this package: build it again")
    pointer, layout = ctypes.c_void_p, ctypes.POINTER(Layout)
    state = (pointer, pointer, pointer, ctypes.c_int32)
    arguments = {
        "measure": (*state, layout),
        "build": (*state, ctypes.c_double, layout, pointer, pointer, pointer),
        "store_forces": (*state, layout, pointer, pointer, pointer),
        "store_island_arrays": state,
        "compare": (
            *state[:3],
            ctypes.POINTER(Velocities),
            pointer,
            ctypes.POINTER(NativeComparison),
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
    calls, layout = load_native_calls(), Layout()
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
