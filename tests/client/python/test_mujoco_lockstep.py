"""Rollouts: many environments in lockstep have the bits of steps one by one."""

from __future__ import annotations

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


WITH = ["client", "problems", "thread", "threads"]


def rolled_out(
    client: sap.Client, how: str, model: Any, initial: Any, control: Any, **more: Any
) -> Any:
    if how == "client":
        return adapter.rollout(model, initial, control, client, **more)
    if how == "problems":
        tolerance = 1e-10 if more.get("law") == "mujoco" else None
        options = sap.Options(relative_tolerance=tolerance, islands=True)  # not of a whole step
        return adapter.rollout(model, initial, control, client, options=options, **more)
    return adapter.rollout(model, initial, control, threads=3 if how == "threads" else 1, **more)


@pytest.mark.parametrize("law", ["sap", "mujoco"])
@pytest.mark.parametrize("how", ["client", "problems", "threads"])
def test_rollout_has_the_bits_of_steps(client: sap.Client, law: adapter.Law, how: str) -> None:
    model, start = load_kind("everything", "PYRAMIDAL", "EULER")
    initial = pushed(model, start, 5)
    control = np.random.default_rng(1).uniform(-1, 1, (5, STEPS, model.nu))
    state, sensordata = rolled_out(client, how, model, initial, control, law=law)
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


# A box on the floor, and a hinge that an actuator with the force 3 times its position throws away.
DIVERGING = """
<mujoco><option timestep=".01"><flag {flag}/></option><worldbody>
  <geom type="plane" size="3 3 .1"/><body pos="0 0 .12"><freejoint/><geom size=".1"/></body>
  <body pos="1 0 1"><joint name="j" axis="0 1 0" damping=".001"/>
    <geom type="capsule" fromto="0 0 0 .2 0 0" size=".02" mass=".1"/></body></worldbody>
<actuator><general joint="j" gaintype="affine" gainprm="0 0 3"/></actuator>
<sensor><jointpos joint="j"/><jointvel joint="j"/></sensor></mujoco>"""


@pytest.mark.parametrize("how", WITH)
@pytest.mark.parametrize("law", ["sap", "coulomb", "mujoco"])
def test_an_environment_that_diverges_is_frozen_and_named(
    client: sap.Client, law: adapter.Law, how: str
) -> None:
    model = mujoco.MjModel.from_xml_string(DIVERGING.format(flag=""))
    initial = np.tile(state_of(model, mujoco.MjData(model)), (4, 1))
    control = np.zeros((4, 120, 1))
    control[1, 5:] = 1.0
    control[3, 60:] = 2.0
    control[0, 3:6] = 0.01
    data = [mujoco.MjData(model) for _ in range(2)]
    expected = mujoco_rollout(model, data, initial, control)
    with pytest.warns(adapter.FrozenWarning) as caught:
        found = rolled_out(client, how, model, initial, control, law=law)
    warned_in = np.zeros(4, np.int64)
    again = rolled_out(client, how, model, initial, control, law=law, warned_in=warned_in)
    (warning,) = [each.message for each in caught]
    assert isinstance(warning, adapter.FrozenWarning)
    assert warning.environments == (1, 3)
    assert warning.steps == tuple(warned_in[[1, 3]])
    assert f"1 in step {warned_in[1]} (BADQ" in str(warning)
    for one, other in zip(found, again, strict=True):
        assert np.array_equal(one, other)
    assert warned_in[[0, 2]].tolist() == [120, 120]
    for i in (1, 3):
        assert 0 < warned_in[i] < 119
        for output in found:
            assert (output[i, warned_in[i] :] == output[i, warned_in[i]]).all()
        assert (np.diff(found[0][i, : warned_in[i], 0]) > 0.009).all()
        assert found[0][i, -1, 0] == pytest.approx(0.01)  # it was reset
    if law == "mujoco":
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)


BAD = {
    "force": mujoco.mjtState.mjSTATE_QFRC_APPLIED,
    "force of a body": mujoco.mjtState.mjSTATE_XFRC_APPLIED,
    "control": mujoco.mjtState.mjSTATE_CTRL,
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("how", WITH)
@pytest.mark.parametrize("bad", [*BAD, "qpos", "qvel"])
@pytest.mark.parametrize("law", ["sap", "mujoco"])
def test_numbers_that_are_not_finite_end_their_environment_alone(
    client: sap.Client, law: adapter.Law, bad: str, how: str
) -> None:
    model = mujoco.MjModel.from_xml_string(DIVERGING.format(flag=""))
    initial = np.tile(state_of(model, mujoco.MjData(model)), (3, 1))
    spec = BAD.get(bad, mujoco.mjtState.mjSTATE_CTRL)
    control = np.zeros((3, 6, mujoco.mj_stateSize(model, spec)))
    if bad in BAD:
        control[1, 2, -1] = np.nan
    else:
        initial[1, 1 if bad == "qpos" else 1 + model.nq] = np.inf
    warned_in = np.zeros(3, np.int64)
    found = rolled_out(
        client, how, model, initial, control, law=law, control_spec=int(spec), warned_in=warned_in
    )
    assert warned_in.tolist() == [6, 2 if bad in BAD else 0, 6]
    assert np.isfinite(found[0]).all()
    assert np.array_equal(found[0][0], found[0][2])
    assert (found[0][1, warned_in[1] :] == found[0][1, -1]).all()
    if law == "mujoco":
        data = mujoco.MjData(model)
        expected = mujoco_rollout(model, data, initial, control, control_spec=int(spec))
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("how", WITH)
def test_a_state_that_mujoco_does_not_reset_stays_where_it_is(client: sap.Client, how: str) -> None:
    model = mujoco.MjModel.from_xml_string(DIVERGING.format(flag='autoreset="disable"'))
    initial = state_of(model, mujoco.MjData(model))
    push = np.zeros((2, 6, model.nv))
    push[1, 2, 0] = np.nan
    spec = int(mujoco.mjtState.mjSTATE_QFRC_APPLIED)
    warned_in = np.zeros(2, np.int64)
    state, _ = rolled_out(client, how, model, initial, push, control_spec=spec, warned_in=warned_in)
    assert warned_in.tolist() == [6, 2]
    assert (state[1, 1:] == state[0, 1]).all()


def test_an_output_of_another_shape_is_named(client: sap.Client) -> None:
    model = load_scene("clutter", 1)
    start = state_of(model, mujoco.MjData(model))
    with pytest.raises(sap.InvalidArgument, match=r"warned_in has the shape \[2\]; \[1\]"):
        adapter.rollout(model, start, None, client, nstep=1, warned_in=np.zeros(2, np.int64))


def test_models_whose_states_or_sensors_differ_in_length_are_refused(client: sap.Client) -> None:
    model = mujoco.MjModel.from_xml_string(DIVERGING.format(flag=""))
    more = "<jointpos joint='j'/></sensor>"
    other = mujoco.MjModel.from_xml_string(DIVERGING.format(flag="").replace("</sensor>", more))
    start = state_of(model, mujoco.MjData(model))
    with pytest.raises(sap.InvalidArgument, match=r"model\[1\] has") as caught:
        adapter.rollout([model, other], start, None, nstep=1)
    assert caught.value.index == 1


@pytest.mark.parametrize("how", WITH)
def test_an_error_names_its_environment_and_step(client: sap.Client, how: str) -> None:
    models = [load_scene("clutter", 4) for _ in range(3)]
    models[1].opt.timestep = -1.0
    initial = state_of(models[0], mujoco.MjData(models[0]))
    with pytest.raises(sap.InvalidArgument, match=r"environment 1, step 0: .*time_step"):
        rolled_out(client, how, models, initial, None, nstep=3)


def test_an_unsolved_island_of_a_rollout_is_named(client: sap.Client) -> None:
    model = load_scene("clutter", 4)
    data = mujoco.MjData(model)
    while data.ncon == 0:
        mujoco.mj_step(model, data)
    initial = pushed(model, data, 2)
    with pytest.raises(adapter.Unsolved, match="environment 0, step 0: "):
        adapter.rollout(
            model,
            initial,
            None,
            client,
            nstep=3,
            options=sap.Options(max_iterations=0),
            on_unsolved="raise",
        )


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_in_this_process_ends_its_environment_only(threads: int) -> None:
    models = [load_scene("clutter", 4) for _ in range(5)]
    for i in (1, 3):
        models[i].opt.timestep = -1.0
    initial = state_of(models[0], mujoco.MjData(models[0]))
    with pytest.raises(sap.InvalidArgument, match=r"environment 1, step 0: .*time_step") as caught:
        adapter.rollout(models, initial, None, nstep=40, threads=threads)
    assert caught.value.states == (1, 3)


@pytest.mark.parametrize("how", WITH)
def test_certificates_tell_how_each_step_was_solved(client: sap.Client, how: str) -> None:
    model = load_scene("clutter", 4)
    data = mujoco.MjData(model)
    while data.ncon == 0:
        mujoco.mj_step(model, data)
    initial = pushed(model, data, 3)
    initial[1] = state_of(model, mujoco.MjData(model))  # nothing touches yet
    initial[2, 1 + model.nq] = np.inf  # MuJoCo resets it
    found = rolled_out(
        client, how, model, initial, None, nstep=4, certificates=True, warned_in=np.zeros(3, int)
    )
    certificates = found[2]
    assert certificates.shape == (3, 4)
    state = mujoco.MjData(model)
    mujoco.mj_setState(model, state, initial[0], mujoco.mjtState.mjSTATE_FULLPHYSICS)
    for step in range(4):
        islands = adapter.step(model, state, client)[1].islands
        assert certificates[0, step].tolist() == (
            len(islands),
            0,
            islands.iterations.max(),
            islands.optimality_gap_bound.max(),
        )
    assert certificates["bound"][0].max() > 0
    assert certificates[1, 0].tolist() == (0, 0, 0, 0.0)
    assert (certificates[2, 1:] == np.zeros((), certificates.dtype)).all()


@pytest.mark.parametrize("how", WITH)
def test_a_rollout_ends_at_its_deadline(client: sap.Client, how: str) -> None:
    model = load_scene("clutter", 8)
    start = state_of(model, mujoco.MjData(model))
    with pytest.raises(sap.DeadlineExceeded):
        rolled_out(client, how, model, start, None, nstep=100_000, timeout=0.05)


def test_batch_of_steps_that_fails_advances_no_state(client: sap.Client) -> None:
    models = [load_scene("clutter", 2) for _ in range(2)]
    data = [mujoco.MjData(model) for model in models]
    adapter.step_batch(models, data, client)
    models[1].opt.timestep = -1.0
    with pytest.raises(sap.InvalidArgument, match=r"data\[1\]: "):
        adapter.step_batch(models, data, client)
    assert [state.time for state in data] == [0.01, 0.01]
    with pytest.raises(sap.InvalidArgument, match="2 models for 3 states"):
        adapter.step_batch(models, [*data, mujoco.MjData(models[0])], client)


FALLING = """
<mujoco><option timestep=".01"/><worldbody><geom type="plane" size="3 3 .1"/>
  <body pos="0 0 .15"><freejoint/><geom type="box" size=".1 .1 .1"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("how", WITH)
def test_an_environment_at_rest_ends_and_its_last_state_fills_its_rows(
    client: sap.Client, how: str
) -> None:
    model = mujoco.MjModel.from_xml_string(FALLING)
    initial = pushed(model, mujoco.MjData(model), 2)
    initial[1, 3] += 0.5  # it falls for longer
    steps = 200
    alone = rolled_out(client, how, model, initial, None, nstep=steps)
    until = adapter.AtRest(speed=1e-2, seconds=0.05)
    found = rolled_out(
        client, how, model, initial, None, nstep=steps, until=until, certificates=True
    )
    ended = []
    for i in range(2):
        speed = (model.dof_length * np.abs(alone[0][i, :, 1 + model.nq :])).max(axis=1)
        is_slow = np.convolve(speed < 1e-2, np.ones(5), "valid") == 5  # five steps of 10 ms
        ended.append(int(np.flatnonzero(is_slow)[0]) + 4)
        for output, whole in zip(found[:2], alone, strict=True):
            assert np.array_equal(output[i, : ended[i] + 1], whole[i, : ended[i] + 1])
            assert (output[i, ended[i] :] == output[i, ended[i]]).all()
        assert (found[2][i, ended[i] + 1 :] == np.zeros((), found[2].dtype)).all()
    assert ended[0] < ended[1] < steps - 1


def test_a_rest_of_no_speed_is_refused() -> None:
    with pytest.raises(sap.InvalidArgument, match="speed is 0"):
        adapter.AtRest(speed=0.0)
    with pytest.raises(sap.InvalidArgument, match="seconds is -1"):
        adapter.AtRest(seconds=-1)
