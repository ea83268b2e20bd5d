"""The constant part of a MuJoCo model: its trees, and the addresses of its arrays.

Determined once per model and cached. Values that a caller may change between steps, such as
damping, gains and joint ranges, are not cached: every step reads them from the model's memory.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import mujoco
import numpy as np

from sap_islands.arrays import UIntArray
from sap_islands.mujoco.unsupported_features import watched_arrays
from sap_islands.numba_kernels import Flag, Index, IndexArray, Integer, Real, make_table


class ModelArrays(NamedTuple):
    """Arrays of MjModel that compiled functions read."""

    dof_damping: Real
    jnt_stiffness: Real
    jnt_range: Real
    jnt_margin: Real
    jnt_solref: Real
    jnt_solimp: Real
    dof_invweight0: Real
    body_invweight0: Real
    actuator_gainprm: Real
    actuator_biasprm: Real
    actuator_forcerange: Real
    actuator_ctrlrange: Real
    dof_parentid: Integer
    geom_bodyid: Integer
    jnt_type: Integer
    jnt_dofadr: Integer
    jnt_qposadr: Integer
    actuator_gaintype: Integer
    actuator_biastype: Integer
    actuator_group: Integer
    actuator_actadr: Integer
    actuator_actnum: Integer
    jnt_limited: Flag
    actuator_forcelimited: Flag
    actuator_ctrllimited: Flag


class StateArrays(NamedTuple):
    """Arrays of MjData that compiled functions read."""

    qpos: Real
    qvel: Real
    qacc_smooth: Real
    qfrc_smooth: Real
    M: Real
    cdof: Real
    subtree_com: Real
    act: Real
    ctrl: Real
    actuator_force: Real
    actuator_moment: Real
    moment_rowadr: Integer
    moment_rownnz: Integer
    moment_colind: Integer
    eq_active: Flag


class LayoutArrays(NamedTuple):
    """Index arrays of a model.

    Attributes:
        sizes: [T] degrees of freedom of each tree.
        first_dof: [T] first dof of each tree.
        root: [T] root body of each tree.
        block_start: [T + 1] index of A_t in the array of all blocks.
        tree_of_dof: [nv] tree of each dof.
        tree_of_body: [nbody] tree of each body; -1: fixed to the world.
        last_dof: [nbody] last dof that moves the body; the others are its ancestors; -1: none.
        entries: [2 nnz] index in the blocks of each entry of MuJoCo's sparse M: those of the lower
            triangle, then those of the upper.
        output: [nu] row of each actuator in actuator_force and actuator_moment.
        control: [nu] index of each actuator's first control.
        contact: `ContactFields`.
    """

    sizes: Index
    first_dof: Index
    root: Index
    block_start: Index
    tree_of_dof: Index
    tree_of_body: Index
    last_dof: Index
    entries: Index
    output: Index
    control: Index
    contact: Index


class ContactFields(NamedTuple):
    """Offsets of the fields of mjContact from its field `dist` [bytes].

    Attributes:
        stride: Size of mjContact [bytes].
    """

    dist: int
    pos: int
    frame: int
    includemargin: int
    friction: int
    solref: int
    solimp: int
    dim: int
    geom: int
    exclude: int
    stride: int


MODEL = ModelArrays(*range(len(ModelArrays._fields)))
STATE = StateArrays(*range(len(StateArrays._fields)))
LAYOUT = LayoutArrays(*range(len(LayoutArrays._fields)))
CONTACT = ContactFields(*range(len(ContactFields._fields)))

PARAMETERS = 10  # length of a row of actuator_gainprm and actuator_biasprm


@dataclass
class Layout:
    """Trees and tables of a model.

    Attributes:
        dofs: [T] degrees of freedom of each tree.
        names: [T] `tree_id` of each tree.
        velocities: nv.
        block_values: Number of values in the blocks of A, sum n_t².
        joint_ends: Number of joint limits at most, 2 njnt.
        has_surface_velocities: Whether this version of MuJoCo has surface velocities in contacts.
        arrays: The arrays of `table`, which must outlive it.
        table: Table of `LayoutArrays`.
        model_table: Table of `ModelArrays`.
        watched: [n, 2] address and size [bytes] of the arrays that `check_supported` depends on.
        seen: Contents of these arrays and of eq_active at the last check.
        forward: Functions that compute positions, velocities and smooth forces, in order: those
            before, and those after the control callback.
        checked_for: Ignored names and disable flags of the last successful check; None: no check.
    """

    dofs: UIntArray
    names: UIntArray
    velocities: int
    block_values: int
    joint_ends: int
    has_surface_velocities: bool
    arrays: dict[str, IndexArray]
    table: IndexArray
    model_table: IndexArray
    watched: IndexArray
    seen: np.ndarray[Any, np.dtype[np.uint8]]
    forward: tuple[list[_Stage], list[_Stage]]
    checked_for: object = field(default=None)


_Stage = Callable[[mujoco.MjModel, mujoco.MjData], None]

_layouts: weakref.WeakKeyDictionary[mujoco.MjModel, Layout] = weakref.WeakKeyDictionary()
_states: weakref.WeakKeyDictionary[mujoco.MjData, IndexArray] = weakref.WeakKeyDictionary()


def layout_of(model: mujoco.MjModel) -> Layout:
    """The layout of a model; made at the first call."""
    layout = _layouts.get(model)
    if layout is None:
        layout = _layouts[model] = _make_layout(model)
    return layout


def state_table(data: mujoco.MjData) -> IndexArray:
    """The table of `StateArrays` of a state; made at the first call."""
    table = _states.get(data)
    if table is None:
        arrays = {name: getattr(data, name) for name in StateArrays._fields}
        table = _states[data] = make_table(StateArrays, arrays)
    return table


def _make_layout(model: mujoco.MjModel) -> Layout:
    dofs = model.tree_dofnum.astype(np.int64)
    first_dof = model.tree_dofadr.astype(np.int64)
    block_start = np.concatenate(([0], np.cumsum(dofs**2)))
    tree_of_dof = model.dof_treeid.astype(np.int64)
    row = np.repeat(np.arange(model.nv), model.M_rownnz)
    column = model.M_colind.astype(np.int64)
    tree = tree_of_dof[row]
    start, first, n = block_start[tree], first_dof[tree], dofs[tree]
    every = np.arange(model.nu)
    arrays: dict[str, IndexArray] = {
        "sizes": dofs,
        "first_dof": first_dof,
        "root": model.body_rootid[model.dof_bodyid[first_dof]].astype(np.int64),
        "block_start": block_start,
        "tree_of_dof": tree_of_dof,
        "tree_of_body": model.body_treeid.astype(np.int64),
        "last_dof": _last_dofs(model),
        "entries": np.concatenate(
            (start + (row - first) * n + column - first, start + (column - first) * n + row - first)
        ),
        # MuJoCo before 4 has one force and one control per actuator, and no address arrays.
        "output": np.asarray(getattr(model, "actuator_outadr", every), np.int64),
        "control": np.asarray(getattr(model, "actuator_ctrladr", every), np.int64),
        "contact": np.array(_contact_fields(), np.int64),
    }
    watched = watched_arrays(model)
    return Layout(
        dofs=dofs.astype(np.uint32),
        names=np.arange(len(dofs), dtype=np.uint32),
        velocities=model.nv,
        block_values=int(block_start[-1]),
        joint_ends=2 * model.njnt,
        has_surface_velocities=hasattr(mujoco.MjContact, "surfacevel"),
        arrays=arrays,
        table=make_table(LayoutArrays, arrays),
        model_table=make_table(
            ModelArrays, {name: getattr(model, name) for name in ModelArrays._fields}
        ),
        watched=np.array([(array.ctypes.data, array.nbytes) for array in watched], np.int64),
        seen=np.zeros(sum(array.nbytes for array in watched) + model.neq, np.uint8),
        forward=_forward_stages(model),
    )


def _last_dofs(model: mujoco.MjModel) -> IndexArray:
    last: IndexArray = np.full(model.nbody, -1)
    for body in range(1, model.nbody):  # parents come first
        count = model.body_dofnum[body]
        own = model.body_dofadr[body] + count - 1
        last[body] = own if count else last[model.body_parentid[body]]
    return last


def _forward_stages(model: mujoco.MjModel) -> tuple[list[_Stage], list[_Stage]]:
    """Stages of mj_forward before its constraints, without those that the model does not need."""
    stages = [
        (True, mujoco.mj_kinematics),
        (True, mujoco.mj_comPos),
        (model.ncam or model.nlight, mujoco.mj_camlight),
        (model.ntendon, mujoco.mj_tendon),
        (True, mujoco.mj_makeM),
        (True, mujoco.mj_factorM),
        (True, mujoco.mj_collision),
        (model.nu, mujoco.mj_transmission),
        (model.nsensor, mujoco.mj_sensorPos),
        (True, mujoco.mj_fwdVelocity),
        (model.nsensor, mujoco.mj_sensorVel),
    ]
    forces = [(True, mujoco.mj_fwdActuation), (True, mujoco.mj_fwdAcceleration)]
    before, after = ([stage for needed, stage in part if needed] for part in (stages, forces))
    return before, after


@functools.cache
def _contact_fields() -> ContactFields:
    """Offsets in mjContact, measured on the contacts of a small model."""
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><worldbody><geom size=".1"/><body><freejoint/><geom size=".1"/></body>
        <body pos=".1 0 0"><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""
    )
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    contact = data.contact
    first = contact.dist.ctypes.data
    offsets = []
    for name in ContactFields._fields[:-1]:
        array = getattr(contact, name)
        wanted = np.int32 if name in ("dim", "geom", "exclude") else np.float64
        place = array.ctypes.data - first
        if array.dtype != wanted or place < 0 or array.strides[0] != contact.dist.strides[0]:
            raise TypeError(f"mjContact.{name} has an unsupported type or offset in this MuJoCo")
        offsets.append(place)
    return ContactFields(*offsets, *contact.dist.strides)
