"""Builds the problem of a state whose forces and constraints MuJoCo has computed."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import mujoco

from sap_islands.arrays import FloatArray, IntArray
from sap_islands.mujoco.constraint_rows import make_rows
from sap_islands.mujoco.contacts import make_contacts
from sap_islands.mujoco.material import Material
from sap_islands.mujoco.native_calls import Buffers, fill_buffers
from sap_islands.problem import Problem, Regularization, RegularizationRule, Trees

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


def assemble_problem(
    model: mujoco.MjModel, data: mujoco.MjData, law: Law, material: Material
) -> BuiltProblem:
    """Builds the problem of a state whose forces and constraints are computed."""
    as_sap = law != "mujoco"
    sigma = _DEFAULT_SIGMA if material.sigma is None else material.sigma
    buffers = fill_buffers(model, data, as_sap, sigma if as_sap else 0.0)
    layout, doubles, unsigned, integers = buffers
    v_star = layout.v_star
    guess = layout.guess
    coupled = integers[layout.coupled : layout.coupled + 2 * layout.couplings]
    dynamics = Dynamics(
        doubles[:v_star], doubles[v_star:guess], coupled.reshape(2, -1), doubles[layout.coupling :]
    )
    # The answer depends on the state alone, not on what a session solved before.
    velocities = {"guess_velocity": doubles[guess : layout.laws]}
    if material.rule == RegularizationRule.LOAD_PATH:
        velocities["initial_velocity"] = data.qvel.copy()
    problem = Problem(
        time_step=model.opt.timestep,
        trees=Trees.from_wire_arrays(
            dofs=unsigned[layout.sizes : layout.sizes + layout.tree_count],
            dynamics_matrix=dynamics.blocks,
            free_motion_velocity=dynamics.v_star,
            coupled_a=dynamics.coupled[0],
            coupled_b=dynamics.coupled[1],
            coupling_block=dynamics.coupling,
            **velocities,
        ),
        contacts=make_contacts(buffers, as_sap, material),
        rows=make_rows(buffers, with_slip=as_sap and sigma > 0.0),
        regularization=Regularization(
            beta=material.beta,
            sigma=material.sigma,
            rule=material.rule,
            load_reference_speed=material.load_reference_speed,
            reference_time_step=material.reference_time_step,
        ),
    )
    joint = layout.joint
    return BuiltProblem(
        problem,
        law,
        integers[layout.contact : layout.contact + layout.contacts],
        integers[: layout.contact],
        integers[joint : joint + layout.rows - layout.simulator_rows],
        dynamics,
        buffers,
    )
