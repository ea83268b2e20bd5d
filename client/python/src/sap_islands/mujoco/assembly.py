"""Builds the problem of a state whose forces and constraints MuJoCo has computed."""

from __future__ import annotations

import functools
from typing import Any, Literal, NamedTuple, TypeAlias

import mujoco
import numpy as np
from numpy.typing import NDArray

from sap_islands._library import c_structs
from sap_islands._library.declarations import array_names, struct_type
from sap_islands.arrays import FloatArray, IntArray
from sap_islands.mujoco.material import Material
from sap_islands.mujoco.native_calls import Buffers, fill_buffers
from sap_islands.problem import (
    ConstraintRows,
    Contacts,
    HuntCrossley,
    Problem,
    Regularization,
    RegularizationRule,
    Trees,
)

Law: TypeAlias = Literal["sap", "coulomb", "mujoco"]

_DEFAULT_SIGMA = 1e-3


class Dynamics(NamedTuple):
    """A and v* of one step.

    Attributes:
        blocks: [sum n_t²] A_t of each tree, row-major, concatenated.
        v_star: [nv] velocity at the end of the step without contact [m/s, rad/s].
        coupled: [2, K] trees between which A has blocks.
        coupling: These blocks, concatenated.
    """

    blocks: FloatArray
    v_star: FloatArray
    coupled: IntArray
    coupling: FloatArray


class BuiltProblem(NamedTuple):
    """A problem, and how it maps to the MuJoCo model.

    Attributes:
        problem: Its trees are MuJoCo's kinematic trees, of which large ones with flexes are taken
            apart, and its velocities are `qvel`.
        law: Law of the problem.
        contact: [C] index in `data.contact` of each contact of the problem.
        row: [R_m] index in `data.efc_*` of row i < R_m of the problem; the remaining rows are
            actuators.
        joint: [R - R_m] joint whose actuators each of these has; -1: it has one actuator or tendon.
        dynamics: A and v*.
        buffers: All arrays.
    """

    problem: Problem
    law: Law
    contact: IntArray
    row: IntArray
    joint: IntArray
    dynamics: Dynamics
    buffers: Buffers


class _Array(NamedTuple):
    """An array of a problem: its group and name, its buffer and its numbers per entry."""

    group: str
    name: str
    buffer: int
    columns: int


def assemble_problem(
    model: mujoco.MjModel, data: mujoco.MjData, law: Law, material: Material
) -> BuiltProblem:
    """Builds the problem of a state whose forces and constraints are computed."""
    known = _arrays()
    buffers = fill_buffers(model, data, law != "mujoco", _struct_of(material), len(known))
    groups: dict[str, dict[str, NDArray[Any]]] = {"trees": {}, "contacts": {}, "rows": {}}
    for number, begin, length in buffers.arrays[: buffers.problem.array_count].tolist():
        group, name, buffer, columns = known[number]
        array = buffers[buffer][begin : begin + length]
        groups[group][name] = array if columns == 1 else array.reshape(-1, columns)
    trees = Trees.from_wire_arrays(**groups["trees"])
    # The answer depends on the state alone, not on what a session solved before.
    if material.rule == RegularizationRule.LOAD_PATH:
        trees.initial_velocity = data.qvel.copy()
    contacts, rows = groups["contacts"], groups["rows"]
    problem = Problem(
        time_step=model.opt.timestep,
        trees=trees,
        contacts=Contacts.from_wire_arrays(**contacts) if contacts else Contacts.none(),
        rows=ConstraintRows.from_wire_arrays(**rows) if rows else ConstraintRows.none(),
        regularization=Regularization(
            beta=material.beta,
            sigma=material.sigma,
            rule=material.rule,
            load_reference_speed=material.load_reference_speed,
            reference_time_step=material.reference_time_step,
        ),
    )
    layout, integers = buffers.layout, buffers.integers
    joint = layout.joint
    coupled = integers[layout.coupled : layout.coupled + 2 * layout.couplings]
    return BuiltProblem(
        problem,
        law,
        integers[layout.contact : layout.contact + layout.contacts],
        integers[: layout.contact],
        integers[joint : joint + layout.rows - layout.simulator_rows],
        Dynamics(
            trees.dynamics_matrix,
            trees.free_motion_velocity,
            coupled.reshape(2, -1),
            trees.coupling_block,
        ),
        buffers,
    )


def _struct_of(material: Material) -> Any:
    """The numbers of a material that the C library gives contacts and rows."""
    sigma = _DEFAULT_SIGMA if material.sigma is None else material.sigma
    struct = struct_type("sap_mujoco_material")(sigma=sigma)
    for name in struct.pointees:
        given = getattr(material, name)
        if given is not None:
            struct.point(name, given)
    return struct


@functools.cache
def _arrays() -> list[_Array]:
    """The arrays of a problem in the order in which the C library numbers them."""
    buffers = {np.float64: 1, np.uint32: 2, np.int32: 3}  # of `Buffers`
    found = []
    for group in c_structs.GROUPS:
        fields = group._fields | HuntCrossley._fields
        for struct in c_structs.structs_of(group):
            types = dict(struct_type(struct)._fields_)
            for name in array_names(struct):
                buffer = buffers[types[name].dtype]
                found.append(_Array(group.FIELD, name, buffer, fields[name].columns))
    return found
