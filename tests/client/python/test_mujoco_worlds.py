"""Rollouts at real servers: the bits of rollouts in this process, over one or several of them."""

from __future__ import annotations

import contextlib
import signal
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import mujoco
import numpy as np
import pytest
import sap_islands as sap
import sap_islands.mujoco as adapter
from sap_islands.scenes import load_scene

from support.fleet import Fleet
from support.server_process import ServerProcess
from support.worlds import ARM, CLUTTER, MODELS, library, states_of

LAWS = ["sap", "mujoco", "coulomb", "run"]
FLAGS = ("--mujoco-library", str(library()))


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    """A server of worlds with two threads."""
    with ServerProcess("127.0.0.1:0", *FLAGS, "--threads=2") as process:
        yield process


@pytest.fixture(scope="module")
def served(server: ServerProcess) -> Iterator[sap.Client]:
    """A client of it."""
    with sap.connect(server.address) as client:
        yield client


def controls_of(model: Any, worlds: int, steps: int) -> Any:
    rng = np.random.default_rng(1)
    return rng.uniform(-0.5, 0.5, (worlds, steps, model.nu)) if model.nu else None


def assert_same(found: tuple[Any, ...], expected: tuple[Any, ...]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert np.array_equal(one, other)


@contextlib.contextmanager
def without_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", MODELS)
def test_rollouts_have_the_bits_of_this_process(served: sap.Client, name: str, law: Any) -> None:
    model = mujoco.MjModel.from_xml_string(MODELS[name])
    states, steps = states_of(model, 9), 40
    controls = controls_of(model, 9, steps)
    settings: dict[str, Any] = {"nstep": steps, "law": law, "certificates": True}
    with without_warnings():
        found = adapter.rollout(model, states, controls, served, **settings)
        again = adapter.rollout(model, states, controls, served, **settings)
        expected = adapter.rollout(model, states, controls, threads=2, **settings)
    assert_same(found, expected)
    assert_same(again, expected)  # cut by measured times


def test_a_long_rollout_of_one_environment_goes_on_from_its_checkpoints(
    served: sap.Client,
) -> None:
    model = mujoco.MjModel.from_xml_string(CLUTTER)
    states = states_of(model, 1)
    for _ in range(2):
        found = adapter.rollout(model, states, None, served, nstep=3000)
        assert_same(found, adapter.rollout(model, states, None, nstep=3000))


def test_controls_of_several_kinds_are_set(served: sap.Client) -> None:
    model = mujoco.MjModel.from_xml_string(MODELS["held"])
    kinds = mujoco.mjtState
    spec = int(
        kinds.mjSTATE_XFRC_APPLIED
        | kinds.mjSTATE_EQ_ACTIVE
        | kinds.mjSTATE_MOCAP_POS
        | kinds.mjSTATE_MOCAP_QUAT
    )
    controls = np.zeros((3, 20, mujoco.mj_stateSize(model, spec)))
    controls[..., 6 * model.nbody] = [[1.0], [0.0], [1.0]]  # one weld is not active
    controls[..., -7:-4] = [0.1, 0.0, 0.4]
    controls[..., -4] = 1.0
    states = states_of(model, 3)
    expected = adapter.rollout(model, states, controls, control_spec=spec)
    assert_same(adapter.rollout(model, states, controls, served, control_spec=spec), expected)
    assert not np.array_equal(expected[0][0], expected[0][1])
    with pytest.raises(sap.InvalidArgument, match="mjSTATE_QPOS") as caught:
        adapter.rollout(
            model, states, states[:, None, 1:8], served, control_spec=int(kinds.mjSTATE_QPOS)
        )
    assert caught.value.field == "control_spec"


def test_a_model_that_was_changed_is_another_one(served: sap.Client) -> None:
    model = mujoco.MjModel.from_xml_string(CLUTTER)
    states = states_of(model, 2)
    before = adapter.rollout(model, states, None, served, nstep=5)
    model.opt.gravity[2] = -1.62
    after = adapter.rollout(model, states, None, served, nstep=5)
    assert not np.array_equal(before[0], after[0])
    assert_same(after, adapter.rollout(model, states, None, nstep=5))


def test_environments_may_have_models_of_their_own(served: sap.Client) -> None:
    models = [mujoco.MjModel.from_xml_string(CLUTTER) for _ in range(4)]
    for i, model in enumerate(models):
        model.opt.gravity[2] = -1.0 - i
    states = states_of(models[0], 4)
    found = adapter.rollout(models, states, None, served, nstep=20)
    assert_same(found, adapter.rollout(models, states, None, nstep=20))


def test_models_that_do_not_fit_together_are_put_again() -> None:
    model = load_scene("clutter", 40)
    mebibytes = 1 + mujoco.mj_sizeModel(model) // 2**20
    flags = (*FLAGS, "--threads=1", f"--max-client-model-memory-mib={mebibytes}")
    with ServerProcess("127.0.0.1:0", *flags) as server, sap.connect(server.address) as client:
        states = states_of(model, 1)
        for gravity in (-9.0, -1.0, -9.0, -1.0):
            model.opt.gravity[2] = gravity
            found = adapter.rollout(model, states, None, client, nstep=2)
            assert_same(found, adapter.rollout(model, states, None, nstep=2))


def test_an_environment_that_diverges_is_frozen_as_here(served: sap.Client) -> None:
    model = mujoco.MjModel.from_xml_string(ARM)
    states = states_of(model, 3)
    states[1, -1] = np.inf
    here, there = np.zeros(3, np.int64), np.zeros(3, np.int64)
    expected = adapter.rollout(model, states, None, nstep=7, warned_in=here)
    found = adapter.rollout(model, states, None, served, nstep=7, warned_in=there)
    assert_same(found, expected)
    assert there.tolist() == here.tolist() == [7, 0, 7]
    with pytest.warns(adapter.FrozenWarning, match="1 in step 0 .BADQVEL"):
        adapter.rollout(model, states, None, served, nstep=7)


def test_environments_end_at_rest_as_here(served: sap.Client) -> None:
    model = mujoco.MjModel.from_xml_string(CLUTTER)
    states = states_of(model, 3)
    until = adapter.AtRest(speed=0.5, seconds=0.05)
    whole = adapter.rollout(model, states, None, nstep=1500)
    for _ in range(2):
        found = adapter.rollout(model, states, None, served, nstep=1500, until=until)
        assert_same(found, adapter.rollout(model, states, None, nstep=1500, until=until))
    assert not np.array_equal(found[0], whole[0])


def test_an_error_ends_its_environment_only(served: sap.Client) -> None:
    models = [load_scene("clutter", 4) for _ in range(5)]
    for i in (1, 3):
        models[i].opt.timestep = -1.0
    with pytest.raises(sap.InvalidArgument, match=r"environment 1, step 0: .*time_step") as caught:
        adapter.rollout(models, states_of(models[0], 1), None, served, nstep=40)
    assert caught.value.states == (1, 3)


def test_an_unsolved_island_is_warned_of_or_raised(served: sap.Client) -> None:
    model = mujoco.MjModel.from_xml_string(CLUTTER)
    settings: dict[str, Any] = {"nstep": 30, "options": sap.Options(max_iterations=1)}
    states = states_of(model, 2)
    with pytest.warns(adapter.UnsolvedWarning, match="islands were not solved"):
        adapter.rollout(model, states, None, served, **settings)
    with pytest.raises(adapter.Unsolved, match=r"environment (\d+), step \d+: ") as caught:
        adapter.rollout(model, states, None, served, **settings, on_unsolved="raise")
    assert f"environment {caught.value.states[0]}, " in str(caught.value)


def slow_model() -> mujoco.MjModel:
    """A model of which a step takes milliseconds."""
    model = load_scene("clutter", 160)
    model.opt.timestep = 1e-4
    return model


def test_a_rollout_ends_at_its_deadline(served: sap.Client) -> None:
    model = slow_model()
    with pytest.raises(sap.DeadlineExceeded):
        adapter.rollout(model, states_of(model, 8), None, served, nstep=20_000, timeout=0.5)


def test_a_rollout_ends_with_an_interrupt(served: sap.Client) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    model = slow_model()
    main = threading.main_thread().ident
    assert main is not None
    before = signal.signal(signal.SIGUSR1, interrupt)  # pytest-timeout has SIGALRM
    try:
        threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGUSR1)).start()
        with pytest.raises(KeyboardInterrupt):
            adapter.rollout(model, states_of(model, 8), None, served, nstep=20_000)
    finally:
        signal.signal(signal.SIGUSR1, before)


def copies(model: mujoco.MjModel, states: Any) -> list[mujoco.MjData]:
    """States with controls, forces and a warm start."""
    made = [mujoco.MjData(model) for _ in states]
    for i, (data, state) in enumerate(zip(made, states, strict=True)):
        mujoco.mj_setState(model, data, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        data.ctrl[:] = 0.1 * i
        data.qfrc_applied[:] = 0.01 * i
    adapter.advance_batch(model, made)
    return made


def whole(model: mujoco.MjModel, data: mujoco.MjData) -> Any:
    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    state = np.empty(mujoco.mj_stateSize(model, kind))
    mujoco.mj_getState(model, data, state, kind)
    return np.concatenate((state, data.sensordata))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("steps", [1, 30])
def test_advanced_states_have_the_bits_of_this_process(
    served: sap.Client, name: str, law: Any, steps: int
) -> None:
    model = mujoco.MjModel.from_xml_string(MODELS[name])
    here, there = (copies(model, states_of(model, 4)) for _ in range(2))
    with without_warnings():
        expected = adapter.advance_batch(model, here, steps=steps, law=law, threads=2)
        found = adapter.advance_batch(model, there, served, steps=steps, law=law)
    assert found == expected
    for one, other in zip(there, here, strict=True):
        assert np.array_equal(whole(model, one), whole(model, other))


def test_a_state_with_an_error_is_not_advanced_and_the_others_are(served: sap.Client) -> None:
    models = [load_scene("clutter", 4) for _ in range(3)]
    models[1].opt.timestep = -1.0
    data = [mujoco.MjData(model) for model in models]
    with pytest.raises(sap.InvalidArgument, match=r"data\[1\]: .*time_step") as caught:
        adapter.advance_batch(models, data, served)
    assert caught.value.states == (1,)
    assert [each.time for each in data] == [0.01, 0.0, 0.01]


def test_warnings_of_advanced_states_are_counted(served: sap.Client) -> None:
    model = mujoco.MjModel.from_xml_string(ARM)
    data = [mujoco.MjData(model) for _ in range(2)]
    data[1].qvel[0] = np.inf
    adapter.advance_batch(model, data, served)
    bad = mujoco.mjtWarning.mjWARN_BADQVEL
    assert [each.warning[bad].number for each in data] == [0, 1]


def test_callbacks_are_not_sent(served: sap.Client) -> None:
    model = mujoco.MjModel.from_xml_string(ARM)
    mujoco.set_mjcb_passive(lambda *_: None)
    try:
        with pytest.raises(sap.InvalidArgument, match="callbacks"):
            adapter.advance_batch(model, [mujoco.MjData(model)], served)
    finally:
        mujoco.set_mjcb_passive(None)


@pytest.fixture(scope="module")
def without_worlds() -> Iterator[sap.Client]:
    """A client of a server without the flag."""
    with ServerProcess("127.0.0.1:0") as server, sap.connect(server.address) as client:
        yield client


def test_a_server_without_worlds_is_told_by_its_flag(without_worlds: sap.Client) -> None:
    model = mujoco.MjModel.from_xml_string(ARM)
    with pytest.raises(sap.Unimplemented, match="--mujoco-library"):
        adapter.rollout(model, states_of(model, 2), None, without_worlds, nstep=3)


def test_what_servers_do_not_take_is_stepped_by_problems(without_worlds: sap.Client) -> None:
    model = mujoco.MjModel.from_xml_string(CLUTTER)
    states = states_of(model, 2)
    expected = adapter.rollout(model, states, None, nstep=60)
    options = sap.Options(islands=True)
    found = adapter.rollout(model, states, None, without_worlds, nstep=60, options=options)
    assert_same(found, expected)
    rigid = adapter.Material.rigid()
    found = adapter.rollout(model, states, None, without_worlds, nstep=60, material=rigid)
    assert not np.array_equal(found[0], expected[0])
    called = []
    mujoco.set_mjcb_passive(lambda *_: called.append(True))
    try:
        found = adapter.rollout(model, states, None, without_worlds, nstep=60)
    finally:
        mujoco.set_mjcb_passive(None)
    assert_same(found, expected)
    assert called


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    """Three servers of worlds."""
    with Fleet(3, *FLAGS, "--threads=1") as servers:
        yield servers


def test_servers_share_a_rollout(fleet: Fleet) -> None:
    model = mujoco.MjModel.from_xml_string(CLUTTER)
    states = states_of(model, 48)
    expected = adapter.rollout(model, states, None, nstep=50, threads=2)
    with sap.connect(fleet.address) as client:
        for _ in range(3):
            assert_same(adapter.rollout(model, states, None, client, nstep=50), expected)


def test_rollouts_go_on_while_servers_are_killed_in_turn(fleet: Fleet) -> None:
    kills = 6
    model = mujoco.MjModel.from_xml_string(CLUTTER)
    states = states_of(model, 24)
    expected = adapter.rollout(model, states, None, nstep=100, threads=2)
    done = threading.Event()

    def kill_in_turn() -> None:
        for i in range(kills):
            fleet.servers[i % 3].kill()
            fleet.start(i % 3)
            done.wait(0.3)  # while calls run
        done.set()

    with sap.connect(fleet.address, reconnect_within=120) as client:
        killer = threading.Thread(target=kill_in_turn)
        killer.start()
        try:
            while not done.is_set():
                assert_same(adapter.rollout(model, states, None, client, nstep=100), expected)
        finally:
            killer.join()
