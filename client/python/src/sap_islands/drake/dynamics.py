"""Dynamics matrix and free motion of a Drake model, tree by tree.

As Drake's discrete solver has it, damping of joints counts at the end of the step,

    A v* = A v_0 + δt τ_0,   A = M + δt D

with τ_0 all forces but those of constraints at the beginning. PD controllers, which Drake has as
constraints without effort limit, are quadratic and go into A and v* as well:

    A' = A + δt (δt K_p + K_d),   A' v*' = A v* + δt (u_0 + K_p (q_d - q_0) + K_d v_d)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import MultibodyForces, PdControllerGains
from pydrake.systems.framework import Context

from sap_islands.arrays import FloatArray
from sap_islands.drake.layout import Layout

_PD_BETA = 0.1  # near-rigid parameter that Drake clamps gains by


@dataclass(frozen=True)
class Dynamics:
    """A and v* of one step, velocities in the order of the problem.

    Attributes:
        blocks: [sum n_t²] A' of each tree, row-major, one after the other.
        v_star: [nv] v*'.
        v_star_without_servos: [nv] v*, by which Drake looks for limits.
        diagonal: [nv] that of A without controllers, by which Drake scales constraints.
    """

    blocks: FloatArray
    v_star: FloatArray
    v_star_without_servos: FloatArray
    diagonal: FloatArray


def evaluate(plant: MultibodyPlant, context: Context, layout: Layout) -> Dynamics:
    """A and v* at the state of the plant's context."""
    dt = plant.time_step()
    damping = np.zeros(plant.num_velocities())
    for joint, span in layout.damped:
        damping[span] = plant.get_joint(joint).GetDampingVector(context)
    v_0 = plant.GetVelocities(context)
    force = _applied_forces(plant, context)[layout.velocities]
    v_0 = v_0[layout.velocities]

    mass = plant.CalcMassMatrix(context)
    diagonal = mass.diagonal()[layout.velocities] + dt * damping[layout.velocities]
    matrices = []
    for group in layout.groups:
        in_drake = layout.velocities[group.velocities]
        blocks = mass[in_drake[:, :, None], in_drake[:, None, :]]
        _add_to_diagonals(blocks, dt * damping[in_drake])
        matrices.append(blocks)
    v_star = v_0 + _solve(matrices, dt * force, layout)

    v_star_without_servos = v_star
    gains, push = _servos(plant, context, layout, diagonal)
    if gains.any():
        impulse = dt * push
        for group, blocks in zip(layout.groups, matrices, strict=True):
            v = v_star[group.velocities][..., None]
            impulse[group.velocities] += np.matmul(blocks, v)[..., 0]
            _add_to_diagonals(blocks, dt * gains[group.velocities])
        v_star = _solve(matrices, impulse, layout)
    flat = np.empty(sum(blocks.size for blocks in matrices))
    for group, blocks in zip(layout.groups, matrices, strict=True):
        flat[group.block] = blocks.reshape(group.block.shape)
    return Dynamics(flat, v_star, v_star_without_servos, diagonal)


def _add_to_diagonals(blocks: FloatArray, values: FloatArray) -> None:
    """Adds values [g, n] to the diagonals of blocks [g, n, n]."""
    every = np.arange(blocks.shape[1])
    blocks[:, every, every] += values


def _solve(matrices: list[FloatArray], b: FloatArray, layout: Layout) -> FloatArray:
    solution = np.empty_like(b)
    for group, blocks in zip(layout.groups, matrices, strict=True):
        x = np.linalg.solve(blocks, b[group.velocities][..., None])
        solution[group.velocities] = x[..., 0]
    return solution


def _applied_forces(plant: MultibodyPlant, context: Context) -> FloatArray:
    """Gravity, springs, damping, inputs and bias as generalized forces [nv], in Drake's order."""
    forces = MultibodyForces(plant)
    plant.CalcForceElementsContribution(context, forces)
    spatial = plant.get_applied_spatial_force_input_port()
    if spatial.HasValue(context):
        for applied in spatial.Eval(context):
            body = plant.get_body(applied.body_index)
            rotation = plant.EvalBodyPoseInWorld(context, body).rotation()
            arm = rotation @ applied.p_BoBq_B
            body.AddInForce(context, arm, applied.F_Bq_W, plant.world_frame(), forces)
    generalized: FloatArray = -plant.CalcInverseDynamics(
        context, np.zeros(plant.num_velocities()), forces
    )
    applied_generalized = plant.get_applied_generalized_force_input_port()
    if applied_generalized.HasValue(context):
        generalized += applied_generalized.Eval(context)
    actuation = _actuation(plant, context)
    for index in plant.GetJointActuatorIndices():
        actuator = plant.get_joint_actuator(index)
        if not actuator.has_controller():
            u = actuation[actuator.input_start()]
            generalized[actuator.joint().velocity_start()] += u
    return generalized


def _actuation(plant: MultibodyPlant, context: Context) -> FloatArray:
    """Inputs of all actuators; 0 where nothing is connected."""
    actuation = np.zeros(plant.num_actuators())
    if not plant.num_actuators():
        return actuation
    port = plant.get_actuation_input_port()
    if port.HasValue(context):
        actuation += port.Eval(context)
        return actuation
    # Models may have inputs of their own.
    inputs: dict[int, list[float]] = {}
    for index in plant.GetJointActuatorIndices():
        actuator = plant.get_joint_actuator(index)
        instance = int(actuator.model_instance())
        if instance not in inputs:
            port = plant.get_actuation_input_port(actuator.model_instance())
            inputs[instance] = list(port.Eval(context)) if port.HasValue(context) else []
        if inputs[instance]:
            actuation[actuator.input_start()] = inputs[instance].pop(0)
    return actuation


def _servos(
    plant: MultibodyPlant, context: Context, layout: Layout, diagonal: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """δt K_p + K_d and u_0 + K_p (q_d - q_0) + K_d v_d of each velocity [nv]."""
    dt = plant.time_step()
    gains, push = np.zeros(len(layout.velocities)), np.zeros(len(layout.velocities))
    place = np.argsort(layout.velocities)
    actuation = None
    desired: dict[int, FloatArray] = {}
    counted: dict[int, int] = {}
    for index in plant.GetJointActuatorIndices():
        actuator = plant.get_joint_actuator(index)
        instance = int(actuator.model_instance())
        turn = counted.get(instance, 0)  # which actuator of its model it is
        counted[instance] = turn + 1
        if not actuator.has_controller():
            continue
        if instance not in desired:
            port = plant.get_desired_state_input_port(actuator.model_instance())
            desired[instance] = port.Eval(context) if port.HasValue(context) else np.empty(0)
        if not desired[instance].size:
            continue  # Drake does not control what it has no wish for
        if actuation is None:
            actuation = _actuation(plant, context)
        joint = actuator.joint()
        i = place[joint.velocity_start()]
        half = len(desired[instance]) // 2
        wanted_q, wanted_v = desired[instance][turn], desired[instance][half + turn]
        k_p, k_d = _clamped(actuator.get_controller_gains(), dt, 1 / diagonal[i])
        gains[i] += dt * k_p + k_d
        push[i] += actuation[actuator.input_start()]
        push[i] += k_p * (wanted_q - joint.GetOnePosition(context)) + k_d * wanted_v
    return gains, push


def _clamped(gains: PdControllerGains, dt: float, w: float) -> tuple[float, float]:
    """Gains that the time step can resolve, in the ratio of those that are wanted."""
    k_p, k_d = float(gains.p), float(gains.d)
    regularization = 1 / (dt * (dt * k_p + k_d))
    near_rigid = _PD_BETA**2 / (4 * math.pi**2) * w
    scale = min(1.0, regularization / near_rigid)
    return scale * k_p, scale * k_d
