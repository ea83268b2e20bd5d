"""`sap-islands run` and `replace_solver`: unchanged programs of MuJoCo with this solver."""

from __future__ import annotations

import ctypes
import json
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import sap_islands.mujoco
from sap_islands.binaries import find_c_library, find_replacement
from sap_islands.errors import InvalidArgument
from sap_islands.mujoco.native_calls import load_native_calls

from support import mujoco_program

PROGRAM = Path(mujoco_program.__file__)
RUN = [sys.executable, "-m", "sap_islands", "run"]
FASTER = "MuJoCo's solver is predicted to be faster"
SPARSE, ALWAYS = 2, 8


def run_task(task: str, folder: Path, *run: str) -> Any:
    """What a task of the program computes, by MuJoCo alone or by `sap-islands run`."""
    output = folder / f"{task}{len(run)}.npz"
    command = [*run, sys.executable, str(PROGRAM), task, str(output)]
    subprocess.run(command, check=True)
    return np.load(output)


def run_replaced(task: str, folder: Path, *options: str) -> tuple[Any, dict[str, Any]]:
    """The same with this solver, and the report."""
    report = folder / "report.json"
    arrays = run_task(task, folder, *RUN, "--report", str(report), *options, "--")
    return arrays, json.loads(report.read_text())


def assert_agree(own: Any, replaced: Any) -> None:
    for name in own:
        scale = max(1.0, float(np.abs(own[name]).max()))
        assert np.abs(own[name] - replaced[name]).max() < 1e-6 * scale, name


def test_every_kind_of_constraint_and_integrator_agrees_with_mujoco(tmp_path: Path) -> None:
    own = run_task("kinds", tmp_path)
    replaced, report = run_replaced("kinds", tmp_path, "--when", "always")
    assert_agree(own, replaced)
    assert report["version"] == mujoco.__version__
    assert report["solved"] > 3000
    assert set(report["passed_on"]) <= {"no constraint acts"}


def test_flexes_agree_with_mujoco(tmp_path: Path) -> None:
    own = run_task("flexes", tmp_path)
    replaced, report = run_replaced("flexes", tmp_path, "--when", "always")
    assert_agree(own, replaced)
    assert report["solved"] > 12 * len(own.files) / 2
    assert set(report["passed_on"]) <= {"no constraint acts"}


def test_of_flexes_only_those_with_elliptic_cones_are_predicted_to_be_faster(
    tmp_path: Path,
) -> None:
    own = run_task("cloths", tmp_path)
    replaced, report = run_replaced("cloths", tmp_path)
    assert np.array_equal(own["pyramidal"], replaced["pyramidal"])
    assert not np.array_equal(own["elliptic"], replaced["elliptic"])
    assert report["solved"] > 10
    assert report["passed_on"][FASTER] >= mujoco_program.MANY


HAS_DISCRETE = hasattr(mujoco.mjtIntegrator, "mjINT_DISCRETE")


@pytest.mark.skipif(not HAS_DISCRETE, reason="MuJoCo before 3.13 has no such integrator")
def test_the_metric_of_the_integrator_discrete_agrees_with_mujoco(tmp_path: Path) -> None:
    own = run_task("discrete", tmp_path)
    replaced, report = run_replaced("discrete", tmp_path, "--when", "always")
    for name in own:
        scale = float(np.abs(own[name]).max())
        assert np.abs(own[name] - replaced[name]).max() < 1e-9 * scale, name
    assert report["solved"] > 12 * len(own.files) / 2
    assert set(report["passed_on"]) <= {"no constraint acts"}


# What MuJoCo's solver uses memory for, and what differs with the iterations of a solver.
OF_THE_SOLVER = {
    "maxuse_stack",
    "maxuse_arena",
    "maxuse_threadstack",
    "contact.H",
    "timer.duration",
    "solver_niter",
    "solver.improvement",
    "solver.gradient",
    "solver.lineslope",
    "solver.nactive",
    "solver.nchange",
    "solver.neval",
    "solver.nupdate",
}


def test_all_arrays_of_mjdata_are_those_of_mujoco_after_mj_forward(tmp_path: Path) -> None:
    own = dict(run_task("outputs", tmp_path))
    arrays, report = run_replaced("outputs", tmp_path, "--when", "always")
    replaced = dict(arrays)
    assert report["solved"] >= 24
    assert set(own) == set(replaced)
    different = set()
    for key in own:
        model, name = key.split("/")
        if name in OF_THE_SOLVER or (name == "solver_nnz" and "sparse" in model):
            continue
        if name.startswith("efc_J_") and "dense" in model:
            continue  # not allocated
        if name == "efc_state" and own[f"{model}/nisland"] > 0:
            continue  # MuJoCo's is in the order of islands, here it is in that of efc_force
        scale = max(1.0, float(np.abs(own[key]).max(initial=0.0)))
        if not np.allclose(own[key], replaced[key], rtol=0.0, atol=1e-7 * scale):
            different.add(key)
    assert not different
    for key in own:
        model, name = key.split("/")
        if name != "solver_niter":
            continue
        assert np.array_equal(own[key] > 0, replaced[key] > 0)
        last = replaced[key] - 1 + 200 * np.arange(len(replaced[key]))
        last = last[replaced[key] > 0]
        own_last = (own[key] - 1 + 200 * np.arange(len(own[key])))[own[key] > 0]
        gradient = replaced[f"{model}/solver.gradient"]
        assert np.all((gradient[last] > 0) & (gradient[last] < 1e-7)), model
        active = own[f"{model}/solver.nactive"][own_last]
        assert np.array_equal(replaced[f"{model}/solver.nactive"][last], active), model


def test_the_timer_of_constraints_is_that_of_mujoco(tmp_path: Path) -> None:
    own = run_task("clock", tmp_path)
    replaced, report = run_replaced("clock", tmp_path, "--when", "always")
    assert report["solved"] > mujoco_program.STEPS
    kind = int(mujoco.mjtTimer.mjTIMER_CONSTRAINT)
    assert np.array_equal(own["number"], replaced["number"])
    assert own["duration"][kind] >= mujoco_program.STEPS
    assert replaced["duration"][kind] >= mujoco_program.STEPS


@pytest.mark.parametrize("when", ["always", "faster"])
def test_a_solver_that_mujoco_does_not_have_is_left_to_mujoco(tmp_path: Path, when: str) -> None:
    own = run_task("unknown_solver", tmp_path)
    replaced, _ = run_replaced("unknown_solver", tmp_path, "--when", when)
    assert set(own) == {"3", "10", "-1"}
    assert all("unknown solver" in str(own[name]) for name in own)
    assert all(np.array_equal(own[name], replaced[name]) for name in own)


def test_an_island_that_needs_more_iterations_than_the_model_allows_is_mujocos(
    tmp_path: Path,
) -> None:
    own = run_task("few_iterations", tmp_path)
    replaced, report = run_replaced("few_iterations", tmp_path, "--when", "always")
    reason = "an island needs more iterations than the model allows"
    assert report["passed_on"][reason] > mujoco_program.MANY
    exact = replaced["forces 100"]
    scale = np.abs(exact).max()
    assert np.abs(own["forces 100"] - exact).max() < 1e-6 * scale
    for most in (1, 2, 3, 5):
        assert replaced[f"counts {most}"].max() <= most
        forces = replaced[f"forces {most}"]
        difference = np.abs(forces - exact).max(1), np.abs(forces - own[f"forces {most}"]).max(1)
        assert np.all(np.minimum(*difference) < 1e-6 * scale)


def test_accelerations_forces_and_sensors_of_a_pile_agree_with_mujoco(tmp_path: Path) -> None:
    own = run_task("falling", tmp_path)["pile"]
    replaced, report = run_replaced("falling", tmp_path, "--when", "always")
    assert np.abs(own - replaced["pile"]).max() < 1e-8 * np.abs(own).max()
    assert report["islands"] >= report["solved"] > 30


def test_separate_stages_and_finite_differences_are_solved_too(tmp_path: Path) -> None:
    own = run_task("stages", tmp_path)
    replaced, report = run_replaced("stages", tmp_path, "--when", "always")
    assert np.abs(own["state"] - replaced["state"]).max() < 1e-6 * np.abs(own["state"]).max()
    # Differences of 1e-6 multiply the errors of the solves by a million.
    scale = np.abs(own["derivatives"]).max()
    assert np.abs(own["derivatives"] - replaced["derivatives"]).max() < 0.02 * scale
    derivatives = 1 + 4 * 72  # centered differences of 12 bodies
    assert report["solved"] > 30 + derivatives


def test_threads_have_the_bits_of_one(tmp_path: Path) -> None:
    found, report = run_replaced("rollouts", tmp_path, "--when", "always")
    assert np.array_equal(found["one"], found["three"])
    nq_nv = found["threads"].shape[1]
    assert np.array_equal(found["one"][:, -1, 1 : 1 + nq_nv], found["threads"])
    assert report["solved"] > 3 * 6 * 30


@pytest.mark.skipif(not find_spec("mujoco.batch"), reason="MuJoCo before 3.17 has no batches")
def test_batches_of_mujoco_have_the_same_bits_on_any_number_of_threads(tmp_path: Path) -> None:
    own = run_task("batches", tmp_path)
    found, report = run_replaced("batches", tmp_path, "--when", "always")
    assert np.array_equal(found["1"], found["3"])
    assert not np.array_equal(found["1"], own["1"])
    assert np.abs(found["1"] - own["1"]).max() < 1e-5
    assert report["solved"] > 2 * 6 * 30


def test_forked_and_spawned_processes_have_the_same_bits_and_are_counted(tmp_path: Path) -> None:
    found, report = run_replaced("processes", tmp_path, "--when", "always")
    assert np.array_equal(found["own"], found["forked"])
    assert np.array_equal(found["own"], found["spawned"])
    assert report["solved"] > 150


def test_an_environment_of_gymnasium_agrees_with_mujoco(tmp_path: Path) -> None:
    own = run_task("gym", tmp_path)["observation"]
    replaced, report = run_replaced("gym", tmp_path, "--when", "always")
    assert np.abs(own - replaced["observation"]).max() < 1e-4 * np.abs(own).max()
    assert report["solved"] > 0


def test_a_large_pile_is_solved_and_the_same_again(tmp_path: Path) -> None:
    first, report = run_replaced("large", tmp_path)
    again, _ = run_replaced("large", tmp_path)
    assert np.array_equal(first["pile"], again["pile"])
    assert report["solved"] > 10
    assert report["solved"] + sum(report["passed_on"].values()) == report["steps"]


def test_what_mujoco_solves_faster_keeps_its_bits(tmp_path: Path) -> None:
    own = run_task("falling", tmp_path)["pile"]
    replaced, report = run_replaced("falling", tmp_path)
    assert np.array_equal(own, replaced["pile"])
    assert report["solved"] == 0
    assert report["passed_on"][FASTER] > 30


def test_what_is_not_taken_keeps_its_bits_and_is_said_once(tmp_path: Path) -> None:
    own = run_task("left_to_mujoco", tmp_path)
    output, report = tmp_path / "replaced.npz", tmp_path / "report.json"
    command = [*RUN, "--when", "always", "--report", str(report), "--"]
    command += [sys.executable, str(PROGRAM), "left_to_mujoco", str(output)]
    said = subprocess.run(command, check=True, stderr=subprocess.PIPE, text=True).stderr
    replaced = np.load(output)
    for name in own:
        assert np.array_equal(own[name], replaced[name], equal_nan=True), name
    passed_on = json.loads(report.read_text())["passed_on"]
    reasons = [reason for reason in passed_on if reason != "no constraint acts"]
    assert len(reasons) >= len(own.files)
    for reason in reasons:
        assert said.count(reason) == 1, said


def test_without_the_solver_library_mujoco_takes_the_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = run_task("falling", tmp_path)["pile"]
    monkeypatch.setenv("SAP_LIBRARY", str(tmp_path / "none.so"))
    replaced, report = run_replaced("falling", tmp_path, "--when", "always")
    assert np.array_equal(own, replaced["pile"])
    assert report["solved"] == 0
    assert any("was not found" in reason for reason in report["passed_on"])


@pytest.mark.parametrize("jacobian", ["dense", "sparse"])
def test_a_failed_solve_writes_nothing(jacobian: str) -> None:
    model = mujoco_program.pile(options=f'jacobian="{jacobian}"')
    data = mujoco.MjData(model)
    while data.nefc == 0:
        mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    data.efc_aref[0] = np.nan
    written = (data.qacc, data.qfrc_constraint, data.efc_force, data.efc_state, data.solver_niter)
    before = [array.copy() for array in written]
    library = ctypes.CDLL(find_c_library())
    library.sap_mujoco_solve_constraints.restype = ctypes.c_int64
    table = load_native_calls().fields.address
    pointers = map(ctypes.c_void_p, (table, model._address, data._address))
    flags = ALWAYS | (SPARSE if jacobian == "sparse" else 0)
    assert library.sap_mujoco_solve_constraints(*pointers, flags, None) == -2
    for array, copy in zip(written, before, strict=True):
        assert np.array_equal(array, copy)


def test_a_program_keeps_its_exit_code_its_signals_and_its_errors(tmp_path: Path) -> None:
    for code in (0, 3):
        command = [*RUN, "--", sys.executable, "-c", f"raise SystemExit({code})"]
        assert subprocess.run(command, check=False).returncode == code
    killed = [*RUN, "--", sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]
    assert subprocess.run(killed, check=False).returncode == 128 + signal.SIGKILL
    assert subprocess.run([*RUN, "--", str(tmp_path / "none")], check=False).returncode == 127


def test_a_program_without_a_step_is_told_so(tmp_path: Path) -> None:
    command = [*RUN, "--", sys.executable, str(PROGRAM), "nothing", str(tmp_path / "none.npz")]
    said = subprocess.run(command, check=True, stderr=subprocess.PIPE, text=True).stderr
    assert said.startswith("sap-islands: no step of mujoco was seen; a program that does not use")
    crash = [*RUN, "--", sys.executable, "-c", "import os; os.kill(os.getpid(), 11)"]
    said = subprocess.run(crash, check=False, stderr=subprocess.PIPE, text=True).stderr
    assert "the program ended with code 139 (SIGSEGV), and no step of mujoco was seen" in said
    absent = [*RUN, "--", str(tmp_path / "absent")]
    said = subprocess.run(absent, check=False, stderr=subprocess.PIPE, text=True).stderr
    assert said == f"sap-islands: {tmp_path / 'absent'}: not found\n"


def test_a_program_in_c_is_solved(tmp_path: Path) -> None:
    folder = Path(mujoco.__file__).parent
    (library,) = folder.glob("libmujoco.so*")
    model = tmp_path / "pile.mjb"
    mujoco.mj_saveModel(mujoco_program.pile(), str(model), None)
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(
        """#include <mujoco/mujoco.h>
        int main(int count, char** arguments) {
          mjModel* model = mj_loadModel(arguments[1], 0);
          mjData* data = mj_makeData(model);
          for (int i = 0; i < 80; ++i) mj_step(model, data);
          return count - 2;
        }"""
    )
    flags = [f"-I{folder / 'include'}", str(library), f"-Wl,-rpath,{folder}"]
    subprocess.run(["cc", str(source), "-o", str(program), *flags], check=True)
    report = tmp_path / "report.json"
    command = [*RUN, "--when", "always", "--report", str(report), "--", str(program), str(model)]
    subprocess.run(command, check=True)
    assert json.loads(report.read_text())["solved"] > 30


IN_PROCESS = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np, mujoco, sap_islands.mujoco
import support.mujoco_program as program
own = program.falling()["pile"]
replacement = sap_islands.mujoco.replace_solver("always")
replaced = program.falling()["pile"]
solved = replacement.read().solved
stages = program.stages()
assert replacement.read().solved > solved + 300, replacement.read()
replacement.stop()
solved = replacement.read().solved
again = program.falling()["pile"]
assert np.array_equal(own, again)
assert replacement.read().solved == solved
replacement.close()
assert not np.array_equal(own, replaced)
assert np.abs(own - replaced).max() < 1e-8 * np.abs(own).max()
"""


def test_replace_solver_solves_steps_until_it_is_stopped() -> None:
    program = IN_PROCESS.format(folder=str(PROGRAM.parents[1]))
    subprocess.run([sys.executable, "-c", program], check=True)


LAW_RUN = """
import sys; sys.path.insert(0, {folder!r})
import numpy as np, mujoco, sap_islands as sap, sap_islands.mujoco as adapter
from mujoco.rollout import rollout
from sap_islands.scenes import load_scene
import support.mujoco_program as program
STATE = mujoco.mjtState.mjSTATE_FULLPHYSICS

def begun(model, steps):
    data = mujoco.MjData(model)
    for _ in range(steps):
        mujoco.mj_step(model, data)
    state = np.empty(mujoco.mj_stateSize(model, STATE))
    mujoco.mj_getState(model, data, state, STATE)
    states = np.tile(state, (3, 1))
    states[:, -3:] += 0.01 * np.arange(3)[:, None]
    return states

def own(model, states):
    return rollout(model, [mujoco.MjData(model)], states, nstep=12)[0]

def run(model, states, **more):
    return adapter.rollout(
        model, states, None, nstep=12, law="run", threads=2, certificates=True, **more
    )

large, small = load_scene("clutter", 160), program.pile(options='integrator="RK4"')
states = begun(large, 150)
before = own(large, states)
found, _, certificates = run(large, states)
assert np.array_equal(own(large, states), before)  # other steps stay MuJoCo's
assert certificates["islands"].min() > 0 and certificates["unsolved"].max() == 0
assert 0 < certificates["bound"].max() < 1e-12
with adapter.replace_solver() as replacement:
    replaced = own(large, states)
    assert replacement.read().solved == 36
    assert np.array_equal(run(large, states)[0], replaced)
    assert replacement.read().solved == 36  # steps of a rollout are not those of a program
    replacement.stop()
assert np.array_equal(found, replaced) and not np.array_equal(found, before)

data = [mujoco.MjData(large) for _ in states]
for state, each in zip(states, data):
    mujoco.mj_setState(large, each, state, STATE)
advanced = adapter.advance_batch(large, data, law="run")
assert advanced.islands == certificates["islands"][:, 0].sum()
assert all(np.array_equal(each.qpos, row[0, 1 : 1 + large.nq]) for each, row in zip(data, found))

states = begun(small, 60)
found, _, certificates = run(small, states)
assert np.array_equal(found, own(small, states)) and certificates["islands"].max() == 0

try:
    run(small, states, options=sap.Options(relative_tolerance=1e-4))
    raise AssertionError("options were taken")
except sap.InvalidArgument as error:
    assert error.field == "options"
with sap.connect("embedded:") as client:  # in this process as well
    assert np.array_equal(run(small, states, client=client)[0], found)
"""


def test_the_law_run_is_the_step_of_a_replaced_program_on_its_own_threads_only() -> None:
    program = LAW_RUN.format(folder=str(PROGRAM.parents[1]))
    subprocess.run([sys.executable, "-c", program], check=True)


def test_replace_solver_refuses_an_unknown_choice() -> None:
    with pytest.raises(InvalidArgument, match="when is 'sometimes'"):
        sap_islands.mujoco.replace_solver("sometimes")  # type: ignore[arg-type]  # on purpose


def test_the_preloaded_library_needs_the_c_library_alone() -> None:
    printed = subprocess.run(
        ["readelf", "--dynamic", find_replacement("mujoco")],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    needed = [line for line in printed.splitlines() if "(NEEDED)" in line]
    assert needed
    assert all("libc.so" in line or "ld-linux" in line for line in needed)


def test_a_build_elsewhere_is_taken_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sap_islands.binaries._in_package", lambda name: f"/package/{name}")
    monkeypatch.setenv("SAP_LIBRARY", str(tmp_path / "libsap_islands.so"))
    usual = Path(find_replacement("mujoco"))
    assert usual.parent == Path("/package")
    built = tmp_path / usual.name
    built.touch()
    assert find_replacement("mujoco") == str(built)
