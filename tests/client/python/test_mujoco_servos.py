"""Actuators and tendons of the MuJoCo adapter under law="sap": implicit, within their limits."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest
import sap_islands as sap
import sap_islands.mujoco as adapter

SLIDER = """<body><joint name="a" type="slide" axis="1 0 0" {joint}/>
<geom type="sphere" size=".1" mass="1"/></body>"""


def load(actuator: str, *, body: str = "", joint: str = "", more: str = "") -> tuple[Any, Any]:
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco><option timestep="0.005" gravity="0 0 0"/>
        <default><geom contype="0" conaffinity="0"/></default>
        <worldbody>{body or SLIDER.format(joint=joint)}</worldbody>{more}
        <actuator>{actuator}</actuator></mujoco>"""
    )
    return model, mujoco.MjData(model)


def test_gains_of_a_servo_without_limits_are_in_the_dynamics_matrix() -> None:
    model, data = load('<position joint="a" kp="50" kv="4" group="2"/>')
    dt = model.opt.timestep
    built = adapter.build_problem(model, data)
    (block,) = built.problem.trees.blocks()
    assert block[0, 0] == pytest.approx(1 + dt * 4 + dt**2 * 50)
    assert built.problem.rows.count == 0
    model.actuator_biasprm[0, 1:3] = -30, -1
    (block,) = adapter.build_problem(model, data).problem.trees.blocks()
    assert block[0, 0] == pytest.approx(1 + dt * 1 + dt**2 * 30)


@pytest.mark.parametrize("limit", ['forcerange="-5 5"', ""])
def test_servos_that_are_switched_off_have_no_gains(limit: str) -> None:
    model, data = load(f'<position joint="a" kp="50" kv="4" group="2" {limit}/>')
    model.opt.disableactuator = 1 << 2
    for _ in range(2):
        built = adapter.build_problem(model, data)
        (block,) = built.problem.trees.blocks()
        assert block[0, 0] == pytest.approx(1)
        assert built.problem.rows.count == 0
        model.opt.disableactuator = 0
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_ACTUATION)


LIMITED: dict[str, dict[str, str]] = {
    "force range": {"actuator": '<position joint="a" kp="1000" kv="5" forcerange="-1 1"/>'},
    "joint's range": {
        "actuator": '<position joint="a" kp="1000" kv="5"/>',
        "joint": 'actuatorfrcrange="-1 1"',
    },
    "joint's range of two": {
        "actuator": '<position joint="a" kp="1000"/><velocity joint="a" kv="5"/>',
        "joint": 'actuatorfrcrange="-1 1"',
    },
    "both ranges, gear": {
        "actuator": '<position joint="a" kp="250" kv="1.25" gear="2" forcerange="-.5 .5"/>',
        "joint": 'actuatorfrcrange="-3 3"',
    },
    "tendon's range": {
        "actuator": '<position tendon="t" kp="1000" kv="5"/>',
        "more": '<tendon><fixed name="t" actuatorfrcrange="-1 1"><joint joint="a" coef="1"/>'
        "</fixed></tendon>",
    },
}


@pytest.mark.parametrize("how", LIMITED)
def test_limited_servo_acts_with_its_limit(client: sap.Client, how: str) -> None:
    model, data = load(**LIMITED[how])
    data.ctrl[0] = 100.0
    for _ in range(200):
        adapter.step(model, data, client)
        assert data.qfrc_actuator[0] == pytest.approx(1.0)
    # 1 N on 1 kg for 1 s.
    assert data.qvel[0] == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("how", LIMITED)
def test_limited_servo_has_the_clamped_force_at_the_end_of_the_step(
    client: sap.Client, how: str
) -> None:
    model, data = load(**LIMITED[how])
    dt, k_p, k_v, goal = model.opt.timestep, 1000.0, 5.0, 0.01
    data.ctrl[0] = goal if "gear" not in how else 2 * goal  # length is gear times position
    limited = free = 0
    for _ in range(200):
        x, v = data.qpos[0], data.qvel[0]
        adapter.step(model, data, client, options=sap.Options(relative_tolerance=1e-10))
        v_free = (v + dt * k_p * (goal - x)) / (1 + dt * (k_v + dt * k_p))
        force = (v_free - v) / dt
        limited += abs(force) > 1
        free += abs(force) < 1
        assert data.qvel[0] == pytest.approx(v + dt * np.clip(force, -1, 1), abs=1e-8)
        assert data.qfrc_actuator[0] == pytest.approx(np.clip(force, -1, 1), abs=1e-5)
    assert min(limited, free) >= 5


def test_other_forces_on_a_joint_count_towards_its_limit(client: sap.Client) -> None:
    actuators = '<position joint="a" kp="1000" kv="5"/><motor joint="a"/>'
    model, data = load(actuators, joint='actuatorfrcrange="-1 1"')
    data.ctrl[:] = 0.0, 0.6
    for _ in range(400):
        adapter.step(model, data, client)
    # The servo holds against the motor.
    assert data.qpos[0] == pytest.approx(0.6 / 1000, rel=1e-3)
    data.ctrl[:] = 100.0, -50.0
    adapter.step(model, data, client)
    assert data.qfrc_actuator[0] == pytest.approx(1.0)


def test_servo_that_moves_two_trees_is_implicit(client: sap.Client) -> None:
    two = SLIDER.format(joint="") + SLIDER.format(joint="").replace('"a"', '"b"')
    tendon = """<tendon><fixed name="t"><joint joint="a" coef="1"/><joint joint="b" coef="-1"/>
        </fixed></tendon>"""
    model, data = load('<position tendon="t" kp="1e6" kv="10"/>', body=two, more=tendon)
    data.qvel[:] = 1.0, 0.0
    for _ in range(400):
        adapter.step(model, data, client)
    # With its explicit force, this spring between equal masses would be unstable.
    assert data.qvel == pytest.approx([0.5, 0.5], abs=1e-3)


def test_servo_does_not_exceed_its_limit_against_a_wall(client: sap.Client) -> None:
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><option timestep="0.005" gravity="0 0 0"/><worldbody>
        <geom type="plane" size="5 5 .1"/>
        <body pos="0 0 .5"><joint name="a" type="slide" axis="0 0 1"/>
        <geom type="sphere" size=".1" mass="1"/><site name="s" size=".12"/></body></worldbody>
        <actuator><position joint="a" kp="5000" kv="100" forcerange="-20 20"/></actuator>
        <sensor><touch site="s"/></sensor></mujoco>"""
    )
    data = mujoco.MjData(model)
    data.ctrl[0] = -1.0
    for _ in range(400):
        adapter.step(model, data, client)
    assert data.sensordata[0] == pytest.approx(20.0, rel=1e-4)
    assert data.actuator_force[0] == pytest.approx(-20.0, rel=1e-6)


def test_activations_are_those_of_mujoco(client: sap.Client) -> None:
    model, data = load(
        '<general joint="a" dyntype="filter" dynprm=".05" gainprm="3" actearly="true"/>'
        '<intvelocity joint="a" kp="40" kv="3" actrange="-1 1" forcerange="-2 2"/>'
    )
    other = mujoco.MjData(model)
    data.ctrl[:] = other.ctrl[:] = 0.4, 3.0
    for _ in range(50):
        adapter.step(model, data, client)
        mujoco.mj_step(model, other)
    assert data.act == pytest.approx(other.act, rel=1e-12)
    assert data.qvel == pytest.approx(other.qvel, rel=0.1)


TWO_SLIDERS = SLIDER.format(joint="") + SLIDER.format(joint="").replace('"a"', '"b"')
ONE_TREE = """<body><joint name="a" type="slide" axis="1 0 0"/><joint name="b" type="slide"
axis="0 1 0"/><geom type="sphere" size=".1" mass="1"/></body>"""


@pytest.mark.parametrize("body", [ONE_TREE, TWO_SLIDERS])
@pytest.mark.parametrize("start", [0.5, 0.15, -0.5])
def test_spring_and_damper_of_a_tendon_act_at_the_end_of_the_step(
    client: sap.Client, body: str, start: float
) -> None:
    tendon = """<tendon><fixed name="t" stiffness="1e5" damping="1e3" springlength=".1 .2">
        <joint joint="a" coef="1"/><joint joint="b" coef="-2"/></fixed></tendon>"""
    model, data = load("", body=body, more=tendon)
    data.qpos[0], data.qvel[:] = start, [1.0, 0.5]
    m, dt, v = np.array([1.0, -2.0]), model.opt.timestep, np.array([1.0, 0.5])
    adapter.step(model, data, client, options=sap.Options(relative_tolerance=1e-10))
    stretch = max(start - 0.2, 0.0) + min(start - 0.1, 0.0)
    k = 1e5 if stretch else 0.0
    # (1 + dt (d + dt k) m m') v' = v - dt k stretch m, with unit masses.
    matrix = np.eye(2) + dt * (1e3 + dt * k) * np.outer(m, m)
    expected = np.linalg.solve(matrix, v - dt * k * stretch * m)
    assert data.qvel == pytest.approx(expected, abs=1e-7)


def test_damper_of_an_actuator_is_implicit(client: sap.Client) -> None:
    # MuJoCo 4, which needs Python 3.11, has it; 3.17, for Python 3.10, rejects the model.
    if not hasattr(mujoco.MjModel, "actuator_damping"):
        pytest.skip("actuators have no damping in this version of MuJoCo")
    model, data = load('<motor joint="a" damping="500" gear="2"/>')
    data.qvel[0] = 1.0
    adapter.step(model, data, client)
    assert data.qvel[0] == pytest.approx(1 / (1 + model.opt.timestep * 500 * 2**2), rel=1e-6)
