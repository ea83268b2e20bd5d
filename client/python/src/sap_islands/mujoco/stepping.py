"""Builds the problem of an MjModel and MjData, and advances the state with its solution."""

from __future__ import annotations

import functools
from typing import Literal, NamedTuple, TypeAlias, get_args

import mujoco
import numpy as np

from sap_islands.arrays import FloatArray
from sap_islands.bodies import Trees
from sap_islands.client import Client
from sap_islands.constraint_rows import ConstraintRows
from sap_islands.contacts import Contacts
from sap_islands.errors import InvalidArgument
from sap_islands.mujoco import constraints, servos
from sap_islands.mujoco.constraints import Assembled, ContactArrays, RowArrays
from sap_islands.mujoco.differences import (
    refuse_flexes,
    uses_implicit_integrator,
    warn_of_differences,
)
from sap_islands.mujoco.dynamics import Dynamics, evaluate
from sap_islands.mujoco.layout import Layout, layout_of, state_table
from sap_islands.mujoco.material import Material
from sap_islands.mujoco.servos import Servos
from sap_islands.numba_kernels import IndexArray
from sap_islands.options import Options
from sap_islands.problem import Problem, Regularization
from sap_islands.session import Session
from sap_islands.solution import Solution
from sap_islands.unsolved import OnUnsolved, check_on_unsolved, report_unsolved

Law: TypeAlias = Literal["sap", "mujoco"]
_LAWS = get_args(Law)

DEFAULT_MATERIAL = Material()
_DEFAULT_SIGMA = 1e-3
_CONVERGED = Options(relative_tolerance=1e-10)
_IN_GAP = 1  # `exclude` of a contact beyond its margin
_FLAGS, _ENABLE = mujoco.mjtDisableBit, mujoco.mjtEnableBit


class BuiltProblem(NamedTuple):
    """A problem, and how it maps to the MuJoCo model.

    Attributes:
        problem: Its trees are MuJoCo's kinematic trees, and its velocities are `qvel`.
        law: Law of the problem.
        contact: [C] index in `data.contact` of each contact of the problem.
        row: [R_m] index in `data.efc_*` of row i < R_m of the problem; the remaining rows are
            actuators.
        dynamics: A and v*.
        servos: The implicit actuators.
        cone: [5, C] coefficients of friction along t1, t2, and about n, t1, t2.
        made: Constraints as MuJoCo assembled them; valid until the next step of `data`.
    """

    problem: Problem
    law: Law
    contact: IndexArray
    row: IndexArray
    dynamics: Dynamics
    servos: Servos
    cone: FloatArray
    made: Assembled


def build_problem(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    *,
    law: Law = "sap",
    material: Material = DEFAULT_MATERIAL,
) -> BuiltProblem:
    """Builds the problem of one time step from the state of `data`.

    Computes positions, velocities, smooth forces, collisions and constraints in `data` as
    `mujoco.mj_forward` does, and does not solve them.

    Args:
        model: The model; not changed.
        data: The state, with controls and applied forces.
        law: "sap" or "mujoco"; see `sap_islands.mujoco`.
        material: Contact parameters that replace those of the model under law="sap".

    Raises:
        InvalidArgument: The model has flexes, or `law` is unknown.
    """
    if law not in _LAWS:
        raise InvalidArgument(f"law is {law!r}; it must be 'sap' or 'mujoco'", "law")
    refuse_flexes(model)
    warn_of_differences(model, layout_of(model))
    _forward(model, data, with_gap=law == "sap")
    return assemble_problem(model, data, law, material)


def assemble_problem(
    model: mujoco.MjModel, data: mujoco.MjData, law: Law, material: Material
) -> BuiltProblem:
    """Builds the problem of a state whose forces and constraints are computed."""
    layout, as_sap = layout_of(model), law == "sap"
    dynamics, motors = _evaluate(model, data, layout, as_sap)
    made = constraints.assembled(model, data)
    row, contact = np.empty(data.nefc, np.int64), np.empty(data.ncon, np.int64)
    counts = constraints.count(made, layout.table, as_sap, row, contact)
    row, contact = row[: counts[0]], contact[: counts[2]]
    dt = model.opt.timestep
    sigma = _DEFAULT_SIGMA if material.sigma is None else material.sigma
    rows = _make_rows(made, row, counts[1], motors, dt, sigma if as_sap else 0.0)
    arrays = _new_contact_arrays(*counts[2:])
    if len(contact):
        constraints.write_contacts(made, layout.table, contact, dt, as_sap, arrays)
    if material.friction is not None and as_sap:
        arrays.friction[:2] = material.friction
    problem = Problem(
        time_step=dt,
        trees=Trees.from_wire_arrays(
            dofs=layout.dofs,
            dynamics_matrix=dynamics.blocks,
            free_motion_velocity=dynamics.v_star,
            # The answer depends on the state alone, not on what a session solved before.
            guess_velocity=data.qvel.copy(),
        ),
        contacts=_make_contacts(arrays, as_sap, material),
        rows=rows,
        regularization=Regularization(material.beta, material.sigma),
    )
    return BuiltProblem(problem, law, contact, row, dynamics, motors, arrays.friction, made)


def step(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    solver: Session | Client,
    *,
    law: Law = "sap",
    material: Material = DEFAULT_MATERIAL,
    options: Options | None = None,
    on_unsolved: OnUnsolved = "warn",
) -> tuple[BuiltProblem, Solution]:
    """Advances `data` by one time step as `mujoco.mj_step` does, constraints by the service.

    Args:
        model: The model; not changed, so that threads may share it.
        data: The state; changed.
        solver: A session or a client.
        law: As for `build_problem`.
        material: As for `build_problem`.
        options: Options of the solve; None: those of the session, or the default ones, and under
            law="mujoco" a relative tolerance of 1e-10.
        on_unsolved: What to do if an island is not solved: "raise" `Unsolved` and leave the state
            as it is, "warn" with `UnsolvedWarning` and take the step with the best iterate, or
            "ignore".

    Returns:
        The problem and its solution. Impulse i is that of contact[i] in `data.contact`, in the
        order (t1, t2, n); MuJoCo's frame has the rows n, t1, t2 [N s].

    Raises:
        SapError: The problem could not be built or solved; the state is not advanced.
    """
    check_on_unsolved(on_unsolved)
    built = build_problem(model, data, law=law, material=material)
    options = options_of(law, options)
    if isinstance(solver, Session):
        solution = solver.step(built.problem, options)
    else:
        solution = solver.solve(built.problem, options)
    report_unsolved(solution, on_unsolved, data.time)
    apply(model, data, built, solution)
    return built, solution


def options_of(law: Law, options: Options | None) -> Options | None:
    """The options of a solve: those given, or the default ones of the law."""
    return _CONVERGED if options is None and law == "mujoco" else options


def apply(
    model: mujoco.MjModel, data: mujoco.MjData, built: BuiltProblem, solution: Solution
) -> None:
    """Advances a state by one time step with the solution of its problem.

    `build_problem`, a solve of any kind (batches, sessions with several steps in flight, asyncio)
    and this function are together a `step`. An unsolved island is not reported here: see
    `Solution.solved`.

    Args:
        model: The model; not changed.
        data: The state from which `built` was built, unchanged since; changed.
        built: The problem.
        solution: Its solution, with the velocity and all impulses.
    """
    dt, velocity = model.opt.timestep, solution.velocity
    data.qacc[:] = (velocity - data.qvel) / dt
    _store_forces(model, data, built, solution)
    if hasattr(data, "flg_rnepost"):  # cfrc_ext and what depends on it are those of the last step
        data.flg_rnepost = 0
    mujoco.mj_sensorAcc(model, data)
    mujoco.mj_checkAcc(model, data)
    move(model, data, built.law, velocity)


def move(model: mujoco.MjModel, data: mujoco.MjData, law: Law, velocity: FloatArray) -> None:
    """Integrates activations, velocities and positions of a state whose forces are stored.

    Args:
        model: The model.
        data: The state; changed.
        law: Law of the problem that was solved.
        velocity: [nv] its solution; under law="mujoco" only `qacc` and the forces count.
    """
    dt = model.opt.timestep
    if law == "mujoco":
        if uses_implicit_integrator(model):
            mujoco.mj_implicit(model, data)
        else:
            mujoco.mj_Euler(model, data)
        return
    # mj_Euler advances activations and time, too, but adds its own implicit damping to the motion.
    position = data.qpos.copy()
    mujoco.mj_Euler(model, data)
    if model.opt.enableflags & int(_ENABLE.mjENBL_SLEEP):
        is_awake = data.tree_asleep[model.dof_treeid] < 0
        velocity = np.where(is_awake, velocity, data.qvel)
    data.qpos[:], data.qvel[:] = position, velocity
    mujoco.mj_integratePos(model, data.qpos, data.qvel, dt)


def find_contacts_within(model: mujoco.MjModel, distance: float) -> None:
    """Makes MuJoCo report contacts before geoms touch. MuJoCo's own forces do not change.

    Without it, a fast sliding body loses contact in some steps: the convex approximation of
    friction lets a body that slides with speed v float by μ (δt + τ_d) v. Only law="sap" uses these
    contacts.

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


def _forward(model: mujoco.MjModel, data: mujoco.MjData, with_gap: bool) -> None:
    """Runs the stages of mj_step that precede its constraint solver.

    Args:
        model: The model.
        data: The state.
        with_gap: Whether contacts in the gap, beyond their margin, have constraints.
    """
    has_energy = model.opt.enableflags & int(_ENABLE.mjENBL_ENERGY)
    mujoco.mj_checkPos(model, data)
    mujoco.mj_checkVel(model, data)
    compute_positions(model, data, with_gap)
    mujoco.mj_sensorPos(model, data)
    if has_energy:
        mujoco.mj_energyPos(model, data)
    else:
        data.energy[:] = 0.0
    mujoco.mj_fwdVelocity(model, data)
    mujoco.mj_sensorVel(model, data)
    if has_energy:
        mujoco.mj_energyVel(model, data)
    compute_forces(model, data)


def compute_positions(model: mujoco.MjModel, data: mujoco.MjData, with_gap: bool) -> None:
    """What depends on the positions alone: kinematics, M, contacts, constraints.

    For `with_gap` see `_forward`.
    """
    mujoco.mj_fwdPosition(model, data)
    exclude = data.contact.exclude
    in_gap = exclude == _IN_GAP
    if with_gap and in_gap.any():
        exclude[in_gap] = 0
        make_constraints(model, data)


def make_constraints(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Makes the constraints anew after `data.contact` was changed."""
    mujoco.mj_makeConstraint(model, data)
    mujoco.mj_island(model, data)
    mujoco.mj_transmission(model, data)  # adhesion reads the rows of contacts


def compute_forces(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Controls and smooth forces of a state whose velocities are computed."""
    control = mujoco.get_mjcb_control()
    if control is not None and not model.opt.disableflags & int(_FLAGS.mjDSBL_ACTUATION):
        control(model, data)
    mujoco.mj_fwdActuation(model, data)
    mujoco.mj_fwdAcceleration(model, data)


def _evaluate(
    model: mujoco.MjModel, data: mujoco.MjData, layout: Layout, as_sap: bool
) -> tuple[Dynamics, Servos]:
    blocks, v_star = np.empty(layout.block_values), np.empty(layout.velocities)
    actuators = len(model.actuator_trntype)
    implicit = servos.new_servos(
        actuators,
        2 * actuators + model.njnt + model.ntendon,
        2 * len(data.actuator_moment) + model.njnt + len(data.ten_J),
    )
    evaluate(
        layout.model_table,
        state_table(data),
        layout.table,
        model.opt.timestep,
        model.opt.disableflags,
        model.opt.disableactuator,
        as_sap,
        blocks,
        v_star,
        implicit,
    )
    return Dynamics(blocks, v_star), implicit


def _make_rows(
    made: Assembled, row: IndexArray, non_zeros: int, motors: Servos, dt: float, sigma: float
) -> ConstraintRows:
    """The selected rows of MuJoCo, then the rows of actuators."""
    own = int(motors.rows[0])
    count = len(row) + own
    if not count:
        return ConstraintRows.none()
    servo_entries = motors.entries[:own]
    more = int(servo_entries.sum())
    arrays = RowArrays(
        np.empty(count, np.uint32),
        np.empty(non_zeros + more, np.uint32),
        np.empty(non_zeros + more),
        *np.empty((6, count)),
    )
    constraints.write_rows(made, row, dt, sigma, arrays)
    if own:
        at = slice(len(row), None)
        arrays.entries[at] = servo_entries
        arrays.velocity_index[non_zeros:] = motors.column[:more]
        arrays.coefficient[non_zeros:] = motors.value[:more]
        arrays.regularization[at], arrays.force_offset[at] = motors.law[:2, :own]
        arrays.force_lower[at], arrays.force_upper[at] = motors.law[2:, :own]
        arrays.target_velocity[at] = arrays.slip_parameter[at] = 0.0
    named = arrays._asdict()
    if not own:
        del named["force_offset"]
    if sigma == 0.0:
        del named["slip_parameter"]
    return ConstraintRows.from_wire_arrays(**named)


def _new_contact_arrays(count: int, linear: int, angular: int, turning: int) -> ContactArrays:
    return ContactArrays(
        np.empty((2, count), np.int32),
        np.empty(linear),
        np.empty(angular),
        np.empty((5, count)),
        np.empty((2, count)),
        np.empty((count, 3)),
        np.empty((turning, 3)),
        np.empty((3, count)),
    )


def _make_contacts(arrays: ContactArrays, as_sap: bool, material: Material) -> Contacts:
    tree_a, tree_b = arrays.trees
    count = len(tree_a)
    if not count:
        return Contacts.none()
    friction, friction_2, torsional, *rolling = arrays.friction
    named = {
        "tree_a": tree_a,
        "tree_b": tree_b,
        "jacobian": arrays.jacobian,
        "friction": friction,
    }
    is_physical = material.stiffness is not None or material.relaxation_time is not None
    if as_sap and is_physical:
        named["signed_distance"], stiffness, relaxation_time = arrays.physical
        if material.stiffness is not None:
            stiffness = np.full(count, float(material.stiffness))
        if material.relaxation_time is not None:
            relaxation_time = np.full(count, float(material.relaxation_time))
        named["stiffness"], named["relaxation_time"] = stiffness, relaxation_time
        arrays.target[:, 2] = 0.0
        if arrays.target.any():
            named["surface_velocity"] = -arrays.target
    else:
        named["relaxation_time"] = np.zeros(count)
        named["target_velocity"] = arrays.target
        named["regularization_n"] = arrays.R[1]
        if not as_sap:
            named["regularization_t"] = arrays.R[0]
    if (friction != friction_2).any():
        named["friction_2"] = friction_2
    if len(arrays.target_angular):
        named["torsional_friction"] = torsional
        named["rolling_friction"] = np.column_stack(rolling)
        named["angular_jacobian"] = arrays.angular
        named["target_angular_velocity"] = arrays.target_angular
    return Contacts.from_wire_arrays(**named)


def _store_forces(
    model: mujoco.MjModel, data: mujoco.MjData, built: BuiltProblem, solution: Solution
) -> None:
    """Writes constraint forces, and the forces of implicit actuators, to `data`."""
    dt = model.opt.timestep
    if data.nefc:
        constraints.store_forces(
            built.made,
            built.row,
            built.contact,
            dt,
            solution.row_impulse,
            solution.impulse,
            solution.angular_impulse,
            built.cone,
            data.efc_force,
            data.efc_state,
        )
        mujoco.mj_mulJacTVec(model, data, data.qfrc_constraint, data.efc_force)
    else:
        data.qfrc_constraint[:] = 0.0
    if built.law == "sap" and model.nu:
        servos.store_forces(
            layout_of(model).model_table,
            state_table(data),
            layout_of(model).table,
            dt,
            solution.velocity,
            solution.row_impulse[len(built.row) :],
            built.servos,
        )
