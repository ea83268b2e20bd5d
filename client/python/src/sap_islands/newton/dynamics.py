"""Dynamics of a state: A and v* of trees and free bodies.

    (H + δt d + δt² k) v* = H v_0 + δt (f - C - G - k (q - q_rest))

with H the mass matrix of an articulation with its armature, d and k the passive dampers and springs
of its joints, and f applied forces. Forces of contacts and drives are the solver's. Free bodies,
and trees with a free root as far as they turn as a whole:

    I w = I ω_0 + δt / 2 ((I w) x ω_0 + (I ω_0) x w),   ω* = w |I ω_0| / |I w| + δt I^-1 τ

The gyroscopic term is linearly implicit, and I ω keeps its length. So a body that spins without
torque keeps |I ω| and its energy at every spin and step [Hirota & Kimura 2000, "Discretization of
the Euler Top"].
"""

from __future__ import annotations

from dataclasses import dataclass

import newton
import numpy as np
import warp as wp
from numpy.typing import NDArray

from sap_islands.arrays import FloatArray
from sap_islands.errors import InvalidArgument
from sap_islands.newton.coordinates import Coordinates, cross_matrix, rotations_of
from sap_islands.newton.layout import Layout, numpy_of
from sap_islands.problem import RigidBodies, Trees


@dataclass
class Dynamics:
    """Dynamics of a state, of which the problem is made.

    Attributes:
        rotation: [bodies, 3, 3] body to world.
        position: [bodies, 3] origin of the body [m].
        center: [bodies, 3] center of mass in the world [m].
        twist: [bodies, 6] velocity of the center of mass and angular velocity, world axes.
        free_twist: [bodies, 6] the same at the end of the step without constraints.
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
    free_twist: FloatArray
    jacobian: FloatArray
    q: FloatArray
    qd: FloatArray
    trees: Trees
    bodies: RigidBodies

    def twists(self, layout: Layout, velocity: FloatArray) -> FloatArray:
        """[bodies, 6] as `twist`, at a velocity of the problem."""
        twist = self.twist.copy()
        for tree in layout.trees:
            n = tree.dofs.stop - tree.dofs.start
            J = self.jacobian[tree.articulation, : len(tree.bodies), :, :n]
            twist[tree.bodies] = J @ velocity[tree.first_velocity : tree.first_velocity + n]
        twist[layout.free_bodies] = velocity[layout.num_tree_velocities :].reshape(-1, 6)
        return twist


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
    _check_finite(wrench, "body_f", model.body_label, np.arange(model.body_count))
    joint_of_dof = np.repeat(
        np.arange(model.joint_count),
        np.diff(np.append(model.joint_qd_start.numpy()[: model.joint_count], len(force))),
    )
    _check_finite(force, "joint_f", model.joint_label, joint_of_dof)
    jacobian = _jacobian(model, state) if layout.trees else np.zeros((0, 0, 6, 0))
    dynamics = Dynamics(
        rotation, position, center, twist, twist, jacobian, q, qd, Trees.none(), RigidBodies.none()
    )
    dynamics.bodies = _free_bodies(model, layout, dynamics, mass, inertia, wrench, force, time_step)
    if layout.trees:
        dynamics.trees = _trees(
            model, layout, coordinates, state, dynamics, (mass, inertia), wrench, force, time_step
        )
    v_star = (dynamics.trees.free_motion_velocity, dynamics.bodies.free_motion_velocity.ravel())
    dynamics.free_twist = dynamics.twists(layout, np.concatenate(v_star))
    return dynamics


def _check_finite(
    forces: FloatArray, field: str, labels: list[str], owner: NDArray[np.int_]
) -> None:
    """Refuses forces that are not finite, by the label of what they act on."""
    finite = np.isfinite(forces.reshape(len(owner), -1)).all(axis=1)
    if not finite.all():
        label = labels[owner[np.flatnonzero(~finite)[0]]]
        raise InvalidArgument(f"{field} of {label!r} is not finite", field)


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
    v_star[:, 3:] = _spin_after_step(I_b, v_0[:, 3:], time_step)
    v_star[:, 3:] += time_step * np.linalg.solve(I_b, wrench[:, 3:, None])[:, :, 0]
    return RigidBodies(
        mass=m,
        inertia=I_b[:, [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]],
        center_of_mass=dynamics.center[own],
        free_motion_velocity=v_star,
        guess_velocity=v_0,
        initial_velocity=v_0,
    )


def _spin_after_step(I_b: FloatArray, spin: FloatArray, time_step: float) -> FloatArray:
    """[B, 3] angular velocities after a step without torque."""
    momentum = np.einsum("bij,bj->bi", I_b, spin)
    rows = I_b - time_step / 2 * (cross_matrix(momentum) - cross_matrix(spin) @ I_b)
    # Cramer's rule without its denominator, whose size the scaling takes away.
    cofactors = np.cross(rows[:, [1, 2, 0]], rows[:, [2, 0, 1]])
    determinant = np.einsum("bi,bi->b", rows[:, 0], cofactors[:, 0])
    step = np.einsum("bij,bi->bj", cofactors, momentum) * np.copysign(1, determinant)[:, None]
    length = np.linalg.norm(np.einsum("bij,bj->bi", I_b, step), axis=1)
    moves = length > 0
    scale = np.linalg.norm(momentum[moves], axis=1) / length[moves]
    step[moves] *= scale[:, None]
    return np.where(moves[:, None], step, spin)


def _implicit_turning(
    mass: FloatArray, inertia: FloatArray, center: FloatArray, spin: FloatArray, time_step: float
) -> FloatArray:
    """Matrix of the implicit gyroscopic term of a tree, as far as it turns as a rigid whole.

    Args:
        mass: [links].
        inertia: [links, 3, 3] about the centers of mass, world axes.
        center: [links, 3] centers of mass, that of the root first.
        spin: [3] angular velocity of the root.
        time_step: δt [s].

    Returns:
        [6] change of the twist of the root.
    """
    middle = mass @ center / mass.sum()
    arms = cross_matrix(center - middle)
    whole = inertia.sum(axis=0) - np.einsum("b,bij,bjk->ik", mass, arms, arms)
    momentum = whole @ spin
    explicit = spin + time_step * np.linalg.solve(whole, np.cross(momentum, spin))
    turning = _spin_after_step(whole[None], spin[None], time_step)[0] - explicit
    return np.concatenate([np.cross(turning, center[0] - middle), turning])


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
    coordinates.to_joint_axes(force, coordinates.free_joints)
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
        v_star = np.linalg.solve(A, H @ v_0 + time_step * f)
        if tree.free_root is not None:
            spin = dynamics.twist[tree.bodies[0], 3:]
            v_star[:6] += coordinates.in_joint_axes(
                _implicit_turning(m, I_b, dynamics.center[tree.bodies], spin, time_step),
                tree.free_root,
            )
        v_stars.append(v_star)
    v_0 = np.concatenate(v_0s)
    return Trees.from_blocks(
        matrices, np.concatenate(v_stars), guess_velocity=v_0, initial_velocity=v_0
    )
