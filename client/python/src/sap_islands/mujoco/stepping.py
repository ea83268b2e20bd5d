"""From MjModel and MjData to a problem, and from its solution to the next state."""

from __future__ import annotations

import functools
from collections.abc import Collection
from typing import NamedTuple

import mujoco

from sap_islands.client import Client
from sap_islands.jacobian import IndexArray
from sap_islands.mujoco import contacts as contacts_of
from sap_islands.mujoco import dynamics as dynamics_of
from sap_islands.mujoco.dynamics import Dynamics
from sap_islands.mujoco.layout import layout_of
from sap_islands.mujoco.limits import find_limits
from sap_islands.mujoco.material import Material
from sap_islands.mujoco.support import check_supported
from sap_islands.problem import Problem, Regularization, Trees
from sap_islands.session import Session
from sap_islands.solution import Solution
from sap_islands.support import JOINT_LIMITS

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
    layout = layout_of(model)
    # What may be switched on between steps is looked at again then.
    asked = (
        frozenset(ignore),
        model.opt.disableflags,
        data.eq_active.tobytes(),
        model.dof_frictionloss.tobytes(),
        model.geom_condim.tobytes(),
    )
    layout.remember("supported", asked, lambda: check_supported(model, data, ignore))
    _forward(model, data)
    dynamics = dynamics_of.evaluate(model, data, layout)
    limits = None
    if model.njnt and JOINT_LIMITS not in ignore:
        limits = find_limits(model, data, layout, dynamics.v_star)
    contacts, which = contacts_of.make_contacts(model, data, layout, material, limits)
    problem = Problem(
        time_step=model.opt.timestep,
        trees=Trees(
            dofs=layout.dofs,
            dynamics_matrix=dynamics.blocks,
            free_motion_velocity=dynamics.v_star,
            tree_id=layout.names,
        ),
        contacts=contacts,
        regularization=Regularization(beta=material.beta, sigma=material.sigma),
    )
    return BuiltProblem(problem, which, dynamics)


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
    impulse = dynamics_of.generalized_impulse(built.dynamics, velocity, layout)
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


def _forward(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """What mj_forward computes before its constraints."""
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_camlight(model, data)
    mujoco.mj_tendon(model, data)
    mujoco.mj_makeM(model, data)
    mujoco.mj_factorM(model, data)
    mujoco.mj_collision(model, data)
    mujoco.mj_transmission(model, data)
    mujoco.mj_sensorPos(model, data)
    mujoco.mj_fwdVelocity(model, data)
    mujoco.mj_sensorVel(model, data)
    control = mujoco.get_mjcb_control()
    if control is not None:
        control(model, data)
    mujoco.mj_fwdActuation(model, data)
    mujoco.mj_fwdAcceleration(model, data)


def _advance(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Moves activations, velocities and positions by one step of `qacc`, and the time."""
    flags = model.opt.disableflags
    # Damping is in the accelerations already.
    model.opt.disableflags = flags | int(mujoco.mjtDisableBit.mjDSBL_EULERDAMP)
    try:
        mujoco.mj_Euler(model, data)
    finally:
        model.opt.disableflags = flags
