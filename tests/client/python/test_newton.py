"""SapSolver in Newton's solver slot, against the laws of mechanics."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sap_islands.errors import InvalidArgument

from support.newton_scene import UPRIGHT, G, Scene, add_box, add_ground, newton, sap_newton, wp


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


def test_a_kinematic_body_carries_what_lies_on_it_and_stays() -> None:
    """As in Newton's own solvers: its velocity is that of a belt, its pose is the program's."""

    def build(builder: Any) -> None:
        belt = builder.add_body(xform=wp.transform((0, 0, -0.1), UPRIGHT), is_kinematic=True)
        builder.add_shape_box(belt, hx=5, hy=1, hz=0.1)
        add_box(builder, (0, 0, 0.1), (0.1, 0.1, 0.1), 1.0)

    scene = Scene(build)
    set_twists(scene, [(0.5, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 0)])
    scene.run(1)
    assert scene.velocity(0)[0] == pytest.approx(0.5)
    assert scene.position(0) == pytest.approx((0, 0, -0.1))
    assert scene.velocity(1)[0] == pytest.approx(0.5, abs=1e-3)
    assert scene.position(1)[0] == pytest.approx(0.5, abs=0.05)


def test_a_lift_that_the_program_moves_carries_what_lies_on_it() -> None:
    def build(builder: Any) -> None:
        lift = builder.add_body(xform=wp.transform((0, 0, -0.1), UPRIGHT), is_kinematic=True)
        builder.add_shape_box(lift, hx=1, hy=1, hz=0.1)
        add_box(builder, (0, 0, 0.1), (0.1, 0.1, 0.1), 1.0)

    scene = Scene(build)
    set_twists(scene, [(0, 0, 0.3, 0, 0, 0), (0, 0, 0, 0, 0, 0)])
    for i in range(200):
        q = scene.state.joint_q.numpy()
        q[2] = -0.1 + 0.3 * i * scene.dt
        scene.state.joint_q.assign(q)
        newton.eval_fk(scene.model, scene.state.joint_q, scene.state.joint_qd, scene.state)
        scene.step()
    assert scene.velocity(1)[2] == pytest.approx(0.3, abs=1e-3)
    assert scene.position(1)[2] == pytest.approx(0.1 + 0.3 * 200 * scene.dt, abs=1e-3)


def set_twists(scene: Scene, twists: list[tuple[float, ...]]) -> None:
    """Sets the velocities of free joints without a frame of their own."""
    scene.state.joint_qd.assign(np.array(twists, np.float32).ravel())
    newton.eval_fk(scene.model, scene.state.joint_q, scene.state.joint_qd, scene.state)


@pytest.mark.parametrize("angle", [30.0, 90.0, -140.0])
@pytest.mark.parametrize("axis", [(1, 0, 0), (0, 1, 0), (0.6, 0, 0.8)])
@pytest.mark.parametrize("frame", ["parent_xform", "child_xform"])
@pytest.mark.parametrize("tree", [False, True])
def test_a_body_on_a_turned_free_joint_falls(
    angle: float, axis: tuple[float, float, float], frame: str, tree: bool
) -> None:
    turn = wp.quat_from_axis_angle(wp.vec3(axis), math.radians(angle))

    def build(builder: Any) -> None:
        inertia = wp.mat33(np.diag([0.1, 0.2, 0.15]))
        body = builder.add_link(mass=1.0, inertia=inertia)
        joints = [builder.add_joint_free(body, **{frame: wp.transform((0.3, 0.2, 0.1), turn)})]
        if tree:
            arm = builder.add_link(mass=0.5, inertia=inertia)
            ends = [wp.transform((x, 0, 0), UPRIGHT) for x in (0.2, -0.2)]
            joints.append(
                builder.add_joint_revolute(
                    body, arm, parent_xform=ends[0], child_xform=ends[1], axis=(0, 1, 0)
                )
            )
        builder.add_articulation(joints)

    scene = Scene(build)
    start = scene.position(0)
    scene.run(0.1)
    n = round(0.1 / scene.dt)
    for body in range(1 + tree):
        assert scene.velocity(body) == pytest.approx((0, 0, -G * 0.1, 0, 0, 0), abs=1e-5)
    fall = (0, 0, -G * scene.dt**2 * n * (n + 1) / 2)
    assert scene.position(0) - start == pytest.approx(fall, abs=1e-5)
    # joint_qd is in the axes of the joint's frame on the parent.
    axes = np.array(wp.quat_to_matrix(turn)).reshape(3, 3) if frame == "parent_xform" else np.eye(3)
    expected = axes.T @ (0, 0, -G * 0.1)
    assert scene.state.joint_qd.numpy()[:3] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("time_step", [1 / 60, 1 / 240])
@pytest.mark.parametrize("spin", [(5, 20, 8), (0.01, 30, 0.01), (20, 1, 1), (1, 1, 20)])
def test_a_spinning_body_keeps_its_energy(
    spin: tuple[float, float, float], time_step: float
) -> None:
    scene = Scene(lambda builder: add_box(builder, (0, 0, 0), (0.2, 0.1, 0.03), 3.0), time_step)
    scene.model.set_gravity((0.0, 0.0, 0.0))
    set_twists(scene, [(0, 0, 0, *spin)])
    inertia = np.diag(scene.model.body_inertia.numpy()[0]).astype(float)

    def energy_and_momentum() -> tuple[float, float]:
        x, y, z, w = scene.state.body_q.numpy()[0, 3:].astype(float)
        rotation = np.array(wp.quat_to_matrix(wp.quat(x, y, z, w))).reshape(3, 3)
        omega = rotation.T @ scene.velocity(0)[3:]
        return float(omega @ (inertia * omega)) / 2, float(np.linalg.norm(inertia * omega))

    begin = np.array(energy_and_momentum())
    for _ in range(round(3 / time_step)):
        scene.step()
        assert np.array(energy_and_momentum()) / begin == pytest.approx([1, 1], abs=1e-3)


def test_what_is_welded_of_links_spins_as_one_body() -> None:
    """A free root with three links on FIXED joints, off the center."""

    def build(builder: Any) -> None:
        root = builder.add_link(mass=1.0, inertia=wp.mat33(np.diag([0.01, 0.02, 0.025])))
        turn = wp.quat_from_axis_angle(wp.vec3(0, 0, 1), 0.5)
        joints = [builder.add_joint_free(root, parent_xform=wp.transform((0, 0, 0), turn))]
        for place in ((0.3, 0, 0), (0, 0.2, 0.05), (-0.1, 0.1, 0.2)):
            link = builder.add_link(mass=0.5, inertia=wp.mat33(np.diag([0.002, 0.001, 0.002])))
            joints.append(
                builder.add_joint_fixed(root, link, parent_xform=wp.transform(place, UPRIGHT))
            )
        builder.add_articulation(joints)

    scene = Scene(build, time_step=1 / 60)
    scene.model.set_gravity((0.0, 0.0, 0.0))
    set_twists(scene, [(0, 0, 0, 5, 12, 8)])
    mass = scene.model.body_mass.numpy().astype(float)
    inertia = scene.model.body_inertia.numpy().astype(float)

    def energy() -> float:
        """The energy of turning about the center of mass."""
        twists = scene.state.body_qd.numpy().astype(float)
        middle = mass @ twists[:, :3] / mass.sum()
        total = 0.0
        for m, I_b, pose, twist in zip(
            mass, inertia, scene.state.body_q.numpy().astype(float), twists, strict=True
        ):
            R = np.array(wp.quat_to_matrix(wp.quat(*pose[3:].tolist()))).reshape(3, 3)
            omega = R.T @ twist[3:]
            total += m * np.sum((twist[:3] - middle) ** 2) / 2 + omega @ I_b @ omega / 2
        return total

    begin = energy()
    for _ in range(300):
        scene.step()
        assert energy() == pytest.approx(begin, rel=2e-3)


@pytest.mark.parametrize("tree", [False, True])
def test_rolling_and_torsional_friction_stop_a_ball(tree: bool) -> None:
    radius, mu = 0.1, 2.0

    def scene_of(twist: tuple[float, ...], **coefficients: float) -> Scene:
        def build(builder: Any) -> None:
            add_ground(builder, mu)  # of the coefficients of both shapes the larger one counts
            shape = newton.ModelBuilder.ShapeConfig(mu=mu, **coefficients)
            ball = builder.add_link(xform=wp.transform((0, 0, radius), UPRIGHT))
            builder.add_shape_sphere(ball, radius=radius, cfg=shape)
            joints = [builder.add_joint_free(ball)]
            if tree:
                grain = builder.add_link(mass=1e-3, inertia=wp.mat33(np.eye(3) * 1e-9))
                joints.append(builder.add_joint_fixed(ball, grain))
            builder.add_articulation(joints)

        scene = Scene(build)
        set_twists(scene, [twist])
        return scene

    rolling = scene_of((1, 0, 0, 0, 10, 0), mu_rolling=0.02, mu_torsional=0.0)
    rolling.run(0.5)
    # 7/5 m r a = 0.02 m g; friction that makes it roll takes 2 % of the common cone.
    assert rolling.velocity(0)[0] == pytest.approx(1 - 0.5 * 5 / 7 * G * 0.2, rel=3e-2)
    rolling.run(0.5)
    assert np.abs(rolling.velocity(0)).max() < 1e-3
    assert rolling.position(0)[2] == pytest.approx(radius, abs=2e-4)
    spinning = scene_of((0, 0, 0, 0, 0, 20), mu_rolling=0.0, mu_torsional=0.02)
    spinning.run(0.2)
    # 2/5 m r^2 dw/dt = 0.02 m g
    assert spinning.velocity(0)[5] == pytest.approx(
        20 - 0.2 * 0.02 * G / (0.4 * radius**2), rel=1e-3
    )
    spinning.run(0.4)
    assert np.abs(spinning.velocity(0)).max() < 1e-3


@pytest.mark.parametrize("tree", [False, True])
def test_a_mesh_whose_surface_moves_carries_a_box_along(tree: bool) -> None:
    corners = np.array([[-3, -3, 0], [3, -3, 0], [3, 3, 0], [-3, 3, 0]], np.float32)
    mesh = newton.Mesh(
        corners,
        np.array([0, 1, 2, 0, 2, 3], np.int32),
        compute_inertia=False,
        enable_surface_velocity=True,
    )

    def build(builder: Any) -> None:
        shape = newton.ModelBuilder.ShapeConfig(mu=0.9)
        builder.add_shape_mesh(body=-1, mesh=mesh, cfg=shape)
        box = builder.add_link(xform=wp.transform((0, 0, 0.149), UPRIGHT))
        builder.add_shape_box(box, hx=0.15, hy=0.15, hz=0.15, cfg=shape)
        joints = [builder.add_joint_free(box)]
        if tree:
            grain = builder.add_link(mass=1e-3, inertia=wp.mat33(np.eye(3) * 1e-9))
            joints.append(builder.add_joint_fixed(box, grain))
        builder.add_articulation(joints)

    scene = Scene(build)
    mesh.mesh.velocities.fill_(wp.vec3(0.0, 0.7, 0.0))
    scene.run(1)
    assert scene.velocity(0) == pytest.approx((0, 0.7, 0, 0, 0, 0), abs=2e-3)
    # It slides until it is as fast.
    assert scene.position(0)[1] == pytest.approx(0.7 - 0.7**2 / (2 * 0.9 * G), abs=5e-3)


@pytest.mark.parametrize("gap", [0.1, 0.0])
@pytest.mark.parametrize("restitution", [1.0, 0.5, 0.25])
@pytest.mark.parametrize("shape", ["ball", "box", "tree"])
def test_what_falls_rebounds_at_the_ground_to_the_square_of_its_restitution(
    shape: str, restitution: float, gap: float
) -> None:
    height = 0.73

    def build(builder: Any) -> None:
        config = newton.ModelBuilder.ShapeConfig(mu=0.5, restitution=restitution, gap=gap)
        builder.add_ground_plane(cfg=config)
        body = builder.add_link(xform=wp.transform((0, 0, 0.1 + height), UPRIGHT))
        if shape == "box":
            builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1, cfg=config)
        else:
            builder.add_shape_sphere(body, radius=0.1, cfg=config)
        joints = [builder.add_joint_free(body)]
        if shape == "tree":
            grain = builder.add_link(mass=1e-3, inertia=wp.mat33(np.eye(3) * 1e-9))
            joints.append(builder.add_joint_fixed(body, grain))
        builder.add_articulation(joints)

    scene = Scene(build, time_step=0.01)
    lowest, highest = math.inf, 0.0
    for _ in range(round(2.2 * math.sqrt(2 * height / G) / scene.dt)):
        scene.step()
        lowest = min(lowest, scene.position(0)[2])
        if lowest < 0.102:
            highest = max(highest, scene.position(0)[2])
        if highest > lowest + 1e-3 and scene.velocity(0)[2] < 0:
            break
    assert (highest - 0.1) / height == pytest.approx(restitution**2, rel=1e-2, abs=2e-3)
    if gap:  # without one Newton reports the contact after it has closed
        assert lowest == pytest.approx(0.1, abs=1e-4)


def test_a_landing_is_forgotten_where_the_program_moves_the_body() -> None:
    def build(builder: Any) -> None:
        config = newton.ModelBuilder.ShapeConfig(restitution=1.0)
        builder.add_ground_plane(cfg=config)
        ball = builder.add_body(xform=wp.transform((0, 0, 0.3), UPRIGHT))
        builder.add_shape_sphere(ball, radius=0.1, cfg=config)

    scene = Scene(build)
    while scene.position(0)[2] > 0.1 + 1e-5:
        scene.step()
    set_twists(scene, [(0, 0, 0, 0, 0, 0)])
    scene.run(0.1)
    assert scene.position(0)[2] == pytest.approx(0.1, abs=1e-4)


def test_forces_that_are_no_numbers_are_refused_by_name() -> None:
    def build(builder: Any) -> None:
        add_box(builder, (0, 0, 0), (0.1, 0.1, 0.1), 1.0)
        last = builder.add_body(mass=1.0, inertia=wp.mat33(np.eye(3)), label="kite")
        assert last == 1

    scene = Scene(build)
    wrench = np.zeros((2, 6), np.float32)
    wrench[1, 2] = np.nan
    scene.state.body_f.assign(wrench)
    with pytest.raises(InvalidArgument, match="body_f of 'kite' is not finite"):
        scene.solver.step(scene.state, scene.state, scene.control, None, scene.dt)
    scene.state.clear_forces()
    scene.control.joint_f.assign(np.array([0] * 11 + [np.inf], np.float32))
    joint = scene.model.joint_label[1]
    with pytest.raises(InvalidArgument, match=f"joint_f of {joint!r} is not finite"):
        scene.solver.step(scene.state, scene.state, scene.control, None, scene.dt)


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

    def add_sticky_ball(builder: Any) -> None:
        shape = newton.ModelBuilder.ShapeConfig(ka=0.01)
        builder.add_shape_sphere(builder.add_body(), radius=0.1, cfg=shape, label="gum")

    with pytest.raises(InvalidArgument, match=r"shape 'gum' has adhesion \(ka\)"):
        Scene(add_sticky_ball)

    scene = Scene(lambda builder: add_box(builder, (0, 0, 0), (0.1, 0.1, 0.1), 1.0))
    hydroelastic = int(newton.ShapeFlags.HYDROELASTIC)  # to build such a shape takes a GPU
    scene.model.shape_flags.assign(scene.model.shape_flags.numpy() | hydroelastic)
    with pytest.raises(InvalidArgument, match=r"shape 'shape_\d' has hydroelastic contact"):
        sap_newton.SapSolver(scene.model)


def test_what_newton_adds_to_its_models_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene(lambda builder: add_box(builder, (0, 0, 0), (0.1, 0.1, 0.1), 1.0))
    monkeypatch.setattr(scene.model, "magnetic_rope_count", 2, raising=False)
    with pytest.raises(InvalidArgument, match="the model has magnetic ropes"):
        sap_newton.SapSolver(scene.model)
