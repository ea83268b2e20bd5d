"""Bodies that joints guide along a surface slide over it, with friction of mu N."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest
import sap_islands as sap
import sap_islands.mujoco as adapter

from support.linearization_agreement import differences_of_steps

MODEL = """<mujoco><option timestep=".002" cone="{cone}" impratio="1"/>
<worldbody><geom type="plane" size="9 9 .1" friction=".5"/>{body}</worldbody></mujoco>"""
PLANAR = """<joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>
<joint axis="0 0 1"/>"""
# Body at height 0, force, and dv/dt without friction of its first dof.
BODIES: dict[str, tuple[str, float, float]] = {
    "slider": (
        '<body pos="0 0 {z}"><joint type="slide" axis="1 0 0"/>'
        '<geom type="box" size=".1 .1 .05" pos="0 0 .05" mass="1" friction=".5"/></body>',
        10.0,
        10.0,
    ),
    "turned slider": (
        '<body pos="0 0 {z}" euler="0 0 37"><joint type="slide" axis="1 0 0"/>'
        '<geom type="box" size=".1 .1 .05" pos="0 0 .05" mass="1" friction=".5"/></body>',
        10.0,
        10.0,
    ),
    "door": (
        '<body pos="0 0 {z}"><joint axis="0 0 1"/>'
        '<inertial pos=".4 0 .5" mass="17" diaginertia="1 1 1" />'
        '<geom type="box" size=".4 .02 .5" pos=".4 0 .5" friction=".5"/></body>',
        5.0,
        5.0 / (17 * 0.16 + 1),
    ),
    "base": (
        '<body pos="0 0 {z}">' + PLANAR + '<geom type="box" size=".2 .15 .05" pos="0 0 .05" '
        'mass="1" friction=".5"/></body>',
        5.0,
        5.0,
    ),
    "turntable": (
        '<body pos="0 0 {z}"><joint axis="0 0 1"/><inertial pos="0 0 .05" mass="1" '
        'diaginertia=".04 .04 .04"/><geom type="cylinder" size=".2 .05" pos="0 0 .05" '
        'friction=".5"/></body>',
        5.0,
        125.0,
    ),
    "turntable that grips": (
        '<body pos="0 0 {z}"><joint axis="0 0 1"/><inertial pos="0 0 .05" mass="1" '
        'diaginertia=".04 .04 .04"/><geom type="cylinder" size=".2 .05" pos="0 0 .05" condim="6" '
        'friction=".5 .02 .01"/></body>',
        5.0,
        125.0,
    ),
}


def load(name: str, height: float, cone: str = "elliptic") -> tuple[Any, Any]:
    body, force, _ = BODIES[name]
    text = MODEL.format(body=body.format(z=height), cone=cone)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qfrc_applied[0] = force
    return model, data


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
@pytest.mark.parametrize("law", ["sap", "coulomb"])
@pytest.mark.parametrize("name", BODIES)
def test_touching_without_load_takes_no_force(name: str, law: adapter.Law, cone: str) -> None:
    model, data = load(name, 0.0, cone)
    for _ in range(100):
        adapter.advance(model, data, law=law, on_unsolved="raise")
    assert data.qvel[0] == pytest.approx(0.2 * BODIES[name][2], rel=1e-6)


@pytest.mark.parametrize("height", [1e-4, 1e-3, 3e-3])
@pytest.mark.parametrize("name", BODIES)
def test_contacts_before_touch_give_nothing(name: str, height: float) -> None:
    model, data = load(name, height)
    adapter.find_contacts_within(model, 0.005)
    for _ in range(100):
        adapter.advance(model, data, on_unsolved="raise")
        assert data.ncon > 0
        assert not data.efc_force.any()
    assert data.qvel[0] == pytest.approx(0.2 * BODIES[name][2], rel=1e-6)


@pytest.mark.parametrize("cone", ["elliptic", "pyramidal"])
def test_friction_is_that_of_the_force_of_the_penetration(cone: str) -> None:
    model, data = load("slider", -2e-5, cone)
    data.qfrc_applied[0] = 40.0
    for _ in range(50):
        before = data.qvel[0]
        adapter.advance(model, data, on_unsolved="raise")
        force, total = np.zeros(6), np.zeros(2)
        for contact in range(data.ncon):
            mujoco.mj_contactForce(model, data, contact, force)
            total += force[0], np.hypot(force[1], force[2])
        assert total[0] > 1
        assert total[1] == pytest.approx(0.5 * total[0], rel=1e-9)
        acceleration = (data.qvel[0] - before) / model.opt.timestep
        assert acceleration == pytest.approx(40 - 0.5 * total[0], rel=1e-9)


def test_a_guided_body_sticks_below_its_friction(client: sap.Client) -> None:
    model, data = load("slider", -2e-4)
    data.qfrc_applied[0] = 1.0
    for _ in range(50):
        adapter.step(model, data, client, on_unsolved="raise")
    assert 0 < data.qvel[0] < 1e-5


def test_derivatives_of_a_guided_body_are_those_of_differences(client: sap.Client) -> None:
    model, data = load("base", -2e-5)
    for _ in range(10):
        adapter.advance(model, data)
    found = adapter.linearize(model, data, client)

    A, _ = differences_of_steps(model, data, client, 1e-6)
    velocities = slice(model.nv, None)
    assert found.A[velocities, velocities] == pytest.approx(A[velocities, velocities], abs=1e-5)
