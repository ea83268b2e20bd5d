"""The MuJoCo adapter under law="sap": MuJoCo's mechanics, constraints solved by the service."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest
import sap_islands as sap
import sap_islands.mujoco as adapter
from sap_islands.arrays import FloatArray
from sap_islands.scenes import load_scene

GRAVITY = 9.81
STIFF = adapter.Material(stiffness=1e7, relaxation_time=0.01)


def load(body: str, *, timestep: float = 0.005, more: str = "") -> tuple[Any, Any]:
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{timestep}"/><worldbody>{body}</worldbody>{more}</mujoco>'
    )
    return model, mujoco.MjData(model)


def full_mass_matrix(model: mujoco.MjModel, data: mujoco.MjData) -> FloatArray:
    columns = []
    for i in range(model.nv):
        column = np.zeros(model.nv)
        mujoco.mj_mulM(model, data, column, np.eye(model.nv)[i])
        columns.append(column)
    return np.array(columns)


TWO_ARMS = """
<geom type="plane" size="5 5 .1"/>
<body name="left" pos="0 0 .5">
  <joint type="hinge" axis="0 1 0"/><geom type="capsule" size=".06" fromto="0 0 0 .5 0 0"/>
  <body pos=".5 0 0"><joint type="ball"/><geom type="capsule" size=".06" fromto="0 0 0 .4 0 0"/>
  </body>
</body>
<body name="right" pos="1.25 0 .5">
  <joint type="slide" axis="0 0 1"/><joint type="hinge" axis="0 0 1"/>
  <geom type="capsule" size=".06" fromto="0 0 0 -.5 .05 .02"/>
</body>
<body name="loose" pos=".3 .05 .6"><freejoint/><geom type="box" size=".1 .1 .05"/></body>
<body name="floating" pos="3 0 .03"><freejoint/><geom type="sphere" size=".05"/></body>
"""


def random_state(model: mujoco.MjModel, data: mujoco.MjData, seed: int) -> None:
    rng = np.random.default_rng(seed)
    mujoco.mj_resetData(model, data)
    mujoco.mj_integratePos(model, data.qpos, rng.normal(scale=0.05, size=model.nv), 1.0)
    data.qvel[:] = rng.normal(size=model.nv)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("cone", ["PYRAMIDAL", "ELLIPTIC"])
def test_contact_velocities_are_those_of_the_points_that_touch(seed: int, cone: str) -> None:
    model, data = load(TWO_ARMS, more='<default><geom margin=".05" condim="6"/></default>')
    model.opt.cone = getattr(mujoco.mjtCone, f"mjCONE_{cone}")
    random_state(model, data, seed)
    built = adapter.build_problem(model, data)
    contacts = built.problem.contacts
    dofs = built.problem.trees.dofs.astype(int)
    first = np.concatenate(([0], np.cumsum(dofs)))
    place = 0
    pairs = set()
    for i in range(contacts.count):
        velocity, turning = np.zeros(3), np.zeros(3)
        for tree in (contacts.tree_a[i], contacts.tree_b[i]):
            if tree < 0:
                continue
            values, of_tree = slice(place, place + 3 * dofs[tree]), slice(*first[tree : tree + 2])
            place = values.stop
            velocity += contacts.jacobian[values].reshape(3, -1) @ data.qvel[of_tree]
            turning += contacts.angular_jacobian[values].reshape(3, -1) @ data.qvel[of_tree]
        contact = data.contact[built.contact[i]]
        pairs.add(tuple(contact.geom))
        points = []
        for geom in contact.geom:
            linear, angular = np.zeros((2, 3, model.nv))
            body = model.geom_bodyid[geom]
            mujoco.mj_jac(model, data, linear, angular, contact.pos, body)
            points.append(np.array([linear @ data.qvel, angular @ data.qvel]))
        relative = (points[1] - points[0]) @ contact.frame.reshape(3, 3).T
        assert velocity == pytest.approx(relative[0, [1, 2, 0]], abs=1e-10)
        assert turning == pytest.approx(relative[1, [1, 2, 0]], abs=1e-8)
    assert place == contacts.jacobian.size
    assert len(pairs) >= 3


def test_dynamics_matrix_has_damping_springs_and_servos() -> None:
    model, data = load(
        """
        <body><joint name="a" type="hinge" axis="0 1 0" damping=".3" stiffness="2"/>
          <geom type="capsule" size=".05" fromto="0 0 0 .5 0 0" contype="0" conaffinity="0"/>
          <body pos=".5 0 0"><joint name="b" type="hinge" axis="0 1 0" damping=".1"/>
            <geom type="capsule" size=".05" fromto="0 0 0 .4 0 0" contype="0" conaffinity="0"/>
          </body>
        </body>""",
        more="""<actuator>
            <position joint="b" kp="50" kv="4" gear="2"/><velocity joint="a" kv="3"/>
            <motor joint="a"/>
        </actuator>""",
    )
    data.qpos[:] = [0.3, -0.8]
    data.qvel[:] = [1.0, 2.0]
    data.ctrl[:] = [0.5, -1.0, 0.7]
    built = adapter.build_problem(model, data)
    dt = model.opt.timestep
    damping = np.diag([0.3 + 3, 0.1 + 4 * 2**2])
    springs = np.diag([2.0, 50 * 2**2])
    mass = full_mass_matrix(model, data)
    expected = mass + dt * damping + dt**2 * springs
    (block,) = built.problem.trees.blocks()
    assert block == pytest.approx(expected, rel=1e-12)

    # v* satisfies the momentum balance with the forces at the end of the step.
    q, v, v_star = data.qpos, data.qvel, built.dynamics.v_star
    end = q + dt * v_star
    bias = data.qfrc_bias
    force = np.array(
        [
            -0.3 * v_star[0] - 2 * end[0] + 3 * (-1.0 - v_star[0]) + 0.7,
            -0.1 * v_star[1] + 2 * (50 * (0.5 - 2 * end[1]) - 4 * 2 * v_star[1]),
        ]
    )
    assert mass @ (v_star - v) == pytest.approx(dt * (force - bias), rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_without_contact_a_step_is_that_of_mujoco(client: sap.Client, seed: int) -> None:
    model, data = load(
        TWO_ARMS.replace('axis="0 1 0"', 'axis="0 1 0" damping=".5"'),
    )
    model.geom_contype[:] = model.geom_conaffinity[:] = 0
    random_state(model, data, seed)
    data.qfrc_applied[:] = np.random.default_rng(seed).normal(size=model.nv)
    other = mujoco.MjData(model)
    other.qpos[:], other.qvel[:] = data.qpos, data.qvel
    other.qfrc_applied[:] = data.qfrc_applied
    for _ in range(3):
        adapter.step(model, data, client)
        mujoco.mj_step(model, other)
    assert data.qvel == pytest.approx(other.qvel, rel=1e-9, abs=1e-12)
    assert data.qpos == pytest.approx(other.qpos, rel=1e-9, abs=1e-12)
    assert data.time == other.time


def settle(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    client: sap.Client,
    time: float,
    material: adapter.Material = STIFF,
) -> None:
    with client.session() as session:
        while data.time < time - 1e-9:
            _, solution = adapter.step(model, data, session, material=material)
            assert solution.solved


def step_both(
    model: mujoco.MjModel, data: mujoco.MjData, client: sap.Client, steps: int
) -> mujoco.MjData:
    """Takes `steps` steps of `data` by the service; returns MuJoCo's state after as many."""
    other = mujoco.MjData(model)
    with client.session() as session:
        for _ in range(steps):
            adapter.step(model, data, session)
            mujoco.mj_step(model, other)
    return other


def tilt(angle: float) -> str:
    return f'<option gravity="{GRAVITY * np.sin(angle)} 0 {-GRAVITY * np.cos(angle)}"/>'


def test_box_on_a_slope_is_held_within_the_slip_that_sigma_allows(client: sap.Client) -> None:
    angle, sigma, mu = 0.3, 1e-3, 0.8
    model, data = load(
        '<geom type="plane" size="5 5 .1"/>'
        f'<body pos="0 0 .0999"><freejoint/>'
        f'<geom type="box" size=".1 .1 .1" friction="{mu} 0 0"/></body>',
        more=tilt(angle),
    )
    model.opt.timestep = 0.005
    settle(model, data, client, 0.5)
    start = data.qpos[0]
    slips = []
    with client.session() as session:
        for _ in range(200):
            adapter.step(model, data, session, material=STIFF)
            slips.append(np.linalg.norm(data.qvel[:2]))
    # The slip is R_t times the friction impulse, which is at most μ m g δt.
    assert max(slips) <= sigma * mu * model.opt.timestep * GRAVITY
    assert data.qpos[0] - start <= 200 * model.opt.timestep * max(slips)
    assert data.qpos[2] == pytest.approx(0.1, abs=1e-4)


def test_box_on_a_steeper_slope_slides_as_coulomb_says(client: sap.Client) -> None:
    angle, mu = 0.5, 0.2
    model, data = load(
        '<geom type="plane" size="50 50 .1"/>'
        f'<body pos="0 0 .1"><freejoint/>'
        f'<geom type="box" size=".1 .1 .1" friction="{mu} 0 0"/></body>',
        more=tilt(angle),
    )
    model.opt.timestep = 0.005
    model.geom_friction[:, 0] = mu
    adapter.find_contacts_within(model, 0.02)
    settle(model, data, client, 0.2)
    before, time = data.qvel[0], data.time
    settle(model, data, client, 1.0)
    acceleration = (data.qvel[0] - before) / (data.time - time)
    expected = GRAVITY * (np.sin(angle) - mu * np.cos(angle))
    assert acceleration == pytest.approx(expected, rel=1e-3)


def test_box_put_down_at_speed_hops_unless_friction_is_exact(client: sap.Client) -> None:
    mu, speed, steps = 0.3, 3.0, 20
    highest, slowed = {}, {}
    for law in ("sap", "coulomb"):
        model, data = load(
            f'<geom type="plane" size="50 50 .1" friction="{mu}"/><body pos="0 0 .1"><freejoint/>'
            f'<geom type="box" size=".1 .1 .1" friction="{mu}"/></body>',
            timestep=0.01,
        )
        adapter.find_contacts_within(model, 0.02)
        data.qvel[0] = speed
        heights = []
        with client.session() as session:
            for _ in range(steps):
                adapter.step(model, data, session, law=law, material=STIFF, on_unsolved="raise")
                heights.append(data.qpos[2])
        highest[law], slowed[law] = max(heights), speed - data.qvel[0]
    assert highest["sap"] > 0.11
    assert highest["coulomb"] < 0.1001
    assert slowed["coulomb"] == pytest.approx(mu * GRAVITY * steps * 0.01, rel=1e-2)


@pytest.mark.parametrize("cone", ["PYRAMIDAL", "ELLIPTIC"])
@pytest.mark.parametrize("condim", [3, 4, 6])
def test_forces_are_stored_as_mujoco_reads_them(client: sap.Client, cone: str, condim: int) -> None:
    model, data = load(TWO_ARMS, more=f'<default><geom margin=".05" condim="{condim}"/></default>')
    model.opt.cone = getattr(mujoco.mjtCone, f"mjCONE_{cone}")
    random_state(model, data, 1)
    before, dt = data.qvel.copy(), model.opt.timestep
    built, solution = adapter.step(model, data, client)
    assert data.qvel == pytest.approx(solution.velocity)
    assert data.qacc * dt == pytest.approx(data.qvel - before)
    scale = np.abs(solution.impulse).max() / dt
    assert scale > 0
    for i, contact in enumerate(built.contact):
        force = np.zeros(6)
        mujoco.mj_contactForce(model, data, contact, force)
        assert force[[1, 2, 0]] == pytest.approx(solution.impulse[i] / dt, abs=1e-9 * scale)
        if condim > 3:
            turning = solution.angular_impulse[i] / dt
            assert force[[4, 5, 3]] == pytest.approx(turning, abs=1e-9 * scale)
    # The momentum balance of the step: A (v - v*) is the impulse of all constraints.
    first = 0
    for block in built.problem.trees.blocks():
        of_tree = slice(first, first + len(block))
        first = of_tree.stop
        change = block @ (solution.velocity - built.dynamics.v_star)[of_tree]
        assert data.qfrc_constraint[of_tree] * dt == pytest.approx(change, abs=1e-5 * scale * dt)


@pytest.mark.parametrize("cone", ["PYRAMIDAL", "ELLIPTIC"])
@pytest.mark.parametrize("condim", [3, 4, 6])
@pytest.mark.parametrize("mu", [0.3, 1.0])
def test_body_rests_as_deep_as_in_mujoco(
    client: sap.Client, cone: str, condim: int, mu: float
) -> None:
    for solref in ("0.02 1", "0.05 0.7", "-2000 -80"):
        model, data = load(
            '<geom type="plane" size="5 5 .1"/>'
            '<body pos="0 0 .1"><freejoint/><geom size=".1" mass="2"/></body>',
            timestep=0.002,
            more=f"""<default><geom solref="{solref}" friction="{mu} .01 .01"
                condim="{condim}"/></default>""",
        )
        model.opt.cone = getattr(mujoco.mjtCone, f"mjCONE_{cone}")
        other = step_both(model, data, client, 800)
        assert abs(data.qvel[2]) < 1e-6
        assert other.qpos[2] < 0.1 - 1e-6
        assert 0.1 - data.qpos[2] == pytest.approx(0.1 - other.qpos[2], rel=0.02)


def test_joint_limits_hold(client: sap.Client) -> None:
    model, data = load(
        """
        <body pos="0 0 1"><joint type="hinge" axis="0 1 0" range="-40 40"/>
          <geom type="capsule" size=".03" fromto="0 0 0 .5 0 0"/></body>
        <body pos="0 1 1"><joint type="ball" range="0 30"/>
          <geom type="capsule" size=".03" fromto="0 0 0 .5 0 0"/></body>
        <body pos="0 2 1"><joint type="slide" axis="0 0 1" range="-.2 1"/>
          <geom type="sphere" size=".1"/></body>""",
    )
    settle(model, data, client, 2.0)
    assert np.rad2deg(data.qpos[0]) == pytest.approx(40, abs=2)
    assert np.rad2deg(2 * np.arccos(abs(data.qpos[1]))) == pytest.approx(30, abs=2)
    assert data.qpos[5] == pytest.approx(-0.2, abs=0.01)
    assert abs(data.qvel).max() < 1e-3


def test_constraints_switched_on_between_steps_act_in_the_next(client: sap.Client) -> None:
    model, data = load(
        '<body name="b"><joint name="j" type="slide"/><geom size=".1"/></body>',
        more='<equality><weld name="glue" body1="b" active="false"/></equality>',
    )
    weight = GRAVITY * model.body_mass[1]
    adapter.step(model, data, client)
    assert data.qvel[0] == pytest.approx(-GRAVITY * model.opt.timestep)
    data.eq_active[0] = 1
    for _ in range(200):
        adapter.step(model, data, client)
    assert abs(data.qvel[0]) < 1e-4
    data.eq_active[0] = 0
    model.dof_frictionloss[0] = 0.5 * weight
    adapter.step(model, data, client)
    assert data.qacc[0] == pytest.approx(-0.5 * GRAVITY, rel=1e-3)


def test_problem_does_not_change_when_another_is_built() -> None:
    model = load_scene("clutter", 20)
    data, other = mujoco.MjData(model), mujoco.MjData(model)
    while data.time < 0.5:
        mujoco.mj_step(model, data)
    kept = adapter.build_problem(model, data).problem
    before = kept.to_bytes()
    adapter.build_problem(model, other)
    mujoco.mj_step(model, data)
    changed = adapter.build_problem(model, data).problem
    assert kept.to_bytes() == before
    assert changed.to_bytes() != before


def test_conveyor_carries_a_box(client: sap.Client) -> None:
    belt = '<geom type="box" size="5 5 .1" pos="0 0 -.1" surfacevel=".5 0 0 0 0 0"/>'
    model, data = load(
        belt + '<body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
    )
    other = mujoco.MjData(model)
    settle(model, data, client, 1.0)
    while other.time < 1.0:
        mujoco.mj_step(model, other)
    assert other.qvel[0] == pytest.approx(0.5, abs=0.02)
    assert data.qvel[0] == pytest.approx(0.5, abs=1e-3)


def test_activations_and_velocity_sensors_are_those_of_mujoco(client: sap.Client) -> None:
    model, data = load(
        '<body name="b"><joint name="j" damping="1"/><geom size=".1" pos=".2 0 0"/></body>',
        more="""<actuator><general joint="j" dyntype="filter" dynprm=".05" gainprm="3"/></actuator>
            <sensor><jointvel joint="j"/></sensor>""",
    )
    other = mujoco.MjData(model)
    data.ctrl[:] = other.ctrl[:] = 0.4
    for _ in range(20):
        adapter.step(model, data, client)
        mujoco.mj_step(model, other)
    assert data.act == pytest.approx(other.act, rel=1e-12)
    assert data.sensordata == pytest.approx(other.sensordata, rel=1e-9)
    assert data.qpos == pytest.approx(other.qpos, rel=1e-9)


@pytest.mark.parametrize("margin", [0.0, 0.05])
def test_joint_rests_on_its_limit_where_mujoco_has_it(client: sap.Client, margin: float) -> None:
    model, data = load(
        f"""<body pos="0 0 1"><joint type="hinge" axis="0 1 0" range="-40 40" margin="{margin}"/>
             <geom type="capsule" size=".03" fromto="0 0 0 .5 0 0"/></body>
           <body pos="0 2 1"><joint type="slide" axis="0 0 1" range="-.2 1" margin="{margin}"/>
             <geom type="sphere" size=".1"/></body>""",
        timestep=0.002,
    )
    other = step_both(model, data, client, 1500)
    assert np.abs(data.qvel).max() < 1e-4
    beyond = np.array([data.qpos[0] - np.deg2rad(40), -0.2 - data.qpos[1]]) + margin
    expected = np.array([other.qpos[0] - np.deg2rad(40), -0.2 - other.qpos[1]]) + margin
    assert expected.min() > 1e-5
    assert beyond == pytest.approx(expected, rel=0.02)


def test_changed_parameters_apply_to_the_next_step() -> None:
    model, data = load(
        '<geom type="plane" size="5 5 .1"/>'
        '<body pos="0 0 .099"><freejoint/><geom size=".1" mass="2"/></body>'
        '<body pos="0 3 1"><joint type="hinge" axis="0 1 0" range="-40 40"/>'
        '<geom type="capsule" size=".03" fromto="0 0 0 .5 0 0"/></body>'
    )
    before = adapter.build_problem(model, data).problem
    assert before.contacts.friction == pytest.approx(1)
    assert before.rows.count == 0
    model.geom_friction[:, 0] = 0.3
    model.jnt_range[1] = 0.1, 0.5
    after = adapter.build_problem(model, data).problem
    assert after.contacts.friction == pytest.approx(0.3)
    assert after.rows.count == 1


def test_penetration_of_a_pile_at_rest_does_not_grow(client: sap.Client) -> None:
    model = load_scene("clutter", 20)
    data = mujoco.MjData(model)
    deepest = np.zeros(6)  # largest penetration in each second [m]
    with client.session() as session:
        while data.time < len(deepest) - 0.5 * model.opt.timestep:
            second = int(data.time + 0.5 * model.opt.timestep)
            adapter.step(model, data, session)
            deepest[second] = max(deepest[second], -float(data.contact.dist.min(initial=0.0)))
    assert np.all(deepest[4:] <= 1.01 * deepest[3])
    assert deepest[-1] < 1e-3  # 1 % of the width of a body


def test_load_paths_get_the_velocity_before_the_step(client: sap.Client) -> None:
    """A ball of 1 kg under one of 99 kg: the lower contact carries both, the upper one 99 kg."""
    model, data = load(
        '<geom type="plane" size="5 5 .1"/>'
        '<body pos="0 0 .1"><freejoint/><geom size=".1" mass="1"/></body>'
        '<body pos="0 0 .2999"><freejoint/><geom size=".1" mass="99"/></body>'
    )
    data.qvel[2] = 0.25
    material = adapter.Material(
        stiffness=1e12,
        relaxation_time=0.005,
        rule=sap.RegularizationRule.LOAD_PATH,
        load_reference_speed=0.05,
        reference_time_step=0.001,
    )
    built, solution = adapter.step(model, data, client, material=material)
    assert built.problem.trees.initial_velocity[2] == 0.25
    assert built.problem.regularization.load_reference_speed == 0.05
    assert built.problem.regularization.reference_time_step == 0.001
    assert np.sort(solution.delassus_estimate) == pytest.approx([1 / 100, 1 / 99], rel=1e-9)
    with pytest.raises(sap.InvalidArgument, match=r"material\.rule is LOAD_PATH"):
        adapter.linearize(model, data, client, material=material)


def test_a_rigid_material_creeps_a_thousandth_of_the_default_and_given_numbers_win(
    client: sap.Client,
) -> None:
    creep = []
    for material in (adapter.Material(), adapter.Material.rigid()):
        model, data = load(
            '<geom type="plane" size="5 5 .1" euler="0 12 0"/>'
            '<body pos="0 0 .1" euler="0 12 0"><freejoint/>'
            '<geom type="box" size=".1 .1 .1" mass="3"/></body>'
        )
        for _ in range(50):
            _, solution = adapter.step(model, data, client, material=material)
        creep.append(float(np.max(solution.islands.creep)))
    assert 0 < creep[1] < 2e-3 * creep[0]
    given = adapter.Material.rigid(sigma=1e-4, friction=0.3)
    assert (given.beta, given.sigma, given.friction) == (0.01, 1e-4, 0.3)
