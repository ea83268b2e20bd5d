"""Where the fields of mjModel and mjData are: the table that the loops of the C library read.

`client/mujoco/fields.inc` lists the fields. Their places depend on the version of MuJoCo;
`mujoco.introspect` describes the structs of the installed one.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from typing import Any, NamedTuple

import mujoco
import numpy as np
from mujoco.introspect import structs
from mujoco.introspect.ast_nodes import (
    AnonymousStructDecl,
    AnonymousUnionDecl,
    ArrayType,
    PointerType,
    StructDecl,
    ValueType,
)
from numpy.typing import NDArray

from sap_islands.mujoco.callbacks import without_callbacks

_NUMBERS: dict[str, Any] = {
    "char": ctypes.c_char,
    "float": ctypes.c_float,
    "int": ctypes.c_int,
    "mjtBool": ctypes.c_uint8,
    "mjtByte": ctypes.c_uint8,
    "mjtNum": ctypes.c_double,
    "mjtSize": ctypes.c_int64,
    "size_t": ctypes.c_size_t,
    "uint64_t": ctypes.c_uint64,
    "uintptr_t": ctypes.c_void_p,
}
_TYPES = {
    "double": {"mjtNum"},
    "int32_t": {"int", "mjWarningStat"},  # which is two of them
    "uint8_t": {"mjtBool", "mjtByte", "mjSolverStat", "mjTimerStat"},  # or bytes of these
}
_OWNERS = {"array": PointerType, "numbers": (ArrayType, ValueType)}

# Before version 4 every actuator has one force and one control, and no damper.
_FORMER_NAMES = {"nactuator": "nu", "nout": "nu"}
_NEW_IN_4 = {"actuator_outnum", "actuator_outadr", "actuator_ctrladr", "actuator_damping"}
# Polynomials of springs and dampers.
_NEW_IN_3_7 = {
    "jnt_stiffnesspoly",
    "dof_dampingpoly",
    "tendon_stiffnesspoly",
    "tendon_dampingpoly",
    "actuator_dampingpoly",
}
# The metric of the integrator `discrete`: in 3.13, contacts of flexes are in another form.
_EFM = ("efm_diag", "efm_fluid", "efm_c", "efm_ca", "efm_tid", "efm_ts", "efm_aid", "efm_as")
_EFM_OF_FLEXES = ("efm_K_rownnz", "efm_K_rowadr", "efm_K_colind", "efm_K_val")
_EFM_OF_CONTACTS = ("efm_con_ind", "efm_con_val")
_NEW_IN_3_13 = {"nefmT", "nefmA", "nefmK", "nefmcon", *_EFM, *_EFM_OF_FLEXES, *_EFM_OF_CONTACTS}
_FIRST_CONTACTS = 3_014_000

# Arrays of structs in mjData: their names there, and an array that begins where they do.
_ARRAYS_OF_STRUCTS = {
    "warning": ("warning", "lastinfo"),
    "solver_stat": ("solver", "improvement"),
    "timer": ("timer", "duration"),
}

_IN_MODEL, _IN_DATA, _ABSENT = 0, 1, -1
# Numbers of the model that mjData has as well.
_OF_MODEL = {"nplugin"}

# Has at least one element of every kind.
_SAMPLE = """
<mujoco>
  <option jacobian="sparse"/>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body pos="0 0 .05"><joint name="slide" type="slide" axis="0 0 1" damping="1"/>
      <geom size=".1" condim="6"/></body>
  </worldbody>
  <tendon><fixed name="tendon"><joint joint="slide" coef="1"/></fixed></tendon>
  <actuator><general tendon="tendon" dyntype="integrator"/></actuator>
</mujoco>
"""
_making_sample = threading.Lock()


class FieldTable(NamedTuple):
    """Rows of `sap_mujoco_field`, and their address."""

    rows: NDArray[np.int64]
    address: int


def make_field_table(names: str) -> FieldTable:
    """Finds the fields in the structs of the installed MuJoCo.

    Args:
        names: What `sap_mujoco_fields` returns.

    Raises:
        ImportError: The installed MuJoCo has other fields, types or constants than the library
            needs, or its structs are not what it says.
    """
    with _making_sample:  # so that no other thread steps through here without its callbacks
        model, data = _make_sample()
    rows = []
    for kind, *what in map(str.split, names.splitlines()):
        if kind == "constant":
            _check_constant(*what)
            continue
        row = _row_of(kind, *what)
        if not _is_right(row, kind, what[-1], model, data):
            raise ImportError(f"MuJoCo {mujoco.__version__}: {what[-1]} is not where it should be")
        rows.append(row)
    table = np.array(rows, np.int64)
    return FieldTable(table, table.ctypes.data)


@functools.cache
def _make_sample() -> tuple[mujoco.MjModel, mujoco.MjData]:
    with without_callbacks():
        model = mujoco.MjModel.from_xml_string(_SAMPLE)
        data = mujoco.MjData(model)
        mujoco.mj_fwdPosition(model, data)
    return model, data


@functools.cache
def contact_type() -> np.dtype[Any]:
    """An mjContact as an element of an array."""
    return np.dtype(_structure("mjContact"))


def _row_of(kind: str, *what: str) -> tuple[int, int, int]:
    name = what[-1]
    if kind == "contact":
        field = _field("mjContact", name)
        return _IN_DATA, field.offset, field.size
    if kind == "struct":
        return _IN_MODEL, 0, ctypes.sizeof(_structure(name))
    if name in _EFM_OF_CONTACTS and mujoco.mj_version() < _FIRST_CONTACTS:
        return _ABSENT, 0, 0
    if name in _ARRAYS_OF_STRUCTS:
        name = _ARRAYS_OF_STRUCTS[name][0]
        _check_type("mjData", name, kind, *what)
        field = _field("mjData", name)
        return _IN_DATA, field.offset, field.size
    # mjData has an array with the name of an option, `solver`.
    opt = ("mjOption", _IN_MODEL, _field("mjModel", "opt").offset)
    owners = (opt, ("mjData", _IN_DATA, 0), ("mjModel", _IN_MODEL, 0))
    for struct, where, begin in owners[2:] if name in _OF_MODEL else owners:
        for each in (name, _FORMER_NAMES.get(name, name)):
            if each in _declared(struct):
                _check_type(struct, each, kind, *what)
                field = _field(struct, each)
                size = ctypes.sizeof(_structure("mjContact")) if kind == "contacts" else field.size
                return where, begin + field.offset, size
    if name in _NEW_IN_3_7 | _NEW_IN_3_13 | _NEW_IN_4:
        return _ABSENT, 0, 0
    raise ImportError(f"MuJoCo {mujoco.__version__} has no {name}, which the adapter needs")


def _check_type(struct: str, name: str, kind: str, *what: str) -> None:
    if kind not in _OWNERS:
        return
    found = _declared(struct)[name].type
    inner = getattr(found, "inner_type", found)
    if not isinstance(found, _OWNERS[kind]) or inner.name not in _TYPES[what[0]]:
        message = f"MuJoCo {mujoco.__version__}: {name} has type {found}; {what[0]} is needed"
        raise ImportError(message)


def _check_constant(enumeration: str, name: str, value: str) -> None:
    found = int(getattr(getattr(mujoco, enumeration), name))
    if found != int(value):
        message = f"MuJoCo {mujoco.__version__}: {name} is {found}; {value} is needed"
        raise ImportError(message)


def _is_right(
    row: tuple[int, int, int], kind: str, name: str, model: mujoco.MjModel, data: mujoco.MjData
) -> bool:
    """Whether a field of the sample has at its place what MuJoCo's own bindings say."""
    where, offset, size = row
    if where == _ABSENT or kind == "struct":
        return True
    owner = data if where == _IN_DATA else model
    address = owner._address + offset
    if kind == "contact":
        begin = data.contact.dist.ctypes.data - _field("mjContact", "dist").offset
        return bool(getattr(data.contact, name).ctypes.data == begin + offset)
    if kind == "contacts":
        begin = data.contact.dist.ctypes.data - _field("mjContact", "dist").offset
        return ctypes.c_int64.from_address(address).value == begin
    if name in _ARRAYS_OF_STRUCTS:
        structs_name, begins_with = _ARRAYS_OF_STRUCTS[name]
        first = getattr(getattr(data, structs_name), begins_with)
        return bool(first.ctypes.data == address)
    owners = (model.opt, model) if where == _IN_MODEL else (data,)
    names = (name, _FORMER_NAMES.get(name, name))
    expected = next(getattr(each, n) for each in owners for n in names if hasattr(each, n))
    if kind == "numbers":
        if isinstance(expected, np.ndarray):
            return bool(expected.ctypes.data == address)
        return ctypes.c_uint8.from_address(address).value == expected
    if kind == "array":
        found = ctypes.c_int64.from_address(address).value
        is_unused = name in _NEW_IN_3_13 and found == 0  # null where nothing is stiff
        return bool(expected.size == 0 or is_unused or found == expected.ctypes.data)
    if kind == "real":
        return bool(ctypes.c_double.from_address(address).value == expected)
    number = ctypes.c_int32 if size == ctypes.sizeof(ctypes.c_int32) else ctypes.c_int64
    return bool(number.from_address(address).value == expected)


def _declared(struct: str) -> dict[str, Any]:
    return {field.name: field for field in structs.STRUCTS[struct].fields}


def _field(struct: str, name: str) -> Any:
    """Offset and size of a field."""
    return getattr(_structure(struct), name)


@functools.cache
def _structure(name: str) -> Any:
    return _c_type(structs.STRUCTS[name])


def _c_type(declared: Any) -> Any:
    """A type of ctypes with the size and alignment of a declared one."""
    if isinstance(declared, PointerType):
        return ctypes.c_void_p
    if isinstance(declared, ArrayType):
        made = _c_type(declared.inner_type)
        for extent in reversed(declared.extents):
            made = made * extent
        return made
    if isinstance(declared, (StructDecl, AnonymousStructDecl, AnonymousUnionDecl)):
        base = ctypes.Union if isinstance(declared, AnonymousUnionDecl) else ctypes.Structure
        members = [
            (getattr(field, "name", f"anonymous_{i}"), _c_type(getattr(field, "type", field)))
            for i, field in enumerate(declared.fields)
        ]
        return type("Declared", (base,), {"_fields_": members})
    if declared.name in structs.STRUCTS:
        return _structure(declared.name)
    return _NUMBERS.get(declared.name, ctypes.c_int)  # an enumeration is an int
