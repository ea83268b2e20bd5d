"""Dynamics matrix A and free-motion velocity v* of a Drake model, tree by tree.

As in Drake's discrete solver, joint damping is taken at the end of the step,

    A v* = A v_0 + δt τ_0,   A = M + δt D

with τ_0 all forces except those of constraints, at the beginning of the step. Drake treats PD
controllers as constraints; without effort limits they are quadratic, and are added to A and v*:

    A' = A + δt (δt K_p + K_d),   A' v*' = A v* + δt (u_0 + K_p (q_d - q_0) + K_d v_d)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import MultibodyForces
from pydrake.systems.framework import Context

from sap_islands.arrays import FloatArray
from sap_islands.drake.layout import Layout
from sap_islands.numba_kernels import IndexArray, compiled, solve_in_place

_PD_BETA = 0.1  # near-rigid parameter with which Drake limits the gains


class Dynamics(NamedTuple):
    """A and v* of one step; velocities are in the order of the problem.

    Attributes:
        blocks: [sum n_t²] A' of each tree, row-major, concatenated.
        v_star: [nv] v*' [m/s, rad/s].
        v_star_without_servos: [nv] v*, with which Drake selects joint limits [m/s, rad/s].
        diagonal: [nv] diagonal of A without PD controllers, with which Drake scales constraints.
    """

    blocks: FloatArray
    v_star: FloatArray
    v_star_without_servos: FloatArray
    diagonal: FloatArray


def evaluate(
    plant: MultibodyPlant, context: Context, layout: Layout, position: FloatArray
) -> Dynamics:
    """A and v* at the state of the plant's context; `position` is its q."""
    nv = len(layout.velocities)
    damping = np.zeros(nv)
    for index, span in layout.joints:
        damping[span] = plant.get_joint(index).GetDampingVector(context)
    actuation = _actuation(plant, context, layout)
    dofs = layout.dofs.astype(np.int64)
    dynamics = Dynamics(np.empty(dofs @ dofs), np.empty(nv), np.empty(nv), np.empty(nv))
    _assemble(
        layout.velocities,
        layout.first,
        plant.time_step(),
        plant.CalcMassMatrix(context).ravel(order="K"),  # symmetric: either order is the same
        damping,
        plant.GetVelocities(context),
        _applied_forces(plant, context, layout, actuation),
        _servos(plant, context, layout, position, actuation),
        *dynamics,
    )
    return dynamics


@compiled
def _assemble(
    velocities: IndexArray,
    first: IndexArray,
    dt: float,
    mass: FloatArray,
    damping: FloatArray,
    v_0: FloatArray,
    force: FloatArray,
    servos: FloatArray,
    blocks: FloatArray,
    v_star: FloatArray,
    v_star_without_servos: FloatArray,
    diagonal: FloatArray,
) -> None:
    """Writes the arrays of `Dynamics`.

    `velocities` and `first` are those of the layout; mass, damping, v_0 and force are in Drake's
    order, [nv²] and [nv].
    """
    nv = len(velocities)
    gains, pd_force = np.zeros(nv), np.zeros(nv)
    for i in range(nv):
        v = velocities[i]
        diagonal[i] = mass[nv * v + v] + dt * damping[v]
        _add_servos(servos, v, dt, 1.0 / diagonal[i], i, gains, pd_force)
    start = 0
    for tree in range(len(first) - 1):
        begin, end = first[tree], first[tree + 1]
        n = end - begin
        block = blocks[start : start + n * n].reshape((n, n))
        start += n * n
        change = np.empty(n)
        for i in range(n):
            v = velocities[begin + i]
            for j in range(n):
                block[i, j] = mass[nv * v + velocities[begin + j]]
            block[i, i] = diagonal[begin + i]
            change[i] = dt * force[v]
        solve_in_place(block.copy(), change)
        for i in range(n):
            v_star[begin + i] = v_0[velocities[begin + i]] + change[i]
            v_star_without_servos[begin + i] = v_star[begin + i]
        if gains[begin:end].any() or pd_force[begin:end].any():
            for i in range(n):
                change[i] = dt * pd_force[begin + i]
                for j in range(n):
                    change[i] += block[i, j] * v_star[begin + j]
            for i in range(n):
                block[i, i] += dt * gains[begin + i]
            solve_in_place(block.copy(), change)
            v_star[begin:end] = change


@compiled
def _add_servos(
    servos: FloatArray,
    velocity: int,
    dt: float,
    w: float,
    place: int,
    gains: FloatArray,
    pd_force: FloatArray,
) -> None:
    """Adds δt K_p + K_d and u_0 + K_p (q_d - q_0) + K_d v_d of the servos of one of Drake's v.

    As in Drake, gains that the time step cannot resolve are reduced; their ratio is kept.
    """
    for row in range(len(servos)):
        if servos[row, 0] != velocity:
            continue
        k_p, k_d = servos[row, 1], servos[row, 2]
        regularization = 1.0 / (dt * (dt * k_p + k_d))
        near_rigid = _PD_BETA**2 / (4.0 * math.pi**2) * w
        scale = min(1.0, regularization / near_rigid)
        gains[place] += scale * (dt * k_p + k_d)
        pd_force[place] += servos[row, 3] + scale * (k_p * servos[row, 4] + k_d * servos[row, 5])


def _applied_forces(
    plant: MultibodyPlant, context: Context, layout: Layout, actuation: FloatArray
) -> FloatArray:
    """Generalized forces [nv] in Drake's order: gravity, springs, damping, inputs and bias."""
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
        context, np.zeros(len(layout.velocities)), forces
    )
    applied_generalized = plant.get_applied_generalized_force_input_port()
    if applied_generalized.HasValue(context):
        generalized += applied_generalized.Eval(context)
    for actuator in layout.actuators:
        if not actuator.has_controller:
            generalized[actuator.velocity] += actuation[actuator.input]
    return generalized


def _actuation(plant: MultibodyPlant, context: Context, layout: Layout) -> FloatArray:
    """Input of each actuator; 0 if its port is not connected."""
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


def _servos(
    plant: MultibodyPlant,
    context: Context,
    layout: Layout,
    position: FloatArray,
    actuation: FloatArray,
) -> FloatArray:
    """[S, 6]: for each PD controller its index in Drake's v, K_p, K_d, u_0, q_d - q_0, v_d."""
    servos = []
    desired: dict[int, FloatArray] = {}
    for actuator in layout.actuators:
        if not actuator.has_controller:
            continue
        instance = int(actuator.instance)
        if instance not in desired:
            port = plant.get_desired_state_input_port(actuator.instance)
            desired[instance] = port.Eval(context) if port.HasValue(context) else np.empty(0)
        wanted = desired[instance]
        if not len(wanted):
            continue  # as in Drake: without a desired state the controller is off
        gains = plant.get_joint_actuator(actuator.index).get_controller_gains()
        error = wanted[actuator.index_in_instance] - position[actuator.position]
        wanted_v = wanted[len(wanted) // 2 + actuator.index_in_instance]
        u_0 = actuation[actuator.input]
        servos.append((actuator.velocity, gains.p, gains.d, u_0, error, wanted_v))
    return np.array(servos, np.float64).reshape(-1, 6)
