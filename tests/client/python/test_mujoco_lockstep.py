"""Rollouts: many environments in lockstep have the bits of steps one by one."""

from __future__ import annotations

import threading
import time
from typing import Any

import mujoco
import numpy as np
import pytest
import sap_islands as sap
import sap_islands.mujoco as adapter
from mujoco.rollout import rollout as mujoco_rollout
from sap_islands.arrays import FloatArray
from sap_islands.scenes import load_scene

from support.mujoco_agreement import load_kind

STATE = mujoco.mjtState.mjSTATE_FULLPHYSICS
STEPS = 8


def state_of(model: mujoco.MjModel, data: mujoco.MjData) -> FloatArray:
    state = np.empty(mujoco.mj_stateSize(model, STATE))
    mujoco.mj_getState(model, data, state, STATE)
    return state


def pushed(model: mujoco.MjModel, data: mujoco.MjData, count: int) -> FloatArray:
    """Copies of a state with different velocities."""
    states = []
    for i in range(count):
        other = mujoco.MjData(model)
        mujoco.mj_copyData(other, model, data)
        other.qvel[:] += 0.02 * i
        states.append(state_of(model, other))
    return np.array(states)


@pytest.mark.parametrize("law", ["sap", "mujoco"])
@pytest.mark.parametrize("groups", [1, 2, 5])
def test_rollout_has_the_bits_of_steps(client: sap.Client, law: adapter.Law, groups: int) -> None:
    model, start = load_kind("everything", "PYRAMIDAL", "EULER")
    initial = pushed(model, start, 5)
    control = np.random.default_rng(1).uniform(-1, 1, (5, STEPS, model.nu))
    state, sensordata = adapter.rollout(model, initial, control, client, law=law, groups=groups)
    assert state.shape == (5, STEPS, initial.shape[1])
    assert sensordata.shape == (5, STEPS, model.nsensordata)
    for i in range(0, 5, 4):
        data = mujoco.MjData(model)
        mujoco.mj_setState(model, data, initial[i], STATE)
        for step in range(STEPS):
            data.ctrl[:] = control[i, step]
            adapter.step(model, data, client, law=law)
            assert np.array_equal(state[i, step], state_of(model, data))
            assert np.array_equal(sensordata[i, step], data.sensordata)


def test_rollout_of_mujocos_law_agrees_with_mujoco_rollout(client: sap.Client) -> None:
    model, start = load_kind("connect", "ELLIPTIC", "EULER")
    initial = pushed(model, start, 3)
    control = np.random.default_rng(2).uniform(-1, 1, (STEPS, model.nu))
    found = adapter.rollout(model, initial, control, client, law="mujoco")
    data = mujoco.MjData(model)
    expected = mujoco_rollout(model, data, initial, np.broadcast_to(control, (1, *control.shape)))
    assert found[0].shape == expected[0].shape
    np.testing.assert_allclose(found[0], expected[0], rtol=0, atol=1e-6)
    np.testing.assert_allclose(found[1], expected[1], rtol=0, atol=1e-4)


def test_environments_may_have_models_of_their_own(client: sap.Client) -> None:
    models = [load_scene("clutter", 4) for _ in range(2)]
    models[1].opt.gravity[2] = -1.62
    start = state_of(models[0], mujoco.MjData(models[0]))
    state, _ = adapter.rollout(models, start, None, client, nstep=5)
    alone, _ = adapter.rollout(models[1], start, None, client, nstep=5)
    assert state.shape[0] == 2
    assert np.array_equal(state[1], alone[0])
    assert not np.array_equal(state[0], alone[0])


def test_controls_may_be_forces(client: sap.Client) -> None:
    model = load_scene("clutter", 1)
    start = state_of(model, mujoco.MjData(model))
    push = np.zeros((1, 1, model.nv))
    push[..., 0] = 3.0
    spec = mujoco.mjtState.mjSTATE_QFRC_APPLIED
    state, _ = adapter.rollout(model, start, push, client, control_spec=spec, nstep=3)
    mass = model.body_subtreemass[0]
    speed = state[0, :, 1 + model.nq]
    np.testing.assert_allclose(speed, 3.0 / mass * 0.01 * np.arange(1, 4), rtol=1e-9)


def test_shapes_that_do_not_agree_are_named(client: sap.Client) -> None:
    model = load_scene("clutter", 2)
    start = state_of(model, mujoco.MjData(model))
    two = np.array([start, start])
    for arguments, options, field in (
        ((start[1:], None), {"nstep": 1}, "initial_state"),
        ((start, None), {}, "nstep"),
        ((start, None), {"nstep": -1}, "nstep"),
        ((two, np.zeros((3, 1, model.nv))), {"control_spec": 1 << 6}, "control"),
        ((start, np.zeros((2, 3))), {}, "control"),
    ):
        call: Any = adapter.rollout
        with pytest.raises(sap.InvalidArgument) as caught:
            call(model, *arguments, client, **options)
        assert caught.value.field == field
    with pytest.raises(sap.InvalidArgument) as caught:
        adapter.rollout([model, model], np.array([start] * 3), None, client, nstep=1)
    assert caught.value.field == "initial_state"


def test_error_of_one_environment_ends_the_rollout(client: sap.Client) -> None:
    model = load_scene("clutter", 4)
    data = mujoco.MjData(model)
    while data.time < 0.5:
        mujoco.mj_step(model, data)
    initial = pushed(model, data, 4)
    none = sap.Options(max_iterations=0)
    with pytest.raises(adapter.Unsolved):
        adapter.rollout(
            model, initial, None, client, nstep=3, options=none, on_unsolved="raise", groups=2
        )
    running = threading.active_count()
    broken = load_scene("clutter", 4)
    broken.opt.timestep = -1.0
    begun = time.monotonic()
    with pytest.raises(sap.InvalidArgument):
        adapter.rollout(
            [model, model, model, broken], initial, None, client, nstep=1_000_000, groups=2
        )
    assert time.monotonic() - begun < 200
    assert threading.active_count() <= running


def test_batch_of_steps_that_fails_advances_no_state(client: sap.Client) -> None:
    models = [load_scene("clutter", 2) for _ in range(2)]
    data = [mujoco.MjData(model) for model in models]
    adapter.step_batch(models, data, client)
    models[1].opt.timestep = -1.0
    with pytest.raises(sap.InvalidArgument):
        adapter.step_batch(models, data, client)
    assert [state.time for state in data] == [0.01, 0.01]
    with pytest.raises(sap.InvalidArgument, match="2 models for 3 states"):
        adapter.step_batch(models, [*data, mujoco.MjData(models[0])], client)
