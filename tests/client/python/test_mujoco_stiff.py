"""Under law="sap" forces that are stiff for the time step decay, as MuJoCo's implicit ones do."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest
import sap_islands as sap
import sap_islands.mujoco as adapter
from sap_islands.arrays import FloatArray

from support.linearization_agreement import differences_of_steps

MODEL = """<mujoco><option timestep="{dt}" integrator="{integrator}" gravity="0 0 0" {option}/>
<worldbody>
 <body><joint name="j" {joint}/>
  <geom type="capsule" fromto="0 0 0 .2 0 .01" size=".02" mass=".5"/>
  <site name="s" pos=".2 0 0"/></body>
 <body name="other" pos="0 1 0"><joint name="k" type="slide" axis="1 0 0"/>
  <geom size=".05" mass=".5"/></body>
 <site name="o" pos=".2 0 .3"/>
</worldbody>{more}</mujoco>"""


def actuator(kind: str) -> str:
    return f"<actuator>{kind}</actuator>"


def tendon(attributes: str, joints: str = '<joint joint="j" coef="1"/>') -> str:
    return f'<tendon><fixed name="t" {attributes}>{joints}</fixed></tendon>'


BOTH = '<joint joint="j" coef="1"/><joint joint="k" coef=".2"/>'
HINGE, BALL = 'axis="0 1 0"', 'type="ball"'
# Attributes of the joint, other elements, attributes of the options.
WAYS: dict[str, tuple[str, str, str]] = {
    "joint, linear": (f'{HINGE} damping="50"', "", ""),
    "joint, polynomial": (f'{HINGE} damping="1 30 30"', "", ""),
    "spring, polynomial": (f'{HINGE} stiffness="2000 8e4 8e6" damping=".1"', "", ""),
    "ball, damping polynomial": (f'{BALL} damping="1 30 30"', "", ""),
    "ball, spring": (f'{BALL} stiffness="5000"', "", ""),
    "free, spring": ('type="free" stiffness="20000"', "", ""),
    "actuator, linear": (HINGE, actuator('<motor joint="j" damping="50"/>'), ""),
    "actuator, polynomial": (HINGE, actuator('<motor joint="j" damping="1 30 30"/>'), ""),
    "actuator, gear": (HINGE, actuator('<motor joint="j" gear="10" damping=".01 .3 .3"/>'), ""),
    "pid, kv": (HINGE, actuator('<pid joint="j" kp="10" ki="1" kv="50"/>'), ""),
    "pid, kp": (HINGE, actuator('<pid joint="j" kp="20000" ki="1" kv="1"/>'), ""),
    "pid, limited": (HINGE, actuator('<pid joint="j" kv="50" forcerange="-60 60"/>'), ""),
    "dcmotor": (HINGE, actuator('<dcmotor joint="j" motorconst="5" resistance=".5"/>'), ""),
    "dcmotor, gear": (
        HINGE,
        actuator('<dcmotor joint="j" gear="100" motorconst=".05" resistance=".5"/>'),
        "",
    ),
    "dcmotor, inductance": (
        HINGE,
        actuator('<dcmotor joint="j" motorconst="5" resistance=".5" inductance=".0001"/>'),
        "",
    ),
    "orientation": (BALL, actuator('<orientation joint="j" kp="100" kv="50"/>'), ""),
    "tendon, polynomial": (HINGE, tendon('damping="1 30 30"'), ""),
    "tendon over two trees, polynomial": (HINGE, tendon('damping="1 30 30"', BOTH), ""),
    "tendon over two trees, spring": (
        HINGE,
        tendon('stiffness="2000 8e4 8e6" springlength="0" damping=".1"', BOTH),
        "",
    ),
    "spatial tendon, polynomial": (
        HINGE,
        '<tendon><spatial damping="10 900 900"><site site="s"/><site site="o"/></spatial></tendon>',
        "",
    ),
    "fluid": (HINGE, "", 'density="5000" viscosity="2000"'),
    "fluid, ball": (BALL, "", 'density="5000" viscosity="2000"'),
}


def load(way: str, *, dt: float = 0.002, integrator: str = "implicitfast") -> tuple[Any, Any]:
    joint, more, option = WAYS[way]
    text = MODEL.format(dt=dt, integrator=integrator, joint=joint, more=more, option=option)
    try:
        model = mujoco.MjModel.from_xml_string(text)
    except ValueError:
        if mujoco.mj_version() >= 4_000_000:
            raise
        pytest.skip("MuJoCo before 4 has no such force")
    data = mujoco.MjData(model)
    data.qvel[:] = np.linspace(1, 0.4, model.nv)
    data.qvel[-1] = 0.0
    return model, data


def energy(model: Any, data: Any) -> float:
    momentum = np.empty(model.nv)
    mujoco.mj_mulM(model, data, momentum, data.qvel)
    return float(data.qvel @ momentum / 2)


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast"])
@pytest.mark.parametrize("way", WAYS)
def test_motion_against_a_stiff_force_decays(way: str, integrator: str) -> None:
    model, data = load(way, integrator=integrator)
    mujoco.mj_forward(model, data)
    first = energy(model, data)
    for _ in range(60):
        adapter.advance(model, data, on_unsolved="raise")
        assert energy(model, data) < first * (1 + 1e-6)
    assert not any(warning.number for warning in data.warning)


@pytest.mark.parametrize("way", WAYS)
def test_motion_converges_to_that_of_mujoco_with_the_time_step(way: str) -> None:
    def end(dt: float, plain: bool) -> FloatArray:
        model, data = load(way, dt=dt)
        for _ in range(round(4e-4 / dt)):
            if plain:
                mujoco.mj_step(model, data)
            else:
                adapter.advance(model, data, on_unsolved="raise")
        return np.concatenate([data.qpos, data.qvel])

    exact = 2 * end(5e-7, plain=True) - end(1e-6, plain=True)
    coarse, fine = (np.abs(end(dt, plain=False) - exact).max() for dt in (2e-5, 5e-6))
    assert fine < 0.4 * coarse or fine < 1e-6


@pytest.mark.parametrize("law", ["sap", "coulomb"])
@pytest.mark.parametrize("way", WAYS)
def test_steps_and_advances_have_the_same_bits(
    client: sap.Client, way: str, law: adapter.Law
) -> None:
    model, stepped = load(way)
    advanced = load(way)[1]
    for _ in range(5):
        adapter.step(model, stepped, client, law=law)
        adapter.advance(model, advanced, law=law)
        for name in ("qpos", "qvel", "act", "actuator_force", "qfrc_actuator", "sensordata"):
            assert np.array_equal(getattr(stepped, name), getattr(advanced, name)), name


@pytest.mark.parametrize("way", ["joint, polynomial", "dcmotor", "orientation", "fluid, ball"])
def test_derivatives_of_a_step_are_those_of_differences(client: sap.Client, way: str) -> None:
    model, data = load(way)
    for _ in range(3):
        adapter.advance(model, data)
    found = adapter.linearize(model, data, client)

    A, _ = differences_of_steps(model, data, client, 1e-6)
    velocities = slice(model.nv, None)
    assert found.A[velocities, velocities] == pytest.approx(A[velocities, velocities], abs=2e-5)
