"""Steps under MuJoCo's integrator `discrete`, which has a metric of its own."""

from __future__ import annotations

import copy
import functools

import mujoco
import numpy as np
import pytest
import sap_islands as sap
import sap_islands.mujoco as adapter
from sap_islands.arrays import FloatArray

from support import mujoco_program
from support.linearization_agreement import differences_of_mujoco, largest_deviation

pytestmark = pytest.mark.skipif(
    not hasattr(mujoco.mjtIntegrator, "mjINT_DISCRETE"), reason="needs MuJoCo 3.13 or later"
)

STEPS = 40
NAMES = (
    "nothing stiff",
    "dampers",
    "springs",
    "friction loss",
    "limits",
    "elliptic cones",
    "servo",
    "tendon within a tree",
    "tendon between trees",
    "limited tendon between trees",
    "servo of a tendon between trees",
    "fluid",
    "floating chain",
    "equality",
    "dense",
    "sparse",
)

models = functools.cache(mujoco_program.discrete_models)


def outputs(data: mujoco.MjData) -> dict[str, FloatArray]:
    names = ("qpos", "qvel", "qacc", "qfrc_constraint", "efc_force", "actuator_force")
    return {name: getattr(data, name).copy() for name in names}


def largest_difference(one: mujoco.MjData, other: mujoco.MjData) -> float:
    """The difference of an output, relative to its largest number."""
    expected = outputs(other)
    return max(largest_deviation(found, expected[name]) for name, found in outputs(one).items())


def test_every_model_is_tested() -> None:
    assert tuple(models()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_steps_of_mujocos_law_agree_with_mujoco(client: sap.Client, name: str) -> None:
    model = models()[name]
    stepped, data = mujoco_program.in_motion(model), mujoco_program.in_motion(model)
    for _ in range(STEPS):
        # From the same state: piles and cones multiply differences from step to step.
        stepped.qpos[:], stepped.qvel[:] = data.qpos, data.qvel
        adapter.step(model, stepped, client, law="mujoco", on_unsolved="raise")
        mujoco.mj_step(model, data)
        assert largest_difference(stepped, data) < 1e-9


@pytest.mark.parametrize("law", ["sap", "coulomb", "mujoco"])
def test_one_call_and_rollouts_have_the_bits_of_step(client: sap.Client, law: adapter.Law) -> None:
    for model in models().values():
        stepped, advanced = mujoco_program.in_motion(model), mujoco_program.in_motion(model)
        state = np.empty(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS))
        mujoco.mj_getState(model, stepped, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        found = adapter.rollout(model, state, stepped.ctrl, nstep=12, law=law, threads=2)[0]
        for _ in range(12):
            adapter.step(model, stepped, client, law=law)
            adapter.advance(model, advanced, law=law)
            expected = outputs(stepped)
            for key, values in outputs(advanced).items():
                assert np.array_equal(values, expected[key]), key
        assert np.array_equal(found[0, -1, 1 : 1 + model.nq], stepped.qpos)


@pytest.mark.parametrize(
    "name", ["limits", "equality", "servo", "limited tendon between trees", "fluid"]
)
def test_without_contacts_the_law_of_sap_is_mujocos(client: sap.Client, name: str) -> None:
    # R of limits and equalities is MuJoCo's under both laws, and so is A.
    model = copy.copy(models()[name])
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    stepped, data = mujoco_program.in_motion(model), mujoco_program.in_motion(model)
    for _ in range(STEPS):
        stepped.qpos[:], stepped.qvel[:] = data.qpos, data.qvel
        adapter.step(model, stepped, client, options=sap.Options(relative_tolerance=1e-12))
        mujoco.mj_step(model, data)
        assert largest_difference(stepped, data) < 1e-9


def test_what_the_law_of_sap_holds_stays_held_and_rests_as_deep(client: sap.Client) -> None:
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><option integrator="discrete" gravity="3 0 -9"/><worldbody>
        <geom type="plane" size="5 5 1"/><body pos="0 0 .05"><freejoint/>
        <geom type="box" size=".1 .1 .05"/></body></worldbody></mujoco>"""
    )
    data, other = mujoco.MjData(model), mujoco.MjData(model)
    for _ in range(500):
        adapter.step(model, data, client)
        mujoco.mj_step(model, other)
    sigma, mu, dt = 1e-3, 1.0, model.opt.timestep
    assert 0.0 <= data.qvel[0] < sigma * mu * 9.0 * dt
    assert other.qvel[0] > 10 * data.qvel[0]
    assert data.qpos[2] == pytest.approx(other.qpos[2], abs=2e-6)


def test_controls_and_activations_of_callbacks_are_read(client: sap.Client) -> None:
    model = models()["servo"]
    given, called = mujoco_program.in_motion(model), mujoco_program.in_motion(model)
    seen: list[mujoco.MjModel] = []

    def control(of: mujoco.MjModel, state: mujoco.MjData) -> None:
        seen.append(of)
        state.ctrl[:] = np.sin(3 * state.time)

    for _ in range(12):
        given.ctrl[:] = np.sin(3 * given.time)
        adapter.step(model, given, client, law="mujoco")
        mujoco.set_mjcb_control(control)
        try:
            adapter.advance(model, called, law="mujoco")
        finally:
            mujoco.set_mjcb_control(None)
        assert np.array_equal(given.qpos, called.qpos)
    assert len(seen) == 12
    assert all(each is model for each in seen)


def test_sleeping_bodies_stay_where_they_are(client: sap.Client) -> None:
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><option integrator="discrete" sleep_tolerance="1e-2"><flag sleep="enable"/>
        </option><worldbody><geom type="plane" size="5 5 .1"/>
        <body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
        <body pos="1 0 1"><joint axis="0 1 0" stiffness="3"/>
        <geom type="capsule" size=".03" fromto="0 0 0 .3 0 0"/></body></worldbody></mujoco>"""
    )
    data = mujoco.MjData(model)
    for _ in range(300):
        adapter.step(model, data, client)
    assert data.nefc == 0
    assert not data.qvel[:6].any()
    assert data.qvel[6] != 0.0
    assert data.qpos[2] == pytest.approx(0.1, abs=1e-3)


@pytest.mark.parametrize("name", ["dampers", "servo", "tendon within a tree", "limits", "fluid"])
def test_derivatives_agree_with_mujocos_differences(client: sap.Client, name: str) -> None:
    model = models()[name]
    data = mujoco_program.in_motion(model)
    for _ in range(STEPS):
        mujoco.mj_step(model, data)
    A, B = differences_of_mujoco(model, data)
    found = adapter.linearize(model, data, client, law="mujoco", on_unsolved="raise")
    assert largest_deviation(found.A, A) < 1e-5
    assert largest_deviation(found.B, B) < 1e-5
