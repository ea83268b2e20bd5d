"""SapSolver in Newton's solver slot, against the laws of mechanics."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sap_islands.errors import InvalidArgument

newton = pytest.importorskip("newton", reason="Newton is installed by tests/python.sh --full")
# Not skipped over: where Newton is installed, these must load.
wp = importlib.import_module("warp")
sap_newton = importlib.import_module("sap_islands.newton")

pytestmark = pytest.mark.full  # Newton's kernels are compiled for minutes, once

G = 9.81
UPRIGHT = (0.0, 0.0, 0.0, 1.0)


class Scene:
    """A model that is stepped on the CPU."""

    def __init__(
        self, build: Callable[[Any], object], time_step: float = 0.005, **settings: Any
    ) -> None:
        builder = newton.ModelBuilder(gravity=(0.0, 0.0, -G))
        build(builder)
        self.model = builder.finalize(device="cpu")
        self.dt = time_step
        self.state, self._next = self.model.state(), self.model.state()
        newton.eval_fk(self.model, self.model.joint_q, self.model.joint_qd, self.state)
        self.control = self.model.control()
        self.pipeline = newton.CollisionPipeline(self.model)
        self.contacts = self.pipeline.contacts()
        self.solver = sap_newton.SapSolver(self.model, on_unsolved="raise", **settings)

    def step(self) -> None:
        self.state.clear_forces()
        self.pipeline.collide(self.state, self.contacts)
        self.solver.step(self.state, self._next, self.control, self.contacts, self.dt)
        self.state, self._next = self._next, self.state

    def run(self, seconds: float) -> Scene:
        for _ in range(round(seconds / self.dt)):
            self.step()
        return self

    def position(self, body: int) -> Any:
        return self.state.body_q.numpy()[body, :3].astype(float)

    def velocity(self, body: int) -> Any:
        return self.state.body_qd.numpy()[body].astype(float)

    def normal_force(self) -> float:
        solution = self.solver.solution
        assert solution is not None
        return float(solution.impulse.reshape(-1, 3)[:, 2].sum() / self.dt)


def add_box(
    builder: Any,
    position: tuple[float, float, float],
    half: tuple[float, float, float],
    mass: float,
    friction: float = 0.5,
) -> int:
    body = builder.add_body(xform=wp.transform(position, UPRIGHT))
    shape = newton.ModelBuilder.ShapeConfig(density=mass / (8 * math.prod(half)), mu=friction)
    builder.add_shape_box(body, hx=half[0], hy=half[1], hz=half[2], cfg=shape)
    return int(body)


def add_ground(builder: Any, friction: float = 0.5) -> None:
    builder.add_ground_plane(cfg=newton.ModelBuilder.ShapeConfig(mu=friction))


def add_pendulum(builder: Any, mass: float = 2.0, length: float = 0.5, **joint: Any) -> int:
    """A point mass below a hinge at a height of 2 m that turns about y."""
    link = builder.add_link(
        xform=wp.transform((0, 0, 2 - length), UPRIGHT),
        mass=mass,
        inertia=wp.mat33(np.eye(3) * 1e-3),
    )
    hinge = builder.add_joint_revolute(
        -1,
        link,
        parent_xform=wp.transform((0, 0, 2), UPRIGHT),
        child_xform=wp.transform((0, 0, length), UPRIGHT),
        axis=(0, 1, 0),
        **joint,
    )
    builder.add_articulation([hinge])
    return int(link)


def test_a_box_rests_with_its_weight() -> None:
    def build(builder: Any) -> None:
        add_ground(builder)
        add_box(builder, (0, 0, 0.11), (0.1, 0.1, 0.1), 3.0)

    scene = Scene(build).run(1)
    assert scene.normal_force() == pytest.approx(3 * G, rel=1e-4)
    assert scene.position(0)[2] == pytest.approx(0.1, abs=1e-4)
    assert np.abs(scene.velocity(0)).max() < 1e-4


def test_a_hundred_kilograms_rest_on_a_tower_of_one_each() -> None:
    def build(builder: Any) -> None:
        add_ground(builder)
        for i in range(5):
            add_box(builder, (0, 0, 0.05 + 0.1 * i), (0.05,) * 3, 100.0 if i == 4 else 1.0)

    scene = Scene(build).run(1)
    assert scene.position(4)[2] == pytest.approx(0.45, abs=1e-3)
    assert np.abs(scene.velocity(4)[:3]).max() < 1e-3


@pytest.mark.parametrize("angle", [0.0, 45.0])
def test_a_box_slides_half_its_speed_squared_over_mu_g_and_does_not_hover(angle: float) -> None:
    def build(builder: Any) -> None:
        add_ground(builder, 0.4)
        add_box(builder, (0, 0, 0.05), (0.25, 0.25, 0.05), 2.0, 0.4)

    scene = Scene(build, time_step=0.002)
    direction = np.array([math.cos(math.radians(angle)), math.sin(math.radians(angle)), 0])
    twist = np.zeros(6, np.float32)
    twist[:3] = 2 * direction
    scene.state.joint_qd.assign(twist)
    newton.eval_fk(scene.model, scene.state.joint_q, scene.state.joint_qd, scene.state)
    highest = 0.0
    for _ in range(500):
        scene.step()
        highest = max(highest, scene.position(0)[2])
    way = scene.position(0) * (1, 1, 0)
    assert np.linalg.norm(way) == pytest.approx(4 / (2 * 0.4 * G), abs=5e-3)
    assert way @ direction == pytest.approx(np.linalg.norm(way), rel=1e-4)
    assert highest < 0.05 + 1e-4


@pytest.mark.parametrize("slope", [0.9, 1.2])
def test_below_the_friction_angle_a_box_stays_and_above_it_slides(slope: float) -> None:
    angle = math.atan(0.5 * slope)

    def build(builder: Any) -> None:
        add_ground(builder)
        add_box(builder, (0, 0, 0.05), (0.2, 0.2, 0.05), 2.0)

    scene = Scene(build)
    scene.model.set_gravity((G * math.sin(angle), 0.0, -G * math.cos(angle)))
    scene.run(1)
    expected = max(0.0, G * (math.sin(angle) - 0.5 * math.cos(angle)))
    assert scene.velocity(0)[0] == pytest.approx(expected, abs=5e-3)


def test_a_collision_keeps_momentum() -> None:
    def build(builder: Any) -> None:
        add_box(builder, (-0.3, 0, 0), (0.1, 0.1, 0.1), 1.0)
        add_box(builder, (0, 0, 0), (0.1, 0.1, 0.1), 3.0)

    scene = Scene(build)
    scene.model.set_gravity((0.0, 0.0, 0.0))
    twists = np.zeros((2, 6), np.float32)
    twists[0, 0] = 2
    scene.state.joint_qd.assign(twists.ravel())
    newton.eval_fk(scene.model, scene.state.joint_q, scene.state.joint_qd, scene.state)
    scene.run(0.5)
    v_left, v_right = scene.velocity(0)[0], scene.velocity(1)[0]
    assert v_left + 3 * v_right == pytest.approx(2, abs=1e-5)
    assert v_left < v_right + 1e-3


def test_a_pendulum_has_its_period() -> None:
    scene = Scene(add_pendulum, time_step=0.001)
    scene.state.joint_q.assign(np.array([0.1], np.float32))
    newton.eval_fk(scene.model, scene.state.joint_q, scene.state.joint_qd, scene.state)
    inertia = 2 * 0.5**2 + 1e-3
    quarter = math.pi / 2 * math.sqrt(inertia / (2 * G * 0.5)) * (1 + 0.1**2 / 16)
    scene.run(quarter)
    assert scene.state.joint_q.numpy()[0] == pytest.approx(0, abs=1e-3)


def test_a_drive_holds_its_target_up_to_the_weight_over_its_stiffness() -> None:
    def build(builder: Any) -> None:
        add_pendulum(
            builder,
            target_q=1.0,
            target_ke=200.0,
            target_kd=20.0,
            actuator_mode=newton.JointTargetMode.POSITION,
        )

    scene = Scene(build).run(5)
    q = float(scene.state.joint_q.numpy()[0])
    assert 200 * (1.0 - q) == pytest.approx(2 * G * 0.5 * math.sin(q), abs=1e-2)


def test_a_drive_gives_no_more_than_its_effort() -> None:
    def build(builder: Any) -> None:
        add_pendulum(
            builder,
            target_q=1.5,
            target_ke=1000.0,
            target_kd=100.0,
            effort_limit=4.0,
            actuator_mode=newton.JointTargetMode.POSITION,
            friction=0.5,
        )

    # 4 N m against the weight of 9.81 N m sin(q), within the friction of 0.5 N m.
    scene = Scene(build).run(8)
    q = float(scene.state.joint_q.numpy()[0])
    assert abs(4 - 2 * G * 0.5 * math.sin(q)) < 0.51
    assert abs(scene.state.joint_qd.numpy()[0]) < 1e-3


def test_a_limit_holds_against_a_force() -> None:
    def build(builder: Any) -> None:
        add_pendulum(builder, limit_lower=-0.2, limit_upper=0.5)

    scene = Scene(build)
    scene.control.joint_f.assign(np.array([50.0], np.float32))
    largest = 0.0
    for _ in range(400):
        scene.step()
        largest = max(largest, float(scene.state.joint_q.numpy()[0]))
    assert largest == pytest.approx(0.5, abs=1e-3)


def test_an_arm_carries_what_lies_on_it() -> None:
    """A contact between an articulation and a free body."""

    def build(builder: Any) -> None:
        link = builder.add_link(xform=wp.transform((0, 0, 1), UPRIGHT))
        builder.add_shape_box(link, hx=0.3, hy=0.3, hz=0.05)
        slider = builder.add_joint_prismatic(
            -1,
            link,
            parent_xform=wp.transform((0, 0, 1), UPRIGHT),
            axis=(0, 0, 1),
            target_q=0.0,
            target_ke=1e4,
            target_kd=1e3,
            actuator_mode=newton.JointTargetMode.POSITION,
        )
        builder.add_articulation([slider])
        add_box(builder, (0, 0, 1.1), (0.05, 0.05, 0.05), 5.0)

    scene = Scene(build).run(2)
    table = float(scene.model.body_mass.numpy()[0])
    assert scene.state.joint_q.numpy()[0] == pytest.approx(-(table + 5) * G / 1e4, rel=1e-3)
    assert scene.normal_force() == pytest.approx(5 * G, rel=1e-3)


def test_worlds_are_islands_of_one_call_with_the_same_motion() -> None:
    single = newton.ModelBuilder(gravity=(0.0, 0.0, -G))
    add_box(single, (0, 0, 0.2), (0.1, 0.1, 0.1), 1.0)

    def build(builder: Any) -> None:
        builder.replicate(single, 4)
        add_ground(builder)

    scene = Scene(build).run(0.5)
    assert scene.solver.solution is not None
    assert len(scene.solver.solution.islands) == 4
    heights = scene.state.body_q.numpy()[:, 2]
    assert heights == pytest.approx(np.full(4, 0.1), abs=1e-4)
    assert np.ptp(heights) == 0


def test_a_kinematic_body_carries_what_lies_on_it() -> None:
    def build(builder: Any) -> None:
        belt = builder.add_body(xform=wp.transform((0, 0, -0.1), UPRIGHT), is_kinematic=True)
        builder.add_shape_box(belt, hx=5, hy=1, hz=0.1)
        add_box(builder, (0, 0, 0.1), (0.1, 0.1, 0.1), 1.0)

    scene = Scene(build)
    twist = np.zeros((2, 6), np.float32)
    twist[0, 0] = 0.5
    scene.state.joint_qd.assign(twist.ravel())
    newton.eval_fk(scene.model, scene.state.joint_q, scene.state.joint_qd, scene.state)
    scene.run(1)
    assert scene.velocity(0)[0] == pytest.approx(0.5)
    assert scene.velocity(1)[0] == pytest.approx(0.5, abs=1e-3)
    assert scene.position(0)[0] == pytest.approx(0.5, abs=1e-3)


def test_what_is_not_supported_is_named() -> None:
    def add_particle(builder: Any) -> None:
        builder.add_particle((0, 0, 1), (0, 0, 0), 1.0)

    with pytest.raises(InvalidArgument, match="particles"):
        Scene(add_particle)

    def add_distance(builder: Any) -> None:
        link = builder.add_link(mass=1.0, inertia=wp.mat33(np.eye(3)))
        joint = builder.add_joint_distance(-1, link, max_distance=1.0, label="rope")
        builder.add_articulation([joint])

    with pytest.raises(InvalidArgument, match="'rope' is of type DISTANCE"):
        Scene(add_distance)
