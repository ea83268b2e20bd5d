"""Contact results and forces of one step: what Drake's ports would show of its own update.

The plant samples its ports contact_results, reaction_forces, net_actuation and
generalized_contact_forces at its own discrete updates only, into a state that Python cannot write.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from pydrake.math import RotationMatrix
from pydrake.multibody.math import SpatialAcceleration, SpatialForce
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import BodyIndex
from pydrake.systems.framework import Context

from sap_islands.arrays import FloatArray, IntArray
from sap_islands.drake.constraint_rows import Rows
from sap_islands.drake.contact_jacobian import generalized_impulse
from sap_islands.drake.contact_points import Points
from sap_islands.drake.dynamics import Dynamics
from sap_islands.drake.layout import Layout
from sap_islands.problem import Problem
from sap_islands.solution import Solution


@dataclass
class ContactResults:
    """C contacts of a step.

    Attributes:
        bodies: [C, 2] indices of bodies A and B.
        point: [C, 3] contact point in world axes [m].
        normal: [C, 3] unit normal from A to B in world axes [-].
        force: [C, 3] force on B at the point in world axes; A has its negative [N].
        separation_speed: [C] normal velocity of B relative to A at the end of the step [m/s].
        slip_speed: [C] tangential speed of B relative to A at the end of the step [m/s].
    """

    bodies: IntArray
    point: FloatArray
    normal: FloatArray
    force: FloatArray
    separation_speed: FloatArray
    slip_speed: FloatArray


@dataclass
class StepResults:
    """Forces of a step, constant over it; they are computed when they are first read."""

    _plant: MultibodyPlant
    _context: Context
    _layout: Layout
    _dynamics: Dynamics
    _rows: Rows
    _problem: Problem
    _points: Points
    _frames: FloatArray
    _solution: Solution
    _state: FloatArray  # q and v before the step

    @functools.cached_property
    def contacts(self) -> ContactResults:
        """Contact points and their forces."""
        impulse, velocity = self._solution.impulse, self._solution.contact_velocity
        return ContactResults(
            bodies=self._points.bodies,
            point=self._points.rows[:, :3],
            normal=self._frames[:, 2],
            force=np.einsum("ci,cij->cj", impulse, self._frames) / self._problem.time_step,
            separation_speed=velocity[:, 2],
            slip_speed=np.hypot(velocity[:, 0], velocity[:, 1]),
        )

    @functools.cached_property
    def generalized_contact_forces(self) -> FloatArray:
        """[nv] τ = J'f of all contacts, in the order of the plant's v [N, N m].

        Zero at locked joints.
        """
        return self._in_order_of_plant(
            generalized_impulse(self._layout, self._problem.contacts, self._solution.impulse)
        )

    @functools.cached_property
    def row_forces(self) -> FloatArray:
        """[R] force of each constraint row, which `BuiltProblem.rows` names [N, N m]."""
        return np.asarray(self._solution.row_impulse) / self._problem.time_step

    @functools.cached_property
    def generalized_constraint_forces(self) -> FloatArray:
        """[nv] τ = J'f of all rows but motors, in the order of the plant's v [N, N m]."""
        rows = self._problem.rows
        is_motor = np.array([source.kind == "motor" for source in self._rows.sources], bool)
        impulse = np.zeros(len(self._layout.velocities))
        if rows.count:
            of_row = np.where(is_motor, 0.0, self._solution.row_impulse)
            each = np.repeat(of_row, rows.entries) * rows.coefficient
            np.add.at(impulse, rows.velocity_index, each)
        return self._in_order_of_plant(impulse)

    @functools.cached_property
    def net_actuation(self) -> FloatArray:
        """[actuators] force of each actuator, PD controllers and effort limits included [N, N m].

        Zero for a PD controller that is off or whose joint is locked.
        """
        net = self._dynamics.actuation.copy()
        for actuator in self._layout.actuators:
            if actuator.has_controller:
                net[actuator.input] = 0.0
        input_of = {int(actuator.index): actuator.input for actuator in self._layout.actuators}
        for source, force in zip(self._rows.sources, self.row_forces, strict=True):
            if source.kind == "motor":
                net[input_of[source.number]] = force
        return net

    @functools.cached_property
    def reaction_forces(self) -> list[SpatialForce]:
        """Reaction at each joint, in the order of the plant's port reaction_forces.

        The force on the child body at the joint's frame on it, in that frame. It is found from the
        state before the step and from the parameters that the plant's context has when this is
        first read.
        """
        plant, layout = self._plant, self._layout
        context = plant.CreateDefaultContext()
        context.SetTimeStateAndParametersFrom(self._context)
        plant.SetPositionsAndVelocities(context, self._state)
        external = self._forces_on_bodies(context)
        velocity = np.zeros(plant.num_velocities())
        velocity[layout.velocities] = self._solution.velocity
        change = velocity - self._state[plant.num_positions() :]
        accelerations = plant.CalcSpatialAccelerationsFromVdot(context, change / plant.time_step())
        carried = np.zeros((plant.num_bodies(), 6))  # (torque, force) at the body's origin
        place = {int(index): i for i, index in enumerate(plant.GetJointIndices())}
        reactions = [SpatialForce.Zero() for _ in place]
        for body in reversed(list(layout.mobilized)):  # from the leaves inwards
            joint_index, inboard, is_child = layout.mobilized[body]
            carried[body] += _inertial_force(plant, context, body, accelerations[body])
            carried[body] -= external[body]
            X_WB = plant.EvalBodyPoseInWorld(context, plant.get_body(BodyIndex(body)))
            X_WI = plant.EvalBodyPoseInWorld(context, plant.get_body(BodyIndex(inboard)))
            carried[inboard] += _moved(carried[body], X_WI.translation() - X_WB.translation())
            joint = plant.get_joint(joint_index)
            X_WJ = joint.frame_on_child().CalcPoseInWorld(context)
            force = _moved(carried[body], X_WJ.translation() - X_WB.translation())
            reactions[place[int(joint_index)]] = _in_frame(
                force if is_child else -force, X_WJ.rotation()
            )
        return reactions

    def _forces_on_bodies(self, context: Context) -> FloatArray:
        """[bodies, 6] (torque, force) of all but joints on each body at its origin."""
        plant = self._plant
        forces = np.zeros((plant.num_bodies(), 6))
        origins = np.empty((plant.num_bodies(), 3))
        for index in range(plant.num_bodies()):
            body = plant.get_body(BodyIndex(index))
            origins[index] = plant.EvalBodyPoseInWorld(context, body).translation()
            if index:
                force = body.GetForceInWorld(context, self._dynamics.forces)
                forces[index] = np.concatenate((force.rotational(), force.translational()))
        contacts = self.contacts
        for sign, side in ((-1.0, 0), (1.0, 1)):
            body_of = contacts.bodies[:, side]
            force = sign * contacts.force
            torque = np.cross(contacts.point - origins[body_of], force)
            np.add.at(forces, body_of, np.concatenate((torque, force), axis=1))
        for body_force in self._rows.body_forces:
            forces[body_force.body] += body_force.spatial @ self.row_forces[body_force.rows]
        return forces

    def _in_order_of_plant(self, impulse: FloatArray) -> FloatArray:
        forces = np.zeros(self._plant.num_velocities())
        forces[self._layout.velocities] = impulse / self._problem.time_step
        return forces


def _inertial_force(
    plant: MultibodyPlant, context: Context, index: int, acceleration: SpatialAcceleration
) -> FloatArray:
    """(torque, force) at the body's origin that its acceleration takes."""
    body = plant.get_body(BodyIndex(index))
    R = plant.EvalBodyPoseInWorld(context, body).rotation()
    inertia = body.CalcSpatialInertiaInBodyFrame(context).ReExpress(R)
    mass, arm = inertia.get_mass(), inertia.get_com()
    I = inertia.CalcRotationalInertia().CopyToFullMatrix3()  # noqa: E741  # the symbol of inertia
    turning = body.EvalSpatialVelocityInWorld(context).rotational()
    alpha, a = acceleration.rotational(), acceleration.translational()
    force = mass * (a + np.cross(alpha, arm) + np.cross(turning, np.cross(turning, arm)))
    torque = I @ alpha + np.cross(turning, I @ turning) + mass * np.cross(arm, a)
    return np.concatenate((torque, force))


def _moved(force: FloatArray, by: FloatArray) -> FloatArray:
    """A spatial force (torque, force) about a point that is further by `by`."""
    return np.concatenate((force[:3] - np.cross(by, force[3:]), force[3:]))


def _in_frame(force: FloatArray, rotation: RotationMatrix) -> SpatialForce:
    to_frame = rotation.inverse()
    return SpatialForce(tau=to_frame @ force[:3], f=to_frame @ force[3:])
