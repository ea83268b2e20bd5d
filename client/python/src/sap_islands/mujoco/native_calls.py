"""The parts of a step, C++ in the C library; see `client/mujoco/python_calls.h`."""

from __future__ import annotations

import ctypes
import enum
import functools
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np

from sap_islands._library.c_library import load, pointer_to
from sap_islands._library.declarations import struct_type
from sap_islands.arrays import FloatArray, IntArray, UIntArray
from sap_islands.binaries import find_c_library
from sap_islands.errors import error_of_code
from sap_islands.mujoco.callbacks import call_native
from sap_islands.mujoco.fields import FieldTable, make_field_table

_LAW_SAP, _SPARSE, _RECORDED = 1, 2, 16


class Stage(enum.IntEnum):
    """Stages of `mj_step` before its constraint solver; FORCES follow the velocities."""

    ALL = 0
    POSITIONS = 1
    CONSTRAINTS = 2
    FORCES = 3


class NativeCalls(NamedTuple):
    """The functions of the library, the handle and the table of fields that they need."""

    solver: int
    compute: Any
    measure: Any
    build: Any
    finish: Any
    integrate: Any
    compare: Any
    fields: FieldTable

    def state(self, model: mujoco.MjModel, data: mujoco.MjData, as_sap: bool) -> tuple[int, ...]:
        """The first arguments of functions without the handle: fields, model, data, flags."""
        flags = (_LAW_SAP if as_sap else 0) | (_SPARSE if mujoco.mj_isSparse(model) else 0)
        return self.fields.address, model._address, data._address, flags


class Buffers(NamedTuple):
    """Where the library writes a problem; arrays of the problem are views of them.

    Attributes:
        problem: The struct, which points to them.
        doubles: Numbers.
        unsigned: Non-zeros of each row, and their velocities.
        integers: Indices.
        arrays: [-, 3] number, begin and length of each array that is not empty.
    """

    problem: Any
    doubles: FloatArray
    unsigned: UIntArray
    integers: IntArray
    arrays: IntArray

    @property
    def layout(self) -> Any:
        """Where the arrays are."""
        return self.problem.layout


@functools.cache
def load_native_calls() -> NativeCalls:
    """The calls.

    Raises:
        Unavailable: There is no C library, or it is older than this package.
        ImportError: It does not know the structs of the installed MuJoCo.
        SapError: The installed MuJoCo lacks a function.
    """
    library = load(find_c_library())
    library.sap_mujoco_fields.restype = ctypes.c_char_p
    fields = make_field_table(library.sap_mujoco_fields().decode())
    pointer, flags = ctypes.c_void_p, ctypes.c_int32
    state, outcome = (pointer,) * 3, _pointer("outcome")
    problem = _pointer("problem")
    arguments = {
        "compute": (*state, ctypes.c_int32, flags, outcome),
        "measure": (*state, problem),
        "build": (*state, _pointer("material"), problem, outcome),
        "finish": (*state, problem, _pointer("solution"), outcome),
        "integrate": (*state, flags, pointer, outcome),
        "compare": (*state, _pointer("velocities"), pointer, _pointer("comparison")),
    }
    functions = {}
    for name, types in arguments.items():
        functions[name] = getattr(library, f"sap_mujoco_{name}")
        functions[name].argtypes = types
    return NativeCalls(solver=_open(library, fields), **functions, fields=fields)


def _pointer(name: str) -> Any:
    return ctypes.POINTER(struct_type(f"sap_mujoco_{name}"))


def _open(library: Any, fields: FieldTable) -> int:
    """Finds MuJoCo's functions in the library of the `mujoco` package."""
    (path,) = Path(mujoco.__file__).parent.glob("libmujoco.so*")
    solver, outcome, pointer = ctypes.c_void_p(), new_outcome(), ctypes.c_void_p
    library.sap_mujoco_open.argtypes = (ctypes.c_char_p, pointer, pointer, _pointer("outcome"))
    where = str(path).encode(), fields.address, ctypes.byref(solver)
    raise_error(library.sap_mujoco_open(*where, outcome), outcome)
    assert solver.value is not None
    return solver.value


def new_outcome() -> Any:
    """The struct that a function writes its error to."""
    return struct_type("sap_mujoco_outcome")()


def raise_error(code: int, outcome: Any) -> None:
    """Raises the error of a function, if its code is one."""
    if code:
        raise error_of_code(code, outcome.message.decode(errors="replace"))


def compute(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    as_sap: bool,
    stage: Stage = Stage.ALL,
    *,
    controls: bool = True,
) -> None:
    """Runs stages of a step that precede MuJoCo's constraint solver.

    Under the law of SAP contacts in the gap, beyond their margin, have constraints. `controls`
    tells whether the program's callback computes them.
    """
    flags = (_LAW_SAP if as_sap else 0) | (0 if controls else _RECORDED)
    _call("compute", model, data, int(stage), flags)


def fill_buffers(
    model: mujoco.MjModel, data: mujoco.MjData, as_sap: bool, material: Any, most_arrays: int
) -> Buffers:
    """Writes the problem of a state whose constraints and forces are computed.

    `material` is a sap_mujoco_material, `most_arrays` the number of arrays of a problem.
    """
    calls = load_native_calls()
    problem = struct_type("sap_mujoco_problem")(flags=_LAW_SAP if as_sap else 0)
    calls.measure(calls.solver, model._address, data._address, problem)
    layout = problem.layout
    buffers = Buffers(
        problem,
        np.empty(layout.doubles),
        np.empty(layout.unsigned_integers, np.uint32),
        np.empty(layout.integers, np.int32),
        np.empty((most_arrays, 3), np.int64),
    )
    problem.doubles, problem.unsigned_integers, problem.integers, problem.arrays = (
        ctypes.addressof(pointer_to(buffer)) for buffer in buffers[1:]
    )
    _call("build", model, data, material, problem)
    return buffers


def finish(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    buffers: Buffers,
    values: FloatArray,
    iterations: UIntArray,
) -> None:
    """Writes the forces of a solution to the state of a problem, and integrates.

    `values` are its velocities, impulses of rows and of contacts, and angular ones; `iterations`
    those of each island.
    """
    iterations = np.ascontiguousarray(iterations, np.uint32)
    solution = struct_type("sap_mujoco_solution")(
        values.ctypes.data, iterations.ctypes.data, len(iterations)
    )
    _call("finish", model, data, buffers.problem, solution)


def integrate(
    model: mujoco.MjModel, data: mujoco.MjData, as_sap: bool, velocity: FloatArray
) -> None:
    """Integrates activations, velocities and positions of a state whose forces are stored.

    `velocity` is that of the solution. Under MuJoCo's law only `qacc` and the forces count, under
    the integrator `discrete` only `qacc`.
    """
    velocity = np.ascontiguousarray(velocity, np.float64)
    _call("integrate", model, data, _LAW_SAP if as_sap else 0, velocity.ctypes.data)


def _call(name: str, model: mujoco.MjModel, data: mujoco.MjData, *arguments: Any) -> None:
    """Calls a function that may call MuJoCo, and so callbacks of the program."""
    calls, outcome = load_native_calls(), new_outcome()
    function = getattr(calls, name)
    state = calls.solver, model._address, data._address
    raise_error(call_native(function, *state, *arguments, outcome), outcome)
