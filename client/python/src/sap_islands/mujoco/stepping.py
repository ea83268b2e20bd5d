"""From MjModel and MjData to a problem, and from its solution to the next state."""

from __future__ import annotations

import functools
from collections.abc import Collection
from typing import NamedTuple

import mujoco
import numpy as np

from sap_islands.arrays import FloatArray, IntArray
from sap_islands.client import Client
from sap_islands.mujoco.assembly import evaluate_and_count, has_changed, write_constraints
from sap_islands.mujoco.dynamics import Dynamics, generalized_impulse
from sap_islands.mujoco.layout import Layout, layout_of, state_table
from sap_islands.mujoco.material import Material
from sap_islands.mujoco.unsupported_features import check_supported
from sap_islands.numba_kernels import IndexArray
from sap_islands.problem import Contacts, Problem, Regularization, Trees
from sap_islands.session import Session
from sap_islands.solution import Solution
from sap_islands.unsupported_features import JOINT_LIMITS

_DEFAULT_MATERIAL = Material()


class BuiltProblem(NamedTuple):
    """A problem, and what its numbers are in MuJoCo.

    Attributes:
        problem: Its trees are MuJoCo's kinematic trees, its velocities are `qvel`.
        contact: [C_m] index into `data.contact` of the first contacts of the problem; those after
            are joint limits.
        dynamics: A and v*.
    """

    problem: Problem
    contact: IndexArray
    dynamics: Dynamics


def build_problem(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    *,
    material: Material = _DEFAULT_MATERIAL,
    ignore: Collection[str] = (),
) -> BuiltProblem:
    """The contact problem of one time step from the state of `data`.

    Computes positions, velocities, smooth forces and collisions of `data` on the way, as
    `mujoco.mj_forward` does, but nothing of MuJoCo's own constraints.

    Args:
        model: The model. Its integrator and its solver's options do not matter.
        data: The state, with controls and applied forces.
        material: Stiffness, relaxation time and more, where the model's are not wanted.
        ignore: Names of `UNSUPPORTED` to be left out, or "joint limits".

    Raises:
        InvalidArgument: The model has what the service has no constraint for.
    """
    layout, state = layout_of(model), state_table(data)
    tables = (layout.model_table, state, layout.table)
    options = model.opt
    dt, disabled = options.timestep, options.disableflags
    checked_for = (frozenset(ignore), disabled)
    if has_changed(layout.watched, state, layout.seen) or checked_for != layout.checked_for:
        layout.checked_for = None
        check_supported(model, data, ignore)
        layout.checked_for = checked_for
    _forward(model, data, layout)
    distances = data.contact.dist
    blocks, v_star = np.empty(layout.block_values), np.empty(layout.velocities)
    selected = np.empty(len(distances), np.int64)
    near_limits = np.empty(layout.joint_ends, np.int32)
    count, limits, values = evaluate_and_count(
        *tables,
        dt,
        disabled,
        options.disableactuator,
        JOINT_LIMITS not in ignore,
        distances,
        selected,
        near_limits,
        blocks,
        v_star,
    )
    selected, near_limits = selected[:count], near_limits[:limits]
    trees, parameters = np.empty((2, count + limits), np.int32), np.empty((4, count + limits))
    jacobian = np.empty(values)
    write_constraints(
        *tables, dt, disabled, distances, selected, near_limits, trees, jacobian, parameters
    )
    problem = Problem(
        time_step=dt,
        trees=Trees.from_wire_arrays(
            dofs=layout.dofs,
            dynamics_matrix=blocks,
            free_motion_velocity=v_star,
            tree_id=layout.names,
        ),
        contacts=_make_contacts(trees, jacobian, parameters, count, material),
        regularization=Regularization(material.beta, material.sigma),
    )
    if layout.has_surface_velocities and model.flg_surfacevel:
        moving = np.zeros((count + limits, 3))
        moving[:count, :2] = data.contact.surfacevel[selected, :2]
        problem.contacts.surface_velocity = moving
    return BuiltProblem(problem, selected, Dynamics(blocks, v_star))


def _make_contacts(
    trees: IntArray,
    jacobian: FloatArray,
    parameters: FloatArray,
    count: int,
    material: Material,
) -> Contacts:
    """Contacts of which the first are of the given material; those after are limits."""
    signed_distance, stiffness, relaxation_time, friction = parameters
    if material is not _DEFAULT_MATERIAL:
        for given, derived in (
            (material.stiffness, stiffness),
            (material.relaxation_time, relaxation_time),
            (material.friction, friction),
        ):
            if given is not None:
                derived[:count] = given
    tree_a, tree_b = trees
    return Contacts.from_wire_arrays(
        tree_a=tree_a,
        tree_b=tree_b,
        jacobian=jacobian,
        signed_distance=signed_distance,
        stiffness=stiffness,
        relaxation_time=relaxation_time,
        friction=friction,
    )


def step(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    solver: Session | Client,
    *,
    material: Material = _DEFAULT_MATERIAL,
    ignore: Collection[str] = (),
) -> tuple[BuiltProblem, Solution]:
    """Takes `data` one time step further, as `mujoco.mj_step` does, with the service's contacts.

    `qacc` and `qfrc_constraint` of `data` are those of this step; its `efc_*` arrays are empty.

    Args:
        model: The model, which no other thread may use at the same time.
        data: The state, which is changed.
        solver: A session, which starts each step from the one before, or a client.
        material: As for `build_problem`.
        ignore: As for `build_problem`.

    Returns:
        The problem and its solution. Impulse i < len(contact) is that of `data.contact` at the
        beginning of the step, along (t1, t2, n) of its frame, which has the normal first.
    """
    built = build_problem(model, data, material=material, ignore=ignore)
    if isinstance(solver, Session):
        solution = solver.step(built.problem)
    else:
        solution = solver.solve(built.problem)
    velocity = solution.velocity
    layout = layout_of(model)
    dt = model.opt.timestep
    data.qacc[:] = (velocity - data.qvel) / dt
    impulse = generalized_impulse(layout.table, *built.dynamics, velocity)
    data.qfrc_constraint[:] = impulse / dt
    if model.nsensor:
        mujoco.mj_sensorAcc(model, data)
    _advance(model, data)
    data.qvel[:] = velocity
    return built, solution


def find_contacts_within(model: mujoco.MjModel, distance: float) -> None:
    """Lets MuJoCo report contacts before geoms touch, which changes no force of its own.

    Without it a contact that slides fast is lost now and then: the convex approximation of friction
    keeps a body that slides with v a little above the ground, by μ (δt + τ_d) v.

    Args:
        model: Whose `geom_gap` is raised, and that of its pairs.
        distance: At which contacts are reported [m]; a few millimeters will do.
    """
    model.geom_gap += distance
    model.pair_gap += distance
    if _gap_is_within_margin():
        model.geom_margin += distance
        model.pair_margin += distance


@functools.cache
def _gap_is_within_margin() -> bool:
    """Whether forces begin at margin - gap, as in MuJoCo 3; later they do at the margin."""
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><worldbody><geom size=".1" margin=".1" gap=".1"/>
        <body pos=".25 0 0"><freejoint/><geom size=".1" margin=".1" gap=".1"/></body>
        </worldbody></mujoco>"""
    )
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return bool(data.contact.includemargin[0] < data.contact.dist[0])


def _forward(model: mujoco.MjModel, data: mujoco.MjData, layout: Layout) -> None:
    """What mj_forward computes before its constraints."""
    before, after = layout.forward
    for stage in before:
        stage(model, data)
    control = mujoco.get_mjcb_control()
    if control is not None:
        control(model, data)
    for stage in after:
        stage(model, data)


def _advance(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Moves activations, velocities and positions by one step of `qacc`, and the time."""
    flags = model.opt.disableflags
    # Damping is in the accelerations already.
    model.opt.disableflags = flags | int(mujoco.mjtDisableBit.mjDSBL_EULERDAMP)
    try:
        mujoco.mj_Euler(model, data)
    finally:
        model.opt.disableflags = flags
