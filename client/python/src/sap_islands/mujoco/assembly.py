"""Builds the problem of a state whose forces and constraints MuJoCo has computed."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

import mujoco
import numpy as np
from numpy.typing import NDArray

from sap_islands._arrays.bodies import Trees
from sap_islands._arrays.constraint_rows import ConstraintRows
from sap_islands._arrays.contacts import Contacts
from sap_islands._embedded.c_library import pointer_to
from sap_islands.arrays import FloatArray, IntArray, UIntArray
from sap_islands.errors import InvalidArgument
from sap_islands.mujoco.material import Material
from sap_islands.mujoco.native_calls import Layout, load_loops
from sap_islands.problem import Problem, Regularization, RegularizationRule
from sap_islands.solution import Solution

Law: TypeAlias = Literal["sap", "mujoco"]

_DEFAULT_SIGMA = 1e-3


class Dynamics(NamedTuple):
    """A and v* of one step.

    Attributes:
        blocks: [sum n_t²] A_t of each tree, row-major, concatenated.
        v_star: [nv] velocity at the end of the step without contact [m/s, rad/s].
    """

    blocks: FloatArray
    v_star: FloatArray


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


class BuiltProblem(NamedTuple):
    """A problem, and how it maps to the MuJoCo model.

    Attributes:
        problem: Its trees are MuJoCo's kinematic trees, and its velocities are `qvel`.
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


def assemble_problem(
    model: mujoco.MjModel, data: mujoco.MjData, law: Law, material: Material
) -> BuiltProblem:
    """Builds the problem of a state whose forces and constraints are computed."""
    as_sap = law == "sap"
    sigma = _DEFAULT_SIGMA if material.sigma is None else material.sigma
    buffers = _fill_buffers(model, data, as_sap, sigma if as_sap else 0.0)
    layout, doubles, _, integers = buffers
    v_star = layout.v_star
    guess = layout.guess
    dynamics = Dynamics(doubles[:v_star], doubles[v_star:guess])
    # The answer depends on the state alone, not on what a session solved before.
    velocities = {"guess_velocity": doubles[guess : layout.laws]}
    if material.rule == RegularizationRule.LOAD_PATH:
        velocities["initial_velocity"] = data.qvel.copy()
    problem = Problem(
        time_step=model.opt.timestep,
        trees=Trees.from_wire_arrays(
            dofs=model.tree_dofnum.view(np.uint32),
            dynamics_matrix=dynamics.blocks,
            free_motion_velocity=dynamics.v_star,
            **velocities,
        ),
        contacts=_make_contacts(buffers, as_sap, material),
        rows=_make_rows(buffers, with_slip=as_sap and sigma > 0.0),
        regularization=Regularization(
            beta=material.beta,
            sigma=material.sigma,
            rule=material.rule,
            load_reference_speed=material.load_reference_speed,
        ),
    )
    joint = layout.joint
    return BuiltProblem(
        problem,
        law,
        integers[layout.contact : layout.trees],
        integers[: layout.contact],
        integers[joint : joint + layout.rows - layout.simulator_rows],
        dynamics,
        buffers,
    )


def store_forces(
    model: mujoco.MjModel, data: mujoco.MjData, built: BuiltProblem, solution: Solution
) -> None:
    """Writes constraint forces, and the forces of implicit actuators, to `data`.

    Raises:
        InvalidArgument: The solution is not one of this problem, or lacks impulses.
    """
    layout, doubles, _, integers = built.buffers
    values = np.concatenate(
        (
            solution.velocity,
            solution.row_impulse,
            solution.impulse.ravel(),
            solution.angular_impulse.ravel(),
        )
    )
    numbers = model.nv + layout.rows + 3 * (layout.contacts + layout.turning)
    if len(values) != numbers:
        message = f"the solution has {len(values)} velocities and impulses; {numbers} are needed"
        raise InvalidArgument(message, "solution")
    loops = load_loops()
    loops.store_forces(
        *loops.state(model, data, built.law == "sap"),
        layout,
        pointer_to(doubles),
        pointer_to(integers),
        pointer_to(values),
    )
    if data.nefc:
        mujoco.mj_mulJacTVec(model, data, data.qfrc_constraint, data.efc_force)
    else:
        data.qfrc_constraint[:] = 0.0


def _fill_buffers(
    model: mujoco.MjModel, data: mujoco.MjData, as_sap: bool, sigma: float
) -> Buffers:
    loops, layout = load_loops(), Layout()
    state = loops.state(model, data, as_sap)
    loops.measure(*state, layout)
    doubles = np.empty(layout.doubles)
    if data.nefc:
        mujoco.mj_mulJacVec(model, data, doubles[layout.velocities :], data.qvel)
    unsigned = np.empty(layout.unsigned_integers, np.uint32)
    integers = np.empty(layout.integers, np.int32)
    loops.build(
        *state,
        sigma,
        layout,
        pointer_to(doubles),
        pointer_to(unsigned),
        pointer_to(integers),
    )
    return Buffers(layout, doubles, unsigned, integers)


def _make_rows(buffers: Buffers, with_slip: bool) -> ConstraintRows:
    """The rows of MuJoCo, then those of actuators and tendons."""
    layout, doubles, unsigned, _ = buffers
    rows, capacity = layout.rows, layout.row_capacity
    if not rows:
        return ConstraintRows.none()
    coefficient, non_zeros = layout.coefficient, layout.non_zeros
    laws = doubles[layout.laws : coefficient].reshape(6, capacity)[:, :rows]
    R, v_hat, lower, upper, offset, slip = laws
    named = {
        "entries": unsigned[:rows],
        "velocity_index": unsigned[capacity : capacity + non_zeros],
        "coefficient": doubles[coefficient : coefficient + non_zeros],
        "regularization": R,
        "target_velocity": v_hat,
        "force_lower": lower,
        "force_upper": upper,
    }
    if rows > layout.simulator_rows:
        named["force_offset"] = offset
    if with_slip:
        named["slip_parameter"] = slip
    return ConstraintRows.from_wire_arrays(**named)


def _make_contacts(buffers: Buffers, as_sap: bool, material: Material) -> Contacts:
    layout, doubles, _, integers = buffers
    count = layout.contacts
    if not count:
        return Contacts.none()
    scalars, rolling, target = layout.scalars, layout.rolling, layout.target
    # Coefficients of friction along t1, t2 and about n, R_t, R_n, and the physical law.
    scalar = doubles[scalars:rolling].reshape(8, count)
    friction = scalar[0]
    v_hat = doubles[target : target + 3 * count].reshape(count, 3)
    trees = layout.trees
    named: dict[str, NDArray[Any]] = {
        "tree_a": integers[trees : trees + count],
        "tree_b": integers[trees + count : trees + 2 * count],
        "jacobian": doubles[layout.jacobian : layout.angular],
        "friction": friction,
    }
    if as_sap and (material.stiffness is not None or material.relaxation_time is not None):
        named.update(_physical_law(scalar[5:], v_hat, material))
    else:
        named["relaxation_time"] = np.zeros(count)
        named["target_velocity"] = v_hat
        named["regularization_n"] = scalar[4]
        if not as_sap:
            named["regularization_t"] = scalar[3]
    if material.friction is not None and as_sap:
        scalar[:2] = material.friction
    elif layout.two_frictions:
        named["friction_2"] = scalar[1]
    if layout.turning:
        named["torsional_friction"] = scalar[2]
        named["rolling_friction"] = doubles[rolling:target].reshape(count, 2)
        named["angular_jacobian"] = doubles[layout.angular : scalars]
        named["target_angular_velocity"] = doubles[layout.target_angular : layout.servos].reshape(
            layout.turning, 3
        )
    return Contacts.from_wire_arrays(**named)


def _physical_law(
    physical: FloatArray, v_hat: FloatArray, material: Material
) -> dict[str, FloatArray]:
    """The normal force by stiffness and relaxation time; MuJoCo's where the material has none."""
    named = dict(zip(("signed_distance", "stiffness", "relaxation_time"), physical, strict=True))
    for name in ("stiffness", "relaxation_time"):
        given = getattr(material, name)
        if given is not None:
            named[name] = np.full(len(v_hat), float(given))
    v_hat[:, 2] = 0.0
    if v_hat.any():
        named["surface_velocity"] = -v_hat
    return named
