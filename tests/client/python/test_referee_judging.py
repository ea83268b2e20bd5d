"""Judgments of recorded steps: exact under every option, and the same in one call as by stages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
import pytest
import sap_islands as sap

from support.mujoco_agreement import solve_tightly
from support.recorded_runs import (
    WORKSHOP,
    Run,
    changed,
    record,
    with_flag,
    with_integrator,
    with_option,
    workshop,
)

STEPS = 60
RECORDED = ("qpos", "qvel", "act", "ctrl", "qfrc_applied", "xfrc_applied", "mocap_pos", "eq_active")
INPUTS = """
<mujoco>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body name="hand" mocap="true" pos="0 0 .5"/>
    <body name="held" pos="0 0 .5"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
    <body pos="1 0 1"><joint name="hinge" axis="0 1 0"/>
      <geom type="capsule" size=".04" fromto="0 0 0 .3 0 0"/></body>
  </worldbody>
  <equality><weld body1="hand" body2="held"/></equality>
  <actuator><general joint="hinge" dyntype="filter" dynprm=".05" gainprm="5"/>
    <motor joint="hinge" gear="5"/></actuator>
</mujoco>"""


@pytest.fixture(scope="module")
def model() -> mujoco.MjModel:
    return workshop()


@pytest.fixture(scope="module")
def run(model: mujoco.MjModel) -> Run:
    return record(model, STEPS, seed=5)


def with_fluid(model: mujoco.MjModel) -> None:
    model.opt.density, model.opt.viscosity = 1000.0, 0.1


RUN_OPTIONS: dict[str, Callable[[mujoco.MjModel], None]] = {
    "Euler": lambda _: None,
    "Euler, explicit damping": with_flag("EULERDAMP"),
    "implicit": with_option("integrator", mujoco.mjtIntegrator.mjINT_IMPLICIT),
    "implicitfast": with_option("integrator", mujoco.mjtIntegrator.mjINT_IMPLICITFAST),
    "discrete": with_integrator("DISCRETE"),
    "elliptic": with_option("cone", mujoco.mjtCone.mjCONE_ELLIPTIC),
    "impratio": with_option("impratio", 20.0),
    "no warm start": with_flag("WARMSTART"),
    "no islands": with_flag("ISLAND"),
    "no multiccd": with_flag("MULTICCD"),
    "no nativeccd": with_flag("NATIVECCD"),
    "diagexact": with_flag("DIAGEXACT"),
    "speculative": with_flag("SPECULATIVE"),
    "fluid": with_fluid,
}


@pytest.mark.parametrize("option", RUN_OPTIONS)
@pytest.mark.parametrize("with_contacts", [False, True])
def test_an_exact_run_is_exact_under_every_option(option: str, with_contacts: bool) -> None:
    model = changed(workshop(), RUN_OPTIONS[option])
    verdict = sap.certify(model, record(model, STEPS, seed=7, with_contacts=with_contacts))
    assert verdict.exact == verdict.states == STEPS
    assert not verdict.causes
    assert verdict.error.max() < 1e-7
    assert verdict.bound.max() < 1e-7
    assert not verdict.lost_pairs.any()


def test_an_exact_run_recorded_in_single_precision_is_exact(model: mujoco.MjModel) -> None:
    run = record(model, STEPS, seed=3, with_contacts=True)
    single = {k: v.astype(np.float32) if v.dtype == float else v for k, v in run.items()}
    verdict = sap.certify(model, single)
    assert verdict.exact == STEPS
    assert 1e-9 < verdict.error.max() < 1e-4


def spoiled_with_contacts(model: mujoco.MjModel) -> Run:
    """A run with contacts, with lost pairs, other points, a reset and plain errors."""
    run = record(model, STEPS, seed=17, with_contacts=True)
    state = run["contact_state"]
    lost = np.isin(state, (20, 21, 33)) & (run["contact_geom"] == 1).any(1)
    run = {name: values[~lost] if "contact" in name else values for name, values in run.items()}
    run["contact_pos"][run["contact_state"] == 40] += [0.01, 0.02, 0.0]
    run["next_qvel"][12] += 0.1
    run["next_qvel"][50] = 0.0
    return run


@pytest.mark.parametrize(
    "option", ["Euler", "implicit", "implicitfast", "discrete", "elliptic", "diagexact", "fluid"]
)
@pytest.mark.parametrize("with_contacts", [False, True])
def test_judgments_in_one_call_have_the_bits_of_those_stage_by_stage(
    option: str, with_contacts: bool
) -> None:
    model = changed(workshop(), RUN_OPTIONS[option])
    run = spoiled_with_contacts(model)
    if not with_contacts:
        run = {name: values for name, values in run.items() if "contact" not in name}
    with sap.connect("embedded:") as client:
        by_stages = sap.certify(model, run, client=client, diagnose=0)
    assert by_stages.above >= 2
    assert by_stages.lost_pairs.any() == with_contacts
    for threads in (1, 3):
        at_once = sap.certify(model, run, threads=threads, diagnose=0)
        assert at_once.to_json() == by_stages.to_json()
        for name in ("error", "bound", "island_error", "found_error", "lost_pairs"):
            assert getattr(at_once, name).tobytes() == getattr(by_stages, name).tobytes()


def test_a_judgment_depends_on_its_state_alone(model: mujoco.MjModel) -> None:
    run = spoiled_with_contacts(model)
    whole = sap.certify(model, run, threads=1, diagnose=0)
    some = sap.certify(model, run, sample=9, threads=2, diagnose=0)
    assert some.error.tolist() == whole.error[some.number].tolist()


def test_a_run_in_which_nothing_touches_is_exact_with_its_empty_contacts() -> None:
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><worldbody><geom type="plane" size="5 5 .1"/>
        <body pos="0 0 5"><freejoint/><geom type="box" size=".1 .2 .3"/></body>
        <body pos="2 0 5"><joint/><geom size=".1"/></body></worldbody></mujoco>"""
    )
    run = record(model, 20, seed=1, with_contacts=True)
    assert not run["contact_state"].size
    assert sap.certify(model, run).exact == 20
    with sap.connect("embedded:") as client:
        assert sap.certify(model, run, client=client).exact == 20


def test_every_input_of_a_step_is_set() -> None:
    # Applied forces, a mocap body, an equality that is off, activations: recorded, each for itself.
    model = mujoco.MjModel.from_xml_string(INPUTS)
    solve_tightly(model)
    data, random = mujoco.MjData(model), np.random.default_rng(3)
    rows: dict[str, list[Any]] = {name: [] for name in (*RECORDED, "next_qvel")}
    for step in range(40):
        data.ctrl[:] = random.uniform(-1, 1)
        data.qfrc_applied[:] = random.normal(size=model.nv)
        data.xfrc_applied[1:] = random.normal(size=(model.nbody - 1, 6))
        data.mocap_pos[:] = [0.02 * np.sin(step), 0, 0.5]
        data.eq_active[:] = step % 3 == 0
        for name in RECORDED:
            rows[name].append(getattr(data, name).copy())
        mujoco.mj_step(model, data)
        rows["next_qvel"].append(data.qvel.copy())
    run = {name: np.array(values) for name, values in rows.items()}
    verdict = sap.certify(model, run)
    assert verdict.error.max() < 1e-9
    for name in set(RECORDED) - {"qpos", "qvel"}:
        without = {key: values for key, values in run.items() if key != name}
        assert sap.certify(model, without, diagnose=0).error.max() > 1e-3, name


def test_a_state_that_mujoco_has_no_memory_for_is_refused_by_name(run: Run) -> None:
    small = mujoco.MjModel.from_xml_string(
        WORKSHOP.replace("<worldbody>", '<size memory="12K"/><worldbody>')
    )
    with sap.connect("embedded:") as client:
        for solver in (None, client):
            with pytest.raises(sap.InvalidArgument, match=r"state \d+ \(world 0\): .*memory"):
                sap.certify(small, run, client=solver)
