"""Judgments of recorded steps: exact under every option, and the same in one call as by stages."""

from __future__ import annotations

import threading
from collections import UserDict
from collections.abc import ItemsView
from typing import Any

import mujoco
import numpy as np
import pytest
import sap_islands as sap
from numpy.typing import NDArray

from support.fleet import Fleet
from support.planted_faults import model_of
from support.recorded_runs import (
    INPUTS,
    RUN_OPTIONS,
    WORKSHOP,
    Run,
    changed,
    record,
    workshop,
)

STEPS = 60


@pytest.fixture(scope="module")
def model() -> mujoco.MjModel:
    return workshop()


@pytest.fixture(scope="module")
def run(model: mujoco.MjModel) -> Run:
    return record(model, STEPS, seed=5)


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
    model = model_of("handle")
    run = record(model, 40, seed=3, pushed=True)
    verdict = sap.certify(model, run)
    assert verdict.error.max() < 1e-9
    for name in INPUTS:
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


def test_a_fleet_that_loses_a_server_finds_the_same(model: mujoco.MjModel) -> None:
    run = spoiled_with_contacts(model)
    here = sap.certify(model, [run, run])

    class LosesAServer(UserDict[str, NDArray[Any]]):
        """A run; when it is read, a server answers nothing any more, and dies."""

        def items(self) -> ItemsView[str, NDArray[Any]]:
            fleet.servers[0].pause()
            threading.Timer(0.3, fleet.servers[0].kill).start()
            return super().items()

    with Fleet(2) as fleet, sap.connect(fleet.address) as client:
        boots: set[str] = set()
        while len(boots) < 2:
            boots.add(client.info().boot_id)
        there = sap.certify(model, [run, LosesAServer(run)], client=client)
        assert [server.runs() for server in fleet.servers] == [False, True]
    assert there.to_json() == here.to_json()
    for name in ("error", "bound", "island_error", "found_error", "lost_pairs"):
        assert getattr(there, name).tobytes() == getattr(here, name).tobytes()
