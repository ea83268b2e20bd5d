"""Steps of the MuJoCo adapter: shared models, unsolved islands, what is held, sleeping bodies."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import mujoco
import numpy as np
import pytest
import sap_islands as sap
import sap_islands.mujoco as adapter
from sap_islands.scenes import load_scene

from support.mujoco_agreement import load_kind


def bytes_of(model: mujoco.MjModel) -> bytes:
    buffer = np.empty(mujoco.mj_sizeModel(model), np.uint8)
    mujoco.mj_saveModel(model, None, buffer)
    return buffer.tobytes()


@pytest.mark.parametrize("law", ["sap", "mujoco"])
def test_threads_may_share_a_model(client: sap.Client, law: adapter.Law) -> None:
    model, start = load_kind("everything", "PYRAMIDAL", "EULER")
    before = bytes_of(model)
    states: list[bytes] = [b""] * 4
    changed = threading.Event()

    def simulate(number: int) -> None:
        data = mujoco.MjData(model)
        mujoco.mj_copyData(data, model, start)
        with client.session() as session:
            for _ in range(40):
                adapter.step(model, data, session, law=law)
                if bytes_of(model) != before:
                    changed.set()
        states[number] = np.concatenate((data.qpos, data.qvel)).tobytes()

    threads = [threading.Thread(target=simulate, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    simulate(3)
    assert not changed.is_set()
    assert states[0]
    assert len(set(states)) == 1


@pytest.mark.parametrize("law", ["sap", "mujoco"])
def test_halves_of_a_step_around_a_batch_are_steps(client: sap.Client, law: adapter.Law) -> None:
    model, start = load_kind("everything", "ELLIPTIC", "EULER")
    options = sap.Options(relative_tolerance=1e-10)
    stepped, halved = ([mujoco.MjData(model) for _ in range(3)] for _ in range(2))
    for data in stepped + halved:
        mujoco.mj_copyData(data, model, start)
    for i in range(3):
        stepped[i].qvel[0] = halved[i].qvel[0] = 0.1 * i
    for _ in range(10):
        for data in stepped:
            adapter.step(model, data, client, law=law, options=options)
        built = [adapter.build_problem(model, data, law=law) for data in halved]
        solutions = client.solve_batch([each.problem for each in built], options)
        for data, each, solution in zip(halved, built, solutions, strict=True):
            assert isinstance(solution, sap.Solution)
            adapter.apply(model, data, each, solution)
    for one, other in zip(stepped, halved, strict=True):
        for name in ("time", "qpos", "qvel", "qacc", "efc_force", "cfrc_ext", "sensordata"):
            assert np.array_equal(getattr(one, name), getattr(other, name)), name


def test_unsolved_island_warns_raises_or_is_ignored(client: sap.Client) -> None:
    model = load_scene("clutter", 8)
    data = mujoco.MjData(model)
    while data.time < 0.5:
        mujoco.mj_step(model, data)
    none = sap.Options(max_iterations=0)
    before = mujoco.MjData(model)
    mujoco.mj_copyData(before, model, data)
    with pytest.raises(adapter.Unsolved, match=r"not solved in the step from 0\.5 s"):
        adapter.step(model, data, client, options=none, on_unsolved="raise")
    assert data.qpos.tolist() == before.qpos.tolist()
    assert data.time == before.time
    with pytest.warns(adapter.UnsolvedWarning, match="ITERATION_LIMIT"):
        adapter.step(model, data, client, options=none)
    adapter.step(model, data, client, options=none, on_unsolved="ignore")
    assert data.time == pytest.approx(before.time + 2 * model.opt.timestep)
    with pytest.raises(sap.InvalidArgument, match="on_unsolved is 'stop'"):
        on_unsolved: Any = "stop"
        adapter.step(model, data, client, on_unsolved=on_unsolved)


def test_methods_that_are_not_used_are_named_once() -> None:
    model, data = load_kind("connect", "ELLIPTIC", "RK4")
    model.opt.noslip_iterations = 3
    model.opt.solver = mujoco.mjtSolver.mjSOL_PGS
    with pytest.warns(adapter.DifferenceWarning) as found:
        adapter.build_problem(model, data)
    assert [str(warning.message).split()[3] for warning in found] == [
        "integrator",
        "noslip_iterations:",
        "solver",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adapter.build_problem(model, data)


def test_held_arm_does_not_creep(client: sap.Client) -> None:
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><option timestep="0.005"/><worldbody>
        <body><joint axis="0 1 0" frictionloss="20"/>
        <geom type="capsule" size=".04" fromto="0 0 0 .4 0 0"/></body></worldbody></mujoco>"""
    )
    data, other = mujoco.MjData(model), mujoco.MjData(model)
    for _ in range(400):
        adapter.step(model, data, client)
        mujoco.mj_step(model, other)
    torque = abs(data.qfrc_bias[0])
    assert 0 < torque < 20
    # The slip is sigma w times the impulse that holds the arm.
    rate = 1e-3 * torque * model.opt.timestep / data.M[0]
    assert abs(data.qvel[0]) <= 1.01 * rate
    assert abs(other.qvel[0]) > 10 * rate


def test_adhesion_holds_a_box_on_a_ceiling(client: sap.Client) -> None:
    for cone in ("PYRAMIDAL", "ELLIPTIC"):
        model = mujoco.MjModel.from_xml_string(
            """<mujoco><worldbody><geom type="box" size="1 1 .1" pos="0 0 1"/>
            <body name="b" pos="0 0 .8"><freejoint/>
            <geom type="box" size=".1 .1 .1" mass="1" margin=".01" gap=".01"/></body></worldbody>
            <actuator><adhesion body="b" ctrlrange="0 1" gain="30"/></actuator></mujoco>"""
        )
        model.opt.cone = getattr(mujoco.mjtCone, f"mjCONE_{cone}")
        data, other = mujoco.MjData(model), mujoco.MjData(model)
        data.ctrl[0] = other.ctrl[0] = 1.0
        for _ in range(500):
            adapter.step(model, data, client)
            mujoco.mj_step(model, other)
        assert data.qpos[2] == pytest.approx(other.qpos[2], abs=1e-4)
        force = np.zeros(6)
        for i in range(data.ncon):
            contact = np.zeros(6)
            mujoco.mj_contactForce(model, data, i, contact)
            force += contact
        assert force[0] == pytest.approx(30 - 9.81, rel=1e-3)


@pytest.mark.parametrize("law", ["sap", "mujoco"])
def test_bodies_at_rest_sleep_until_they_are_pushed(client: sap.Client, law: adapter.Law) -> None:
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><option sleep_tolerance="1e-2"><flag sleep="enable"/></option><worldbody>
        <geom type="plane" size="5 5 .1"/><body pos="0 0 .1"><freejoint/>
        <geom type="box" size=".1 .1 .1"/></body></worldbody></mujoco>"""
    )
    data = mujoco.MjData(model)
    for _ in range(200):
        adapter.step(model, data, client, law=law)
    assert data.nefc == 0
    assert not data.qvel.any()
    assert data.qpos[2] == pytest.approx(0.1, abs=1e-3)
    data.qfrc_applied[0] = 200.0
    for _ in range(20):
        adapter.step(model, data, client, law=law)
    assert data.qvel[0] > 0.1


def test_mujocos_law_starts_from_the_acceleration_of_the_step_before(client: sap.Client) -> None:
    model, data = load_kind("condim 3", "ELLIPTIC", "EULER")
    for _ in range(3):
        adapter.step(model, data, client, law="mujoco")
        assert np.array_equal(data.qacc_warmstart, data.qacc)
    moved = data.qvel + model.opt.timestep * data.qacc
    cases: list[tuple[adapter.Law, int, Any]] = [
        ("mujoco", 0, moved),
        ("mujoco", int(mujoco.mjtDisableBit.mjDSBL_WARMSTART), data.qvel),
        ("sap", 0, data.qvel),
    ]
    for law, flags, expected in cases:
        model.opt.disableflags = flags
        trees = adapter.build_problem(model, data, law=law).problem.trees
        assert np.array_equal(trees.guess_velocity, expected)


def test_a_ball_that_rolls_ever_faster_takes_hardly_an_iteration() -> None:
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><option gravity="4 0 -9"/><worldbody><geom type="plane" size="9 9 1"/>
        <body pos="0 0 .1"><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""
    )
    data = mujoco.MjData(model)
    options = sap.Options(relative_tolerance=1e-6)

    def iterations(steps: int) -> int:
        advanced = (
            adapter.advance(model, data, law="mujoco", options=options) for _ in range(steps)
        )
        return sum(each.iterations for each in advanced)

    iterations(500)
    assert data.qacc[0] > 2.0
    assert iterations(20) < 5
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_WARMSTART)
    assert iterations(20) == 20
