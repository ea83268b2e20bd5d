"""Dynamics matrix A and free-motion velocity v* of a Drake model, tree by tree.

As in Drake's discrete solver, joint damping is taken at the end of the step,

    A v* = A v_0 + δt τ_0,   A = M + δt D

with τ_0 all forces except those of constraints, at the beginning of the step. PD controllers are
constraints, see `rows`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import MultibodyForces
from pydrake.systems.framework import Context

from sap_islands._library.c_library import pointer_to
from sap_islands.arrays import FloatArray
from sap_islands.drake.layout import Layout
from sap_islands.drake.native_calls import load_native_calls
from sap_islands.errors import InvalidArgument


class Dynamics(NamedTuple):
    """A and v* of one step; velocities are in the order of the problem.

    Attributes:
        blocks: [sum n_t²] A of each tree, row-major, concatenated.
        v_star: [n] v* [m/s, rad/s].
        diagonal: [n] diagonal of A, with which Drake scales constraints.
        damping: [nv] D in Drake's order.
        actuation: [actuators] input of each actuator [N, N m].
        forces: Forces of force elements and input ports; generalized without those of actuators.
    """

    blocks: FloatArray
    v_star: FloatArray
    diagonal: FloatArray
    damping: FloatArray
    actuation: FloatArray
    forces: MultibodyForces


def evaluate(plant: MultibodyPlant, context: Context, layout: Layout) -> Dynamics:
    """A and v* at the state of the plant's context."""
    damping = np.zeros(plant.num_velocities())
    for index, span in layout.joints:
        damping[span] = plant.get_joint(index).GetDampingVector(context)
    actuation = _actuation(plant, context, layout)
    forces = _applied_forces(plant, context)
    n = len(layout.velocities)
    dofs = layout.dofs.astype(np.int64)
    blocks, v_star, diagonal = np.empty(dofs @ dofs), np.empty(n), np.empty(n)
    arrays = (
        plant.CalcMassMatrix(context).ravel(order="K"),  # symmetric: either order is the same
        damping,
        plant.GetVelocities(context),
        _generalized_forces(plant, context, layout, forces, actuation),
        blocks,
        v_star,
        diagonal,
    )
    load_native_calls().write_dynamics(layout.as_struct, *map(pointer_to, arrays))
    return Dynamics(blocks, v_star, diagonal, damping, actuation, forces)


def _applied_forces(plant: MultibodyPlant, context: Context) -> MultibodyForces:
    """Gravity, springs, joint damping, and the inputs of applied forces."""
    forces = MultibodyForces(plant)
    plant.CalcForceElementsContribution(context, forces)
    spatial = plant.get_applied_spatial_force_input_port()
    if spatial.HasValue(context):
        for applied in spatial.Eval(context):
            body = plant.get_body(applied.body_index)
            if not np.isfinite(applied.F_Bq_W.get_coeffs()).all():
                message = f"the force applied to body {body.scoped_name()} is not finite"
                raise InvalidArgument(message, "applied_spatial_force")
            rotation = plant.EvalBodyPoseInWorld(context, body).rotation()
            arm = rotation @ applied.p_BoBq_B
            body.AddInForce(context, arm, applied.F_Bq_W, plant.world_frame(), forces)
    generalized = plant.get_applied_generalized_force_input_port()
    if generalized.HasValue(context):
        values = generalized.Eval(context)
        _check_finite(values, "applied_generalized_force", plant.GetVelocityNames)
        forces.mutable_generalized_forces()[:] += values
    return forces


def _check_finite(values: FloatArray, field: str, names: Callable[[], list[str]]) -> None:
    if not np.isfinite(values).all():
        index = int(np.flatnonzero(~np.isfinite(values))[0])
        message = f"{field}[{index}] ({names()[index]}) is {values[index]}; it must be finite"
        raise InvalidArgument(message, field)


def _generalized_forces(
    plant: MultibodyPlant,
    context: Context,
    layout: Layout,
    forces: MultibodyForces,
    actuation: FloatArray,
) -> FloatArray:
    """τ_0 [nv] in Drake's order: `forces`, bias and actuators without a PD controller."""
    generalized: FloatArray = -plant.CalcInverseDynamics(
        context, np.zeros(plant.num_velocities()), forces
    )
    for actuator in layout.actuators:
        if not actuator.has_controller:
            generalized[actuator.velocity] += actuation[actuator.input]
    return generalized


def _actuation(plant: MultibodyPlant, context: Context, layout: Layout) -> FloatArray:
    """Input of each actuator; 0 if its port is not connected.

    Within the effort limits, except for PD controllers, whose sum of control and input is limited.
    """
    actuation = _actuation_input(plant, context, layout)
    _check_finite(actuation, "actuation", plant.GetActuatorNames)
    for actuator in layout.actuators:
        if not actuator.has_controller:
            limit = plant.get_joint_actuator(actuator.index).effort_limit()
            actuation[actuator.input] = np.clip(actuation[actuator.input], -limit, limit)
    return actuation


def _actuation_input(plant: MultibodyPlant, context: Context, layout: Layout) -> FloatArray:
    actuation = np.zeros(len(layout.actuators))
    if not layout.actuators:
        return actuation
    port = plant.get_actuation_input_port()
    if port.HasValue(context):
        actuation += port.Eval(context)
        return actuation
    # Without a common input, each model instance may have its own port.
    inputs: dict[int, FloatArray] = {}
    for actuator in layout.actuators:
        instance = int(actuator.instance)
        if instance not in inputs:
            port = plant.get_actuation_input_port(actuator.instance)
            inputs[instance] = port.Eval(context) if port.HasValue(context) else np.empty(0)
        if len(inputs[instance]):
            actuation[actuator.input] = inputs[instance][actuator.index_in_instance]
    return actuation
