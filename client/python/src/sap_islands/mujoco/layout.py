"""The constant part of a MuJoCo model: its trees, and the addresses of its arrays.

Determined once per model and cached. Values that a caller may change between steps, such as
damping, gains and force ranges, are not cached: every step reads them from the model's memory.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from sap_islands.arrays import UIntArray
from sap_islands.numba_kernels import Flag, Index, IndexArray, Integer, Real, make_table


class ModelArrays(NamedTuple):
    """Arrays of MjModel that compiled functions read."""

    dof_damping: Real
    jnt_stiffness: Real
    tendon_stiffness: Real
    tendon_damping: Real
    tendon_lengthspring: Real
    actuator_damping: Real
    jnt_actfrcrange: Real
    tendon_actfrcrange: Real
    actuator_gainprm: Real
    actuator_biasprm: Real
    actuator_forcerange: Real
    actuator_ctrlrange: Real
    actuator_actrange: Real
    jnt_type: Integer
    jnt_dofadr: Integer
    dof_jntid: Integer
    actuator_trntype: Integer
    actuator_trnid: Integer
    actuator_gaintype: Integer
    actuator_biastype: Integer
    actuator_group: Integer
    actuator_actadr: Integer
    actuator_actnum: Integer
    jnt_actfrclimited: Flag
    jnt_actgravcomp: Flag
    tendon_actfrclimited: Flag
    actuator_forcelimited: Flag
    actuator_ctrllimited: Flag
    actuator_actlimited: Flag
    actuator_actearly: Flag


class StateArrays(NamedTuple):
    """Arrays of MjData, or in some versions of MjModel, that compiled functions read and write."""

    qvel: Real
    qacc_smooth: Real
    qfrc_smooth: Real
    qfrc_actuator: Real
    qfrc_gravcomp: Real
    M: Real
    act: Real
    act_dot: Real
    ctrl: Real
    actuator_force: Real
    actuator_length: Real
    actuator_velocity: Real
    actuator_moment: Real
    ten_length: Real
    ten_velocity: Real
    ten_J: Real
    ten_J_rowadr: Integer
    ten_J_rownnz: Integer
    ten_J_colind: Integer
    moment_rowadr: Integer
    moment_rownnz: Integer
    moment_colind: Integer


class LayoutArrays(NamedTuple):
    """Index arrays of a model.

    Attributes:
        sizes: [T] degrees of freedom of each tree.
        first_dof: [T] first dof of each tree.
        block_start: [T + 1] index of A_t in the array of all blocks.
        tree_of_dof: [nv] tree of each dof.
        tree_of_geom: [ngeom] tree of each geom; -1: fixed to the world.
        entries: [2 nnz] index in the blocks of each entry of MuJoCo's sparse M: those of the lower
            triangle, then those of the upper.
        output: [nu] row of each actuator in actuator_force and actuator_moment; -1: it has several.
        control: [nu] index of each actuator's first control.
        delayed: [nu] 1 where controls act after a delay.
    """

    sizes: Index
    first_dof: Index
    block_start: Index
    tree_of_dof: Index
    tree_of_geom: Index
    entries: Index
    output: Index
    control: Index
    delayed: Index


MODEL = ModelArrays(*range(len(ModelArrays._fields)))
STATE = StateArrays(*range(len(StateArrays._fields)))
LAYOUT = LayoutArrays(*range(len(LayoutArrays._fields)))

PARAMETERS = 10  # length of a row of actuator_gainprm and actuator_biasprm


@dataclass
class Layout:
    """Trees and tables of a model.

    Attributes:
        dofs: [T] degrees of freedom of each tree.
        velocities: nv.
        block_values: Number of values in the blocks of A, sum n_t².
        arrays: The arrays of `table`, which must outlive it.
        model_arrays: Those of `model_table`.
        table: Table of `LayoutArrays`.
        model_table: Table of `ModelArrays`.
        warned: What the caller was warned about.
    """

    dofs: UIntArray
    velocities: int
    block_values: int
    arrays: dict[str, IndexArray]
    model_arrays: dict[str, NDArray[Any]]
    table: IndexArray
    model_table: IndexArray
    warned: set[str] = field(default_factory=set)


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
        arrays = {
            name: getattr(data, name) if hasattr(data, name) else getattr(data.model, name)
            for name in StateArrays._fields
        }
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
    # MuJoCo before 4 has one force and one control per actuator, and no address arrays.
    every = np.arange(len(model.actuator_trntype))
    outputs = np.asarray(getattr(model, "actuator_outnum", np.ones_like(every)))
    arrays: dict[str, IndexArray] = {
        "sizes": dofs,
        "first_dof": first_dof,
        "block_start": block_start,
        "tree_of_dof": tree_of_dof,
        "tree_of_geom": model.body_treeid[model.geom_bodyid].astype(np.int64),
        "entries": np.concatenate(
            (start + (row - first) * n + column - first, start + (column - first) * n + row - first)
        ),
        "output": np.where(
            outputs == 1, np.asarray(getattr(model, "actuator_outadr", every)), -1
        ).astype(np.int64),
        "control": np.asarray(getattr(model, "actuator_ctrladr", every), np.int64),
        "delayed": (np.asarray(getattr(model, "actuator_delay", 0 * every)) > 0).astype(np.int64),
    }
    dampers = np.zeros(len(every))  # MuJoCo before 4 has none in actuators
    model_arrays: dict[str, NDArray[Any]] = {
        name: getattr(model, name, dampers) if name == "actuator_damping" else getattr(model, name)
        for name in ModelArrays._fields
    }
    return Layout(
        dofs=dofs.astype(np.uint32),
        velocities=model.nv,
        block_values=int(block_start[-1]),
        arrays=arrays,
        model_arrays=model_arrays,
        table=make_table(LayoutArrays, arrays),
        model_table=make_table(ModelArrays, model_arrays),
    )
