"""Converts constraints of a Drake plant to rows of a problem.

With g_0 the violation, J its derivative, w = |J diag(A)^-1 J'|_F / n over the n rows of a
constraint, R_c = 1 / (δt k (δt + τ)) and R_nr = β² w / 4π², Drake's solver has

    R = max(R_c, R_nr),   v̂ = -g_0 / (δt + τ),   with τ = δt where R_nr > R_c

These are given explicitly, as neither w nor that τ is what the service has by default. A PD
controller with gains K_p, K_d, effort limit e and feed-forward u has

    R_c = 1 / (δt (δt K_p + K_d)),   v̂ = (K_p (q_d - q_0) + K_d v_d) / (δt K_p + K_d)

and bounds -e, e of the force, feed-forward included.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from pydrake.math import RigidTransform
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import BodyIndex, MultibodyConstraintId
from pydrake.systems.framework import Context

from sap_islands.arrays import FloatArray, IndexArray
from sap_islands.drake.constraints import Ball, Constraint, Coupler, Distance, Tendon, Weld
from sap_islands.drake.contacts import body_jacobians
from sap_islands.drake.dynamics import Dynamics
from sap_islands.drake.layout import Layout
from sap_islands.errors import InvalidArgument
from sap_islands.problem import ConstraintRows

# Constants of Drake's discrete solver, so that the solutions agree with Drake's.
_BETA = 0.1
_LIMIT_STIFFNESS, _LIMIT_REACH = 1e12, 2.0
_LEAST_DISTANCE_M, _LEAST_DISTANCE_RATIO = 1e-7, 1e-2  # of the free length


class _State(NamedTuple):
    """Data that rows are made from.

    Attributes:
        plant: The plant.
        context: Its context.
        layout: Of its trees and joints.
        dynamics: A and v* of the step.
        q: Positions.
    """

    plant: MultibodyPlant
    context: Context
    layout: Layout
    dynamics: Dynamics
    q: FloatArray


class RowSource(NamedTuple):
    """The element of the model that a row belongs to.

    Attributes:
        kind: "limit", "motor", "coupler", "ball", "weld", "distance" or "tendon".
        number: Index of the joint of a limit or of the actuator of a motor; value of the
            MultibodyConstraintId of the others.
    """

    kind: str
    number: int


class BodyForce(NamedTuple):
    """How the rows of a constraint act on a body.

    Attributes:
        body: Index of the body.
        rows: Slice of the rows.
        spatial: [6, rows] spatial force on the body at its origin, in world axes, (torque, force),
            for a unit impulse of each row.
    """

    body: int
    rows: slice
    spatial: FloatArray


@dataclass
class Rows:
    """Rows of one step, while they are collected.

    Attributes:
        time_step: δt [s].
        diagonal: [n] diagonal of A.
        near_rigid: R / w of rigid rows.
        sources: What each row belongs to.
        body_forces: How rows between bodies act on them.
    """

    time_step: float
    diagonal: FloatArray
    near_rigid: float
    sources: list[RowSource] = field(default_factory=list)
    body_forces: list[BodyForce] = field(default_factory=list)
    entries: list[int] = field(default_factory=list)
    index: list[int] = field(default_factory=list)
    coefficient: list[float] = field(default_factory=list)
    regularization: list[float] = field(default_factory=list)
    target_velocity: list[float] = field(default_factory=list)
    force_lower: list[float] = field(default_factory=list)
    force_upper: list[float] = field(default_factory=list)
    force_offset: list[float] = field(default_factory=list)

    def weight(self, index: IndexArray, J: FloatArray) -> float:
        """The estimate w of the rows J of a constraint, with the columns `index`."""
        W = (J / self.diagonal[index]) @ J.T
        return math.sqrt(float(np.sum(W * W))) / len(J)

    def add(
        self,
        source: RowSource,
        index: Iterable[int],
        J: Iterable[float],
        R: float,
        v_hat: float,
        lower: float = -math.inf,
        upper: float = math.inf,
        offset: float = 0.0,
    ) -> None:
        """Adds a row with the coefficients J of the velocities `index`, ascending."""
        before = len(self.index)
        self.index.extend(index)
        self.coefficient.extend(J)
        self.entries.append(len(self.index) - before)
        self.regularization.append(R)
        self.target_velocity.append(v_hat)
        self.force_lower.append(lower)
        self.force_upper.append(upper)
        self.force_offset.append(offset)
        self.sources.append(source)

    def add_compliant(
        self,
        source: RowSource,
        index: IndexArray,
        J: FloatArray,
        g: Iterable[float],
        stiffness: float = math.inf,
        damping: float = 0.0,
        lower: float = -math.inf,
    ) -> None:
        """Adds the rows J of one constraint with violation g."""
        dt = self.time_step
        used = np.flatnonzero(J.any(axis=0))
        if not len(used):
            return  # both sides are fixed
        index, J = index[used], J[:, used]
        relaxation_time = damping / stiffness
        R = 1.0 / (dt * stiffness * (dt + relaxation_time))
        near_rigid = self.near_rigid * self.weight(index, J)
        if near_rigid > R:
            R, relaxation_time = near_rigid, dt
        columns = index.tolist()
        for row, violation in zip(J.tolist(), g, strict=True):
            self.add(source, columns, row, R, -violation / (dt + relaxation_time), lower)

    def problem_rows(self) -> ConstraintRows:
        """The rows as they are sent."""
        if not self.entries:
            return ConstraintRows.none()
        return ConstraintRows.from_wire_arrays(
            entries=np.array(self.entries, np.uint32),
            velocity_index=np.array(self.index, np.uint32),
            coefficient=np.array(self.coefficient),
            regularization=np.array(self.regularization),
            target_velocity=np.array(self.target_velocity),
            force_lower=np.array(self.force_lower),
            force_upper=np.array(self.force_upper),
            force_offset=np.array(self.force_offset),
        )


def make_rows(
    plant: MultibodyPlant,
    context: Context,
    layout: Layout,
    dynamics: Dynamics,
    constraints: Mapping[MultibodyConstraintId, Constraint],
    with_limits: bool,
    beta: float | None,
) -> Rows:
    """The rows of motors, of limits that may be reached in two steps, and of `constraints`.

    Rigid ones have R = beta² w / 4π²; None: as in Drake.
    """
    near_rigid = (_BETA if beta is None else beta) ** 2 / (4.0 * math.pi**2)
    rows = Rows(plant.time_step(), dynamics.diagonal, near_rigid)
    state = _State(plant, context, layout, dynamics, plant.GetPositions(context))
    if with_limits and len(layout.limited):
        _add_limits(state, rows)
    _add_motors(state, rows)
    for identifier, constraint in constraints.items():
        number = identifier.get_value()
        if isinstance(constraint, Coupler):
            _add_coupler(state, constraint, number, rows)
        elif isinstance(constraint, Tendon):
            _add_tendon(state, constraint, number, rows)
        else:
            _add_between_bodies(state, identifier, constraint, rows)
    return rows


def _add_limits(state: _State, rows: Rows) -> None:
    plant, context, layout, dynamics, q = state
    dt = plant.time_step()
    positions, velocities, joints = layout.limited.T
    dofs = layout.problem_index[velocities]
    v_0, v_star = plant.GetVelocities(context)[velocities], dynamics.v_star[dofs]
    reach = _LIMIT_REACH * dt * np.maximum(np.abs(v_0), np.abs(v_star))
    from_lower = q[positions] - plant.GetPositionLowerLimits()[positions]
    to_upper = plant.GetPositionUpperLimits()[positions] - q[positions]
    compliant = 1.0 / (dt * _LIMIT_STIFFNESS * 2.0 * dt)
    for sign, distances in ((1.0, from_lower), (-1.0, to_upper)):
        for i in np.flatnonzero(distances <= reach).tolist():
            R = max(compliant, rows.near_rigid / dynamics.diagonal[dofs[i]])
            v_hat = -distances[i] / (2.0 * dt)
            rows.add(RowSource("limit", int(joints[i])), [dofs[i]], [sign], R, v_hat, 0.0)


def _add_motors(state: _State, rows: Rows) -> None:
    plant, context, layout, dynamics, q = state
    dt = plant.time_step()
    desired: dict[int, FloatArray] = {}
    for actuator in layout.actuators:
        dof = layout.problem_index[actuator.velocity]
        if not actuator.has_controller or dof < 0:
            continue
        instance = int(actuator.instance)
        if instance not in desired:
            port = plant.get_desired_state_input_port(actuator.instance)
            desired[instance] = port.Eval(context) if port.HasValue(context) else np.empty(0)
        wanted = desired[instance]
        if not len(wanted):
            continue  # as in Drake: without a desired state there is neither control nor input
        of_plant = plant.get_joint_actuator(actuator.index)
        gains, effort = of_plant.get_controller_gains(), of_plant.effort_limit()
        error = wanted[actuator.index_in_instance] - q[actuator.position]
        wanted_v = wanted[len(wanted) // 2 + actuator.index_in_instance]
        gain = dt * gains.p + gains.d
        R = max(1.0 / (dt * gain), rows.near_rigid / dynamics.diagonal[dof])
        v_hat = (gains.p * error + gains.d * wanted_v) / gain
        source = RowSource("motor", int(actuator.index))
        offset = dynamics.actuation[actuator.input]
        rows.add(source, [dof], [1.0], R, v_hat, -effort, effort, offset)


def _joint_row(
    plant: MultibodyPlant, layout: Layout, joints: Iterable[int], coefficients: Iterable[float]
) -> tuple[IndexArray, FloatArray]:
    """Columns and coefficients [1, columns] of a row over joints of one degree of freedom."""
    row: dict[int, float] = {}
    for joint, a in zip(joints, coefficients, strict=True):
        dof = int(layout.problem_index[plant.get_joint(joint).velocity_start()])
        if dof >= 0:
            row[dof] = row.get(dof, 0.0) + a
    columns = sorted(row)
    return np.array(columns, np.int64), np.array([[row[column] for column in columns]])


def _add_coupler(state: _State, coupler: Coupler, number: int, rows: Rows) -> None:
    plant, _, layout, _, q = state
    joints = (coupler.joint0, coupler.joint1)
    q_0, q_1 = (q[plant.get_joint(joint).position_start()] for joint in joints)
    index, J = _joint_row(plant, layout, joints, (1.0, -coupler.gear_ratio))
    g = q_0 - coupler.gear_ratio * q_1 - coupler.offset
    rows.add_compliant(RowSource("coupler", number), index, J, [g])


def _add_tendon(state: _State, tendon: Tendon, number: int, rows: Rows) -> None:
    """Adds a limit of the length where it is violated at the beginning, as Drake does."""
    plant, _, layout, _, q = state
    index, J = _joint_row(plant, layout, tendon.joints, tendon.coefficients)
    places = [plant.get_joint(joint).position_start() for joint in tendon.joints]
    length = float(np.dot(tendon.coefficients, q[places])) + tendon.offset
    source = RowSource("tendon", number)
    law = (tendon.stiffness, tendon.damping, 0.0)
    if length < tendon.lower:
        rows.add_compliant(source, index, J, [length - tendon.lower], *law)
    if length > tendon.upper:
        rows.add_compliant(source, index, -J, [tendon.upper - length], *law)


def _add_between_bodies(
    state: _State,
    identifier: MultibodyConstraintId,
    constraint: Ball | Weld | Distance,
    rows: Rows,
) -> None:
    plant, context, layout = state.plant, state.context, state.layout
    if isinstance(constraint, Distance):
        joined = _distance(plant, context, identifier)
    elif isinstance(constraint, Ball):
        joined = _ball(plant, context, constraint)
    else:
        joined = _weld(plant, context, constraint)
    jacobians = body_jacobians(plant, context, np.array([int(body) for body in joined.bodies]))
    J = np.zeros((len(joined.axes), len(layout.velocities)))
    forces = []
    for sign, body, point, jacobian in zip(
        (-1.0, 1.0), joined.bodies, joined.points, jacobians, strict=True
    ):
        at_point = sign * joined.axes @ _shift(point - jacobian[:3])
        J += at_point @ jacobian[3:].reshape(6, -1)[:, layout.velocities]
        forces.append((int(body), at_point.T))
    source = RowSource(type(constraint).__name__.lower(), identifier.get_value())
    first = len(rows.entries)
    columns = np.arange(len(layout.velocities))
    rows.add_compliant(source, columns, J, joined.violation, joined.stiffness, joined.damping)
    if len(rows.entries) > first:
        span = slice(first, len(rows.entries))
        rows.body_forces += [BodyForce(body, span, spatial) for body, spatial in forces]


class _Joined(NamedTuple):
    """A constraint between two bodies; its velocity is axes (V_B - V_A), each at its own point.

    Attributes:
        bodies: A and B.
        points: Where it acts on A and on B, in world axes [m].
        axes: [rows, 6] components of the relative spatial velocity (ω, V).
        violation: [rows] g_0 [m, rad].
        stiffness: [N/m], or inf.
        damping: [N s/m].
    """

    bodies: tuple[BodyIndex, BodyIndex]
    points: tuple[FloatArray, FloatArray]
    axes: FloatArray
    violation: FloatArray
    stiffness: float = math.inf
    damping: float = 0.0


def _poses(
    plant: MultibodyPlant, context: Context, bodies: tuple[BodyIndex, BodyIndex]
) -> tuple[RigidTransform, RigidTransform]:
    a, b = bodies
    return (
        plant.EvalBodyPoseInWorld(context, plant.get_body(a)),
        plant.EvalBodyPoseInWorld(context, plant.get_body(b)),
    )


def _distance(
    plant: MultibodyPlant, context: Context, identifier: MultibodyConstraintId
) -> _Joined:
    given = plant.GetDistanceConstraintParams(context, identifier)
    bodies = (given.bodyA(), given.bodyB())
    X_WA, X_WB = _poses(plant, context, bodies)
    p_P, p_Q = X_WA @ given.p_AP(), X_WB @ given.p_BQ()
    length, free_length = float(np.linalg.norm(p_Q - p_P)), given.distance()
    if length < _LEAST_DISTANCE_M + _LEAST_DISTANCE_RATIO * free_length:
        names = " and ".join(repr(plant.get_body(body).name()) for body in bodies)
        message = f"the points of the distance constraint of {names} are {length} m apart: no axis"
        raise InvalidArgument(message, "plant")
    axes = np.concatenate((np.zeros(3), (p_Q - p_P) / length))[None]
    violation = np.array([length - free_length])
    return _Joined(bodies, (p_P, p_Q), axes, violation, given.stiffness(), given.damping())


def _ball(plant: MultibodyPlant, context: Context, ball: Ball) -> _Joined:
    bodies = (ball.body_A, ball.body_B)
    X_WA, X_WB = _poses(plant, context, bodies)
    p_P, p_Q = X_WA @ np.asarray(ball.p_AP), X_WB @ np.asarray(ball.p_BQ)
    return _Joined(bodies, (p_P, p_Q), np.eye(6)[3:], p_Q - p_P)


def _weld(plant: MultibodyPlant, context: Context, weld: Weld) -> _Joined:
    bodies = (weld.body_A, weld.body_B)
    X_WA, X_WB = _poses(plant, context, bodies)
    X_WP, X_WQ = X_WA @ weld.X_AP, X_WB @ weld.X_BQ
    p_P, p_Q = X_WP.translation(), X_WQ.translation()
    turn = (X_WP.rotation().inverse() @ X_WQ.rotation()).ToAngleAxis()
    angles = X_WP.rotation() @ (turn.angle() * turn.axis())
    middle = 0.5 * (p_P + p_Q)
    return _Joined(bodies, (middle, middle), np.eye(6), np.concatenate((angles, p_Q - p_P)))


def _shift(arm: FloatArray) -> FloatArray:
    """The matrix [6, 6] that takes (ω, V) at a point to that at a distance `arm` from it."""
    x, y, z = arm
    shift = np.eye(6)
    shift[3:, :3] = [[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]]
    return shift
