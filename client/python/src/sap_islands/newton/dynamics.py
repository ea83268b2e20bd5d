"""Dynamics of a state: A and v* of trees and free bodies.

    (H + δt d + δt² k) v* = H v_0 + δt (f - C - G - k (q - q_rest))

with H the mass matrix of an articulation with its armature, d and k the passive dampers and springs
of its joints, and f applied forces. Forces of contacts and drives are the solver's.
"""

from __future__ import annotations

from dataclasses import dataclass

import newton
import numpy as np
import warp as wp

from sap_islands.arrays import FloatArray
from sap_islands.newton.coordinates import Coordinates, rotations_of
from sap_islands.newton.layout import Layout, numpy_of
from sap_islands.problem import RigidBodies, Trees


@dataclass
class Dynamics:
    """What of a state the problem is made of.

    Attributes:
        rotation: [bodies, 3, 3] body to world.
        position: [bodies, 3] origin of the body [m].
        center: [bodies, 3] center of mass in the world [m].
        twist: [bodies, 6] velocity of the center of mass and angular velocity, world axes.
        jacobian: [articulations, links, 6, dofs] of these twists; empty: there are no trees.
        q: [coordinates] of the joints.
        qd: [dofs] of the joints.
        trees: For the problem.
        bodies: For the problem.
    """

    rotation: FloatArray
    position: FloatArray
    center: FloatArray
    twist: FloatArray
    jacobian: FloatArray
    q: FloatArray
    qd: FloatArray
    trees: Trees
    bodies: RigidBodies


def make_dynamics(
    model: newton.Model,
    layout: Layout,
    coordinates: Coordinates,
    state: newton.State,
    control: newton.Control,
    time_step: float,
) -> Dynamics:
    """Reads a state, whose body positions belong to its joint positions."""
    pose = numpy_of(state.body_q)
    rotation, position = rotations_of(pose[:, 3:]), pose[:, :3]
    center = position + np.einsum("bij,bj->bi", rotation, numpy_of(model.body_com))
    mass = numpy_of(model.body_mass)
    inertia = rotation @ numpy_of(model.body_inertia) @ rotation.transpose(0, 2, 1)
    inertia = (inertia + inertia.transpose(0, 2, 1)) / 2
    twist, q, qd = (numpy_of(a) for a in (state.body_qd, state.joint_q, state.joint_qd))
    wrench = numpy_of(state.body_f)
    force = (
        np.zeros(model.joint_dof_count) if control.joint_f is None else numpy_of(control.joint_f)
    )
    jacobian = _jacobian(model, state) if layout.trees else np.zeros((0, 0, 6, 0))
    dynamics = Dynamics(
        rotation, position, center, twist, jacobian, q, qd, Trees.none(), RigidBodies.none()
    )
    dynamics.bodies = _free_bodies(model, layout, dynamics, mass, inertia, wrench, force, time_step)
    if layout.trees:
        dynamics.trees = _trees(
            model, layout, coordinates, state, dynamics, (mass, inertia), wrench, force, time_step
        )
    return dynamics


def _jacobian(model: newton.Model, state: newton.State) -> FloatArray:
    J = numpy_of(newton.eval_jacobian(model, state))
    return J.reshape(J.shape[0], -1, 6, J.shape[2])


def _free_bodies(
    model: newton.Model,
    layout: Layout,
    dynamics: Dynamics,
    mass: FloatArray,
    inertia: FloatArray,
    wrench: FloatArray,
    joint_force: FloatArray,
    time_step: float,
) -> RigidBodies:
    own = layout.free_bodies
    dofs = model.joint_qd_start.numpy()[layout.free_joints][:, None] + np.arange(6)
    wrench = wrench[own] + joint_force[dofs]
    v_0, m, I_b = dynamics.twist[own], mass[own], inertia[own]
    v_star = v_0.copy()
    v_star[:, :3] += time_step * (_gravity(model)[own] + wrench[:, :3] / m[:, None])
    spin = v_0[:, 3:]
    torque = wrench[:, 3:] - np.cross(spin, np.einsum("bij,bj->bi", I_b, spin))
    v_star[:, 3:] += time_step * np.linalg.solve(I_b, torque[:, :, None])[:, :, 0]
    return RigidBodies(
        mass=m,
        inertia=I_b[:, [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]],
        center_of_mass=dynamics.center[own],
        free_motion_velocity=v_star,
        guess_velocity=v_0,
        initial_velocity=v_0,
    )


def _gravity(model: newton.Model) -> FloatArray:
    """[bodies, 3] gravity of the world of each body; those of no world have the last one."""
    return numpy_of(model.gravity)[model.body_world.numpy()]


def _trees(
    model: newton.Model,
    layout: Layout,
    coordinates: Coordinates,
    state: newton.State,
    dynamics: Dynamics,
    mass_inertia: tuple[FloatArray, FloatArray],
    wrench: FloatArray,
    joint_force: FloatArray,
    time_step: float,
) -> Trees:
    mass, inertia = mass_inertia
    gravity, coriolis = (wp.zeros(model.joint_dof_count, float, device=model.device) for _ in "gc")
    newton.eval_inverse_dynamics_passive(
        model, state, gravity_force=gravity, coriolis_force=coriolis
    )
    force = joint_force - numpy_of(gravity) - numpy_of(coriolis)
    stiffness, damping = numpy_of(model.joint_stiffness), numpy_of(model.joint_damping)
    stretch = np.zeros(model.joint_dof_count)
    single = coordinates.of_dof >= 0
    stretch[single] = (dynamics.q - numpy_of(model.joint_rest_q))[coordinates.of_dof[single]]
    implicit = time_step * (damping + time_step * stiffness)
    matrices, v_stars, v_0s = [], [], []
    for tree in layout.trees:
        n = tree.dofs.stop - tree.dofs.start
        J = dynamics.jacobian[tree.articulation, : len(tree.bodies), :, :n]
        m, I_b = mass[tree.bodies], inertia[tree.bodies]
        H = np.einsum("b,bik,bil->kl", m, J[:, :3], J[:, :3]) + np.einsum(
            "bik,bij,bjl->kl", J[:, 3:], I_b, J[:, 3:]
        )
        H += np.diag(numpy_of(model.joint_armature)[tree.dofs])
        v_0 = dynamics.qd[tree.dofs]
        f = force[tree.dofs] + np.einsum("bik,bi->k", J, wrench[tree.bodies])
        f = f - stiffness[tree.dofs] * stretch[tree.dofs]
        A = H + np.diag(implicit[tree.dofs])
        A = (A + A.T) / 2
        matrices.append(A)
        v_0s.append(v_0)
        v_stars.append(np.linalg.solve(A, H @ v_0 + time_step * f))
    v_0 = np.concatenate(v_0s)
    return Trees.from_blocks(
        matrices, np.concatenate(v_stars), guess_velocity=v_0, initial_velocity=v_0
    )
