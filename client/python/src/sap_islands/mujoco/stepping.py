"""Builds the problem of an MjModel and MjData, and advances the state with its solution."""

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
    """A problem, and how it maps to the MuJoCo model.

    Attributes:
        problem: Its trees are MuJoCo's kinematic trees, and its velocities are `qvel`.
        contact: [C_m] for contact i < C_m of the problem, its index in `data.contact`; the
            remaining contacts are joint limits.
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
    """Builds the contact problem of one time step from the state of `data`.

    Computes positions, velocities, smooth forces and collisions in `data` as `mujoco.mj_forward`
    does, but none of MuJoCo's constraints.

    Args:
        model: The model. Its integrator and solver options have no effect.
        data: The state, with controls and applied forces.
        material: Contact parameters that replace those of the model.
        ignore: Keys of `UNSUPPORTED` to ignore; "joint limits" leaves joint limits out.

    Raises:
        InvalidArgument: The model has an unsupported feature that `ignore` does not name, or
            `ignore` has an unknown name.
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
    """Makes the contacts; `material` applies to the first `count`, the others are joint limits."""
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
    """Advances `data` by one time step as `mujoco.mj_step` does, with contacts by the service.

    Sets `data.qacc` and `data.qfrc_constraint` for this step; the `efc_*` arrays are empty, so
    that MuJoCo's touch, force, torque and contact sensors do not include contact forces. The step
    is taken even if an island was not solved; check `Solution.solved`.

    Args:
        model: The model. No other thread may use it during the call, which changes its flags.
        data: The state; changed.
        solver: A session, which warm-starts each step from the last one, or a client.
        material: As for `build_problem`.
        ignore: As for `build_problem`.

    Returns:
        The problem and its solution. Impulse i < len(contact) is that of contact[i] in
        `data.contact`, in the order (t1, t2, n); MuJoCo's frame has the rows n, t1, t2 [N s].

    Raises:
        SapError: The problem could not be built or solved; the state is not advanced.
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
    """Makes MuJoCo report contacts before geoms touch. MuJoCo's own forces do not change.

    Without it, a fast sliding body loses contact in some steps: the convex approximation of
    friction lets a body that slides with speed v float by μ (δt + τ_d) v.

    Args:
        model: The model; `geom_gap` and `pair_gap` are increased.
        distance: Distance at which contacts are reported [m]; a few millimeters are enough.
    """
    model.geom_gap += distance
    model.pair_gap += distance
    if _gap_is_within_margin():
        model.geom_margin += distance
        model.pair_margin += distance


@functools.cache
def _gap_is_within_margin() -> bool:
    """Whether forces begin at distance margin - gap, as in MuJoCo 3, not at margin as later."""
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><worldbody><geom size=".1" margin=".1" gap=".1"/>
        <body pos=".25 0 0"><freejoint/><geom size=".1" margin=".1" gap=".1"/></body>
        </worldbody></mujoco>"""
    )
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return bool(data.contact.includemargin[0] < data.contact.dist[0])


def _forward(model: mujoco.MjModel, data: mujoco.MjData, layout: Layout) -> None:
    """Runs the stages of mj_forward that precede its constraints."""
    before, after = layout.forward
    for stage in before:
        stage(model, data)
    control = mujoco.get_mjcb_control()
    if control is not None:
        control(model, data)
    for stage in after:
        stage(model, data)


def _advance(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Integrates activations, velocities, positions and time over one step with `qacc`."""
    flags = model.opt.disableflags
    # mj_Euler must not add implicit damping: `qacc` includes it already.
    model.opt.disableflags = flags | int(mujoco.mjtDisableBit.mjDSBL_EULERDAMP)
    try:
        mujoco.mj_Euler(model, data)
    finally:
        model.opt.disableflags = flags
