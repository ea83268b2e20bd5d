"""Joints between free bodies, and free motion: what mechanics says of them."""

from __future__ import annotations

import numpy as np
import pytest
import sap_islands as sap
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

RIGID = sap.Regularization.rigid()
KINDS = ("ball", "hinge", "slider", "weld")
# Which of the three directions and three turns of the frames each joint leaves free.
FREE = {"ball": [3, 4, 5], "hinge": [5], "slider": [2], "weld": []}


def axis_rotation(seed: int) -> np.ndarray:
    return np.asarray(Rotation.random(rng=np.random.default_rng(seed)).as_matrix())


def two_bodies(seed: int) -> sap.RigidBodies:
    """Bodies of 1 and 3 kg somewhere, that fly and turn."""
    rng = np.random.default_rng(seed)
    return sap.RigidBodies(
        mass=[1.0, 3.0],
        inertia=[[0.01, 0.02, 0.025, 0.001, 0, 0.002], [0.1, 0.1, 0.04, 0, 0.01, 0]],
        center_of_mass=rng.normal(size=(2, 3)),
        free_motion_velocity=rng.normal(size=(2, 6)),
    )


def inertia_matrix(six: np.ndarray) -> np.ndarray:
    xx, yy, zz, xy, xz, yz = six
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def angular_momentum(bodies: sap.RigidBodies, v: np.ndarray) -> np.ndarray:
    """About the origin."""
    orbital = np.cross(bodies.center_of_mass, bodies.mass[:, None] * v[:, :3])
    spin = [inertia_matrix(six) @ w[3:] for six, w in zip(bodies.inertia, v, strict=True)]
    return np.asarray(orbital.sum(axis=0) + np.sum(spin, axis=0))


@pytest.mark.parametrize("kind", KINDS)
def test_a_joint_holds_its_directions_and_keeps_momentum(client: sap.Client, kind: str) -> None:
    bodies = two_bodies(3)
    frame = sap.Frame(np.array([0.3, -0.2, 0.5]), axis_rotation(4))
    joints = sap.Joints(bodies)
    getattr(joints, kind)(0, 1, frame, frame)
    solution = client.solve(
        sap.Problem(0.01, bodies=bodies, rows=joints.rows(), regularization=RIGID)
    )
    v = solution.velocity.reshape(2, 6)
    ends = v[:, :3] + np.cross(v[:, 3:], frame.position - bodies.center_of_mass)
    relative = np.concatenate([ends[0] - ends[1], v[0, 3:] - v[1, 3:]])
    in_frame = np.concatenate([frame.rotation.T @ part for part in relative.reshape(2, 3)])
    held = np.delete(np.arange(6), FREE[kind])
    assert np.abs(in_frame[held]).max() < 1e-5
    if FREE[kind]:
        assert np.abs(in_frame[FREE[kind]]).min() > 0.01

    before, mass = bodies.free_motion_velocity, bodies.mass
    assert mass @ v[:, :3] == pytest.approx(mass @ before[:, :3], abs=1e-9)
    assert angular_momentum(bodies, v) == pytest.approx(angular_momentum(bodies, before), abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_joint_takes_back_what_is_open(client: sap.Client, kind: str) -> None:
    # Up to the square of what was open, 0.024 m and 0.023 rad.
    bodies = sap.RigidBodies(1.0, [0.01, 0.02, 0.025, 0, 0, 0], [0, 0, 0], np.zeros((1, 6)))
    axes = axis_rotation(5)
    turn = sap.rotations([[0.01, -0.02, 0.005]])[0]
    joints = sap.Joints(bodies)
    frame_a = sap.Frame(np.array([0.11, 0.02, -0.01]), turn @ axes)
    frame_b = sap.Frame(np.array([0.1, 0.0, 0.0]), axes)
    getattr(joints, kind)(0, sap.WORLD, frame_a, frame_b)
    dt = 0.01
    problem = sap.Problem(dt, bodies=bodies, rows=joints.rows(), regularization=RIGID)
    v = client.solve(problem).velocity
    moved = sap.rotations([dt * v[3:]])[0]
    position = dt * v[:3] + moved @ frame_a.position
    gap = axes.T @ (position - frame_b.position)
    angle = axes.T @ Rotation.from_matrix(moved @ turn).as_rotvec()
    left = np.delete(np.concatenate([gap, angle]), FREE[kind])
    assert np.abs(left).max() < np.linalg.norm(frame_a.position - frame_b.position) ** 2


def test_a_hinged_rod_starts_to_fall_as_a_physical_pendulum(client: sap.Client) -> None:
    mass, length, dt = 2.0, 0.6, 1e-3
    moment = mass * length**2 / 12
    bodies = sap.RigidBodies(
        mass,
        [1e-4, moment, moment, 0, 0, 0],
        [[length / 2, 0, 0]],
        [0, 0, -9.81 * dt, 0, 0, 0],
    )
    about_y = sap.Frame([0, 0, 0], np.array([[1, 0, 0], [0, 0, 1], [0, -1, 0]]))
    joints = sap.Joints(bodies)
    joints.hinge(0, sap.WORLD, about_y, about_y)
    v = client.solve(
        sap.Problem(dt, bodies=bodies, rows=joints.rows(), regularization=RIGID)
    ).velocity
    # m g L / 2 over the moment about the end, m L^2 / 3.
    assert v[4] == pytest.approx(1.5 * 9.81 / length * dt, rel=1e-5)


def test_a_gear_turns_two_shafts_in_its_ratio(client: sap.Client) -> None:
    v = np.zeros((2, 6))
    v[0, 5] = 3.0
    bodies = sap.RigidBodies([1.0, 1.0], [0.1, 0.1, 0.1, 0, 0, 0], [[0, 0, 0], [1, 0, 0]], v)
    joints = sap.Joints(bodies)
    for body, x in ((0, 0.0), (1, 1.0)):
        joints.hinge(body, sap.WORLD, sap.Frame([x, 0, 0]), sap.Frame([x, 0, 0]))
    joints.gear(0, 1, [0, 0, 1], [0, 0, 1], ratio=-2)
    solution = client.solve(
        sap.Problem(0.01, bodies=bodies, rows=joints.rows(), regularization=RIGID)
    )
    fast = solution.velocity.reshape(2, 6)[:, 5]
    # The impulse of the gear slows the first by j ratio / I and turns the second by j / I.
    assert fast == pytest.approx([3.0 / 5, -6.0 / 5], rel=1e-4)


def test_a_chain_of_hinges_swings_without_coming_apart(client: sap.Client) -> None:
    """Three rods of 0.2 m fall from the horizontal for half a second."""
    dt, count, length = 1e-3, 3, 0.2
    center = np.array([[length * (i + 0.5), 0, 0] for i in range(count)])
    moment = length**2 / 12
    bodies = sap.RigidBodies(
        np.ones(count),
        [1e-4, moment, moment, 0, 0, 0],
        center,
        np.tile([0, 0, -9.81 * dt, 0, 0, 0], (count, 1)),
        body_id=np.arange(count),
    )
    orientation = np.tile(np.eye(3), (count, 1, 1))
    about_y = np.array([[1, 0, 0], [0, 0, 1], [0, -1, 0]])
    ends = (np.array([-length / 2, 0, 0]), np.array([length / 2, 0, 0]))
    open_by, energy = [], []
    with client.session() as session:
        for _ in range(500):
            joints = sap.Joints(bodies)
            for i in range(count):
                c, R = bodies.center_of_mass, orientation
                on_a = sap.Frame(c[i] + R[i] @ ends[0], R[i] @ about_y)
                above = sap.Frame(np.zeros(3), about_y)
                if i > 0:
                    above = sap.Frame(c[i - 1] + R[i - 1] @ ends[1], R[i - 1] @ about_y)
                joints.hinge(i, i - 1 if i else sap.WORLD, on_a, above)
                open_by.append(np.linalg.norm(np.subtract(on_a.position, above.position)))
            problem = sap.Problem(dt, bodies=bodies, rows=joints.rows(), regularization=RIGID)
            v = session.step(problem).velocity.reshape(count, 6)
            kinetic = 0.5 * (v[:, :3] ** 2).sum() + 0.5 * moment * (v[:, 4] ** 2).sum()
            energy.append(kinetic + 9.81 * (bodies.center_of_mass[:, 2] + dt * v[:, 2]).sum())
            bodies, turn = sap.advance(bodies, v, dt)
            orientation = turn @ orientation
    assert max(open_by) < 1e-4
    assert bodies.center_of_mass[:, 2].min() < -0.3
    # It falls by some 3 J; implicit steps lose a little of it.
    assert -0.2 < min(energy) <= max(energy) < 0.02


def test_a_body_that_is_not_there_is_named() -> None:
    joints = sap.Joints(two_bodies(1))
    frame = sap.Frame([0, 0, 0])
    for a, b in ((2, 0), (0, 2), (-2, 0)):
        with pytest.raises(sap.InvalidArgument, match="none of the 2 bodies"):
            joints.weld(a, b, frame, frame)


def test_a_free_top_turns_as_eulers_equations_say() -> None:
    """About its middle axis, where it tumbles; to second order in the step."""
    principal = np.diag([0.01, 0.02, 0.03])
    start = np.array([0.1, 3.0, 0.05])

    def euler(_: float, state: np.ndarray) -> np.ndarray:
        R, w = state[:9].reshape(3, 3), state[9:]  # w in axes of the body
        dw = np.linalg.solve(principal, np.cross(principal @ w, w))
        return np.concatenate([(R @ np.cross(np.eye(3), w).T.T).ravel(), dw])

    end = 4.0
    exact = solve_ivp(euler, (0, end), [*np.eye(3).ravel(), *start], rtol=1e-10, atol=1e-12)
    R, w = exact.y[:9, -1].reshape(3, 3), exact.y[9:, -1]
    errors = []
    for steps in (1000, 2000):
        bodies = sap.RigidBodies(1.0, [0.01, 0.02, 0.03, 0, 0, 0], [0, 0, 0], [[0, 0, 0, *start]])
        orientation = np.eye(3)
        for _ in range(steps):
            v = bodies.free_motion_velocity
            bodies, turn = sap.advance(bodies, v, end / steps, gravity=[0, 0, 0])
            orientation = turn[0] @ orientation
        momentum = inertia_matrix(bodies.inertia[0]) @ bodies.free_motion_velocity[0, 3:]
        assert momentum == pytest.approx(principal @ start, abs=1e-13)
        errors.append(np.abs(bodies.free_motion_velocity[0, 3:] - R @ w).max())
        assert np.abs(orientation - R).max() < 0.05
    assert errors[0] < 0.02
    assert errors[1] < 0.3 * errors[0]


def test_forces_and_torques_act_in_the_next_step() -> None:
    bodies = sap.RigidBodies([2.0, 4.0], [0.1, 0.2, 0.4, 0, 0, 0], np.zeros((2, 3)), np.zeros(12))
    following, turn = sap.advance(bodies, np.zeros(12), 0.1, wrench=[8, 0, 0, 0, 0, 4])
    v = following.free_motion_velocity.reshape(2, 6)
    assert v[:, 0] == pytest.approx([0.4, 0.2])
    assert v[:, 2] == pytest.approx(-0.981)
    assert v[:, 5] == pytest.approx(1.0)
    assert turn == pytest.approx(np.tile(np.eye(3), (2, 1, 1)))
