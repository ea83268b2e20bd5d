"""The referee: what an error is, what the report and the command say, and what input is refused."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import mujoco.rollout
import numpy as np
import pytest
import sap_islands as sap
from record_mujoco_warp import CONTACT
from record_rollout import as_run
from sap_islands.__main__ import main
from sap_islands.binaries import find_server
from sap_islands.referee import Verdict

from support.planted_faults import scaled
from support.recorded_runs import (
    WORKSHOP,
    Run,
    changed,
    error_of,
    joined,
    record,
    step_from,
    step_with,
    with_flag,
    with_option,
    with_row,
    workshop,
)

STEPS = 60


@pytest.fixture(scope="module")
def model() -> mujoco.MjModel:
    return workshop()


@pytest.fixture(scope="module")
def run(model: mujoco.MjModel) -> Run:
    return record(model, STEPS, seed=5)


def test_error_is_the_distance_from_the_exact_velocity_in_the_norm_of_m(
    model: mujoco.MjModel, run: Run
) -> None:
    state = 40
    off = np.zeros(model.nv)
    off[12:15] = 0.3, -0.2, 0.1  # of the ball, an island of its own
    other = {**run, "next_qvel": run["next_qvel"].copy()}
    other["next_qvel"][state] += off
    verdict = sap.certify(model, other)
    expected = error_of(model, other, state, run["next_qvel"][state])
    (worst,) = verdict.worst
    assert worst.state == state
    assert worst.error == pytest.approx(expected, rel=1e-6)
    assert worst.error <= worst.bound <= worst.error + 1e-9
    assert worst.island_error > worst.error
    assert worst.bodies == ["ball"]
    assert verdict.exact == STEPS - 1
    assert np.delete(verdict.error, state).max() < 1e-9


def test_a_run_without_contacts_may_have_empty_lists(model: mujoco.MjModel) -> None:
    run = record(model, 5, seed=5)
    empty = {f"contact_{name}": np.array([]) for name in ("state", *CONTACT)}
    verdict = sap.certify(model, run | empty)
    assert "contacts" not in verdict.assumed
    lone = mujoco.MjModel.from_xml_string(
        """<mujoco><worldbody><body><freejoint/><geom size=".1"/></body></worldbody></mujoco>"""
    )
    run = record(lone, 5) | empty | {"ctrl": np.array([]), "act": np.array([])}
    assert sap.certify(lone, run).exact == 5
    with pytest.raises(sap.InvalidArgument, match="qpos has no states"):
        sap.certify(lone, {name: np.array([]) for name in run})
    with pytest.raises(sap.InvalidArgument, match=r"contact_pos has the shape \[0\]"):
        sap.certify(model, run_with_contacts(model) | {"contact_pos": np.array([])})


def run_with_contacts(model: mujoco.MjModel) -> Run:
    return record(model, STEPS, seed=5, with_contacts=True)


@pytest.mark.skipif(mujoco.mj_version() < 4_000_000, reason="new in MuJoCo 4")
@pytest.mark.parametrize("name", ["surfacevel", "adhesion"])
def test_contacts_need_the_surface_velocity_and_adhesion_that_geoms_have(name: str) -> None:
    attribute = {"surfacevel": 'surfacevel=".5 0 0 0 0 0"', "adhesion": 'adhesion="5"'}[name]
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco><worldbody><geom type="box" size="1 .3 .05" {attribute}/>
        <body pos="0 0 .15"><freejoint/><geom type="box" size=".08 .08 .08"/></body></worldbody>
        </mujoco>"""
    )
    model.opt.tolerance = 1e-12
    data = mujoco.MjData(model)
    rows: dict[str, list[Any]] = {key: [] for key in ("qpos", "qvel", "next_qvel")}
    contacts: dict[str, list[Any]] = {key: [] for key in ("state", *CONTACT, name)}
    for step in range(STEPS):
        rows["qpos"].append(data.qpos.copy())
        rows["qvel"].append(data.qvel.copy())
        mujoco.mj_step(model, data)
        rows["next_qvel"].append(data.qvel.copy())
        contacts["state"].append(np.full(data.ncon, step))
        for key in (*CONTACT, name):
            contacts[key].append(getattr(data.contact, key).copy())
    run = {key: np.array(values) for key, values in rows.items()}
    run |= {f"contact_{key}": np.concatenate(values) for key, values in contacts.items()}
    assert sap.certify(model, run).exact == STEPS
    del run[f"contact_{name}"]
    with pytest.raises(sap.InvalidArgument, match=f"contact_{name} is missing; geoms"):
        sap.certify(model, run)


@pytest.mark.skipif(not hasattr(mujoco.MjModel, "actuator_delay"), reason="new in MuJoCo 3.5")
def test_delayed_controls_need_their_history_and_the_time() -> None:
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><worldbody><body pos="0 0 1"><joint name="j" axis="0 1 0" damping=".05"/>
        <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass=".5"/></body></worldbody>
        <actuator><motor joint="j" delay=".01" nsample="8"/></actuator></mujoco>"""
    )
    initial = np.zeros((2, mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
    data = mujoco.MjData(model)
    for state in initial:
        mujoco.mj_getState(model, data, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    control = np.random.default_rng(1).normal(size=(2, STEPS, 1))
    after, _ = mujoco.rollout.rollout(model, data, initial, control)
    run = as_run(model, np.concatenate((initial[:, None], after), axis=1), control)
    assert sap.certify(model, run).exact == 2 * STEPS
    for name in ("history", "time"):
        with pytest.raises(sap.InvalidArgument, match=f"{name} is missing; controls of actuators"):
            sap.certify(model, {key: values for key, values in run.items() if key != name})


def test_recorded_contacts_other_than_mujocos_are_no_fault(model: mujoco.MjModel) -> None:
    # A simulator with other contact points and tangents, and with exact steps on them.
    run = record(model, STEPS, seed=13, with_contacts=True)
    turned = run["contact_frame"].reshape(-1, 3, 3).copy()
    turned[:, 1], turned[:, 2] = turned[:, 2].copy(), -turned[:, 1]
    state = 30
    of_state = run["contact_state"] == state
    run["contact_frame"] = turned.reshape(-1, 9)
    run["contact_pos"][of_state] += [0.01, 0.02, 0.0]
    names = (name for name in CONTACT if name != "efc_address")
    recorded = {name: run[f"contact_{name}"][of_state] for name in names}
    velocity = step_with(model, run, state, recorded)
    only = {name: values[[state]] for name, values in run.items() if "contact" not in name}
    contacts = {f"contact_{name}": run[f"contact_{name}"][of_state] for name in CONTACT}
    one = {**only, **contacts, "contact_state": np.zeros(of_state.sum(), int)}
    verdict = sap.certify(model, {**one, "next_qvel": velocity[None]})
    assert verdict.exact == 1
    assert verdict.error[0] < 1e-9
    assert verdict.found_error[0] > 1e-3
    assert verdict.to_json()["contacts"]["states_exact_on_recorded_only"] == 1


def test_worlds_and_files_are_told_apart(model: mujoco.MjModel) -> None:
    worlds = [record(model, 20, seed=seed, world=seed) for seed in (4, 9)]
    worlds[1]["next_qvel"][[3, 8]] += 0.5
    verdict = sap.certify(model, [joined(worlds), record(model, 20, seed=1, world=4)])
    assert verdict.states == verdict.recorded == 60
    assert [worst.world for worst in verdict.worst] == [9, 9]
    assert {worst.state for worst in verdict.worst} == {7, 17}
    rows = {row["world"]: row for row in verdict.worlds()}
    assert (rows[4]["states"], rows[4]["exact"]) == (40, 40)
    assert (rows[9]["states"], rows[9]["exact"]) == (20, 18)


def test_a_sample_is_of_all_files_and_is_repeatable(model: mujoco.MjModel, run: Run) -> None:
    first, second = (sap.certify(model, [run, run], sample=11) for _ in range(2))
    assert first.states == 11
    assert first.number.tolist() == second.number.tolist()
    assert (first.number >= STEPS).any()
    assert (first.number < STEPS).any()
    assert first.recorded == 2 * STEPS


def test_servers_find_the_same(model: mujoco.MjModel, run: Run) -> None:
    velocity = run["next_qvel"].copy()
    velocity[20, 12] += 0.5
    other = {**run, "next_qvel": velocity}
    here = sap.certify(model, other)
    with sap.connect("embedded:process") as client:
        there = sap.certify(model, other, client=client)
    assert here.to_json() == there.to_json()


def test_what_was_not_recorded_is_named(model: mujoco.MjModel, run: Run) -> None:
    bare = {name: run[name] for name in ("qpos", "qvel", "next_qvel")}
    verdict = sap.certify(model, {**bare, "controls": run["ctrl"]}, diagnose=0)
    assert {"ctrl", "contacts"} <= set(verdict.assumed)
    assert verdict.assumed["ctrl"] == "0 for all 2 controls"
    assert verdict.unused == ["controls"]
    assert verdict.above > 0
    assert verdict.causes == {"undiagnosed": verdict.above}


def row_is(name: str, row: int, value: float) -> Callable[[Run], Run]:
    return lambda run: with_row(run, name, row, value)


BAD: dict[str, tuple[Callable[[Run], Run], str]] = {
    "no velocities": (lambda run: {"qpos": run["qpos"]}, "qvel is missing"),
    "shape": (
        lambda run: {**run, "qvel": run["qvel"][:, :-1]},
        r"qvel has the shape \[60, 21\]; \[60, 22\] is needed",
    ),
    "count": (lambda run: {**run, "ctrl": run["ctrl"][:-1]}, r"ctrl has the shape \[59, 2\]"),
    "text": (lambda run: {**run, "time": np.array(["x"] * STEPS)}, "time has the type <U1"),
    "complex": (lambda run: {**run, "qvel": run["qvel"] * 1j}, "qvel has the type complex"),
    "empty": (lambda run: {name: values[:0] for name, values in run.items()}, "no states"),
    "NaN": (row_is("qvel", 7, np.nan), r"qvel\[7\] is nan at 0 \(state 7, world 3\)"),
    "diverged": (row_is("next_qvel", 9, 1e300), r"next_qvel\[9\] is 1e\+300 .*world 3"),
    "world": (row_is("world", 2, 0.5), r"world\[2\] is 0.5"),
    "contacts alone": (
        lambda run: {name: values for name, values in run.items() if name != "contact_state"},
        "contact_state is missing",
    ),
    "no frame": (
        lambda run: {name: values for name, values in run.items() if name != "contact_frame"},
        "contact_frame is missing",
    ),
    "order": (
        lambda run: {**run, "contact_state": run["contact_state"][::-1]},
        "it must be ascending",
    ),
    "geom": (row_is("contact_geom", 4, 99), r"contact_geom\[4\] is .*99"),
    "frame": (row_is("contact_frame", 4, 0.5), r"contact_frame\[4\] must have orthonormal"),
    "friction": (row_is("contact_friction", 4, -1.0), r"contact_friction\[4\] must not be"),
    "dim": (row_is("contact_dim", 4, 2), r"contact_dim\[4\] must be 1, 3, 4 or 6"),
    "depth": (row_is("contact_dist", 4, np.inf), r"contact_dist\[4\] is inf \(state"),
}


@pytest.fixture(scope="module")
def complete_run(model: mujoco.MjModel) -> Run:
    run = record(model, STEPS, seed=5, with_contacts=True, world=3)
    return {**run, "world": run["world"].astype(float)}


@pytest.mark.parametrize("kind", BAD)
def test_bad_input_is_refused_by_name(
    model: mujoco.MjModel,
    complete_run: Run,
    kind: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    spoil, message = BAD[kind]
    spoiled = spoil(complete_run)
    with pytest.raises(sap.InvalidArgument, match=message):
        sap.certify(model, spoiled)
    scene, path = tmp_path / "scene.xml", tmp_path / "run.npz"
    scene.write_text(WORKSHOP)
    np.savez(path, allow_pickle=False, **spoiled)
    assert main(["certify", str(path), "--model", str(scene)]) == 2
    assert "run.npz: " in capsys.readouterr().err


def test_files_that_are_no_runs_are_refused(model: mujoco.MjModel, tmp_path: Path) -> None:
    text, array, pickled = (tmp_path / name for name in ("text.npz", "array.npz", "pickled.npz"))
    text.write_text("qpos")
    with open(array, "wb") as file:
        np.save(file, np.zeros(3))
    objects = np.array([{}], object)
    np.savez(pickled, qpos=objects, qvel=objects, next_qvel=objects)
    cut = tmp_path / "cut.npz"
    np.savez(tmp_path / "whole.npz", qpos=np.zeros((100, 30)))
    cut.write_bytes((tmp_path / "whole.npz").read_bytes()[:-500])
    for path in (text, array, pickled, cut, tmp_path / "nowhere.npz", tmp_path):
        with pytest.raises(sap.InvalidArgument, match=f"{path}.*: cannot be read"):
            sap.certify(model, path)


def test_states_with_nan_can_be_left_out(model: mujoco.MjModel, run: Run) -> None:
    velocity = run["next_qvel"].copy()
    velocity[[7, 20], 3] = np.nan
    verdict = sap.certify(model, {**run, "next_qvel": velocity}, skip_invalid=True)
    assert (verdict.states, verdict.exact, verdict.skipped) == (STEPS - 2, STEPS - 2, 2)


def test_an_integrator_of_several_problems_is_refused(run: Run) -> None:
    model = changed(workshop(), with_option("integrator", mujoco.mjtIntegrator.mjINT_RK4))
    with pytest.raises(sap.InvalidArgument, match="integrator") as refused:
        sap.certify(model, run)
    assert refused.value.field == "opt.integrator"


def test_arguments_are_checked(model: mujoco.MjModel, run: Run) -> None:
    for arguments, field in (
        ({"tolerance": 0.0}, "tolerance"),
        ({"tolerance": float("nan")}, "tolerance"),
        ({"sample": 0}, "sample"),
        ({"diagnose": -1}, "diagnose"),
        ({"threads": 0}, "threads"),
        ({"threads": 100000}, "threads"),
    ):
        with pytest.raises(sap.InvalidArgument) as refused:
            sap.certify(model, run, **arguments)
        assert refused.value.field == field
    with pytest.raises(sap.InvalidArgument, match="there are no runs"):
        sap.certify(model, [])


def test_the_model_is_not_changed(model: mujoco.MjModel, run: Run) -> None:
    def bytes_of(model: mujoco.MjModel) -> bytes:
        buffer = np.empty(mujoco.mj_sizeModel(model), np.uint8)
        mujoco.mj_saveModel(model, None, buffer)
        return buffer.tobytes()

    before = bytes_of(model)
    velocity = run["next_qvel"].copy()
    velocity[10] += 0.3
    assert sap.certify(model, {**run, "next_qvel": velocity}).faults == 1
    assert bytes_of(model) == before


def report_of(arguments: list[str], path: Path) -> tuple[int, dict[str, Any]]:
    code = main([*arguments, "--report", str(path)])
    report: dict[str, Any] = json.loads(path.read_text())
    return code, report


def test_the_command_writes_report_worst_states_and_plot(
    model: mujoco.MjModel, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scene, exact, spoiled = (tmp_path / name for name in ("s.xml", "exact.npz", "spoiled.npz"))
    scene.write_text(WORKSHOP)
    velocity = run["next_qvel"].copy()
    softer = changed(model, scaled("geom_solref", 4.0))
    steps = np.array([step_from(softer, run, state) for state in range(STEPS)])
    other = {**run, "next_qvel": steps}
    spoilt = [
        state
        for state in range(STEPS)
        if error_of(model, other, state, run["next_qvel"][state]) > 2e-3
    ][:3]
    for state in spoilt:
        velocity[state] = steps[state]
    np.savez(exact, allow_pickle=False, **run)
    np.savez_compressed(spoiled, allow_pickle=False, **{**run, "next_qvel": velocity})
    command = ["certify", str(exact), "--model", str(scene)]
    code, report = report_of(command, tmp_path / "exact.json")
    assert code == 0
    assert (report["states"], report["exact"], report["worst"]) == (STEPS, STEPS, [])
    assert f"{STEPS} of {STEPS} states are exact" in capsys.readouterr().out
    worst, plot = tmp_path / "worst", tmp_path / "plot.png"
    command = ["certify", str(exact), str(spoiled), "--model", str(scene)]
    command += ["--worst", str(worst), "--plot", str(plot)]
    code, report = report_of(command, tmp_path / "spoiled.json")
    assert code == 1
    assert (report["states"], report["exact"]) == (2 * STEPS, 2 * STEPS - 3)
    assert len(spoilt) == 3
    assert {entry["row"] for entry in report["worst"]} == {*spoilt}
    assert report["causes"] == {"compliance": 3}
    errors = [entry["error"] for entry in report["worst"]]
    assert errors == sorted(errors, reverse=True)
    assert report["error"]["max"] == pytest.approx(errors[0])
    printed = capsys.readouterr().out
    assert "compliance: solref[0] of contacts times 4" in printed
    assert plot.read_bytes().startswith(b"\x89PNG")
    problems = sorted(worst.glob("*.json.gz"))
    assert len(problems) == len(list(worst.glob("*.npz"))) == 3
    one = next(worst.glob("*.npz"))
    assert main(["certify", str(one), "--model", str(scene)]) == 1
    program = Path(find_server()).with_name("sap-client")
    done = subprocess.run(
        [program, "solve", *map(str, problems)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_guess_of_a_worst_problem_is_the_recorded_velocity(
    model: mujoco.MjModel, run: Run, tmp_path: Path, client: sap.Client
) -> None:
    undamped = changed(model, with_flag("EULERDAMP"))
    recorded = record(undamped, 40, seed=5)
    recorded["next_qvel"][30, 12] += 0.4
    verdict = sap.certify(undamped, recorded, worst=tmp_path)
    problem = sap.load_problem(tmp_path / "state-30.json.gz")
    assert problem.trees.guess_velocity.tolist() == recorded["next_qvel"][30].tolist()
    solution = client.solve(problem, sap.Options(max_iterations=0))
    assert solution.velocity.tolist() == recorded["next_qvel"][30].tolist()
    assert isinstance(verdict, Verdict)


def test_folder_that_cannot_be_made_is_told_before_states_are_judged(
    model: mujoco.MjModel, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    spoiled = {**run, "qvel": np.full_like(run["qvel"], np.nan)}  # the first state ends the call
    with pytest.raises(NotADirectoryError):
        sap.certify(model, spoiled, worst=tmp_path / "file" / "worst")
