"""Steps in one call of the C library: the bits of `step`, on any number of threads."""

from __future__ import annotations

import copy
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
import sap_islands as sap
import sap_islands.mujoco as adapter
from sap_islands.arrays import FloatArray
from sap_islands.binaries import find_c_library

from support import mujoco_program
from support.mujoco_agreement import KINDS, load_kind
from support.program import run_program

ROOT = Path(__file__).resolve().parents[3]
STATE = mujoco.mjtState.mjSTATE_FULLPHYSICS
STEPS = 10


SERVOS = """
<mujoco><option timestep=".01"/>
<worldbody><geom type="plane" size="5 5 .1"/>
  <body pos="0 0 .3"><joint name="turn" axis="0 1 0" damping=".3"/>
    <geom type="capsule" size=".04" fromto="0 0 0 .3 0 0"/>
    <body pos=".3 0 0"><joint name="bend" axis="0 1 0" armature=".1"/>
      <geom type="capsule" size=".04" fromto="0 0 0 .3 0 0"/></body></body>
  <body pos="1 0 .1"><joint name="slide" type="slide" axis="1 0 0"/><geom size=".1"/></body>
</worldbody>
<tendon><fixed name="both"><joint joint="turn" coef="1"/><joint joint="slide" coef="-1"/></fixed>
</tendon>
<actuator><position joint="turn" kp="200" kv="10" forcerange="-99 99"/>
  <velocity joint="bend" kv="5"/><damper joint="bend" kv="3" ctrlrange="0 1"/>
  <position joint="slide" kp="300" timeconst=".05"/>
  <intvelocity joint="bend" kp="20" actrange="-2 2"/>
  <motor joint="slide" gear="2"/><position tendon="both" kp="40" kv="2"/></actuator>
<sensor><jointactuatorfrc joint="turn"/><jointactuatorfrc joint="bend"/>
  <jointactuatorfrc joint="slide"/></sensor></mujoco>"""


def outputs(data: mujoco.MjData) -> list[FloatArray]:
    return [
        data.qpos,
        data.qvel,
        data.qacc,
        data.act,
        data.efc_force,
        data.efc_state,
        data.qfrc_constraint,
        data.qfrc_actuator,
        data.actuator_force,
        data.sensordata,
        data.cfrc_ext,
        data.energy,
        np.array([data.time]),
    ]


def both(model: mujoco.MjModel, data: mujoco.MjData) -> tuple[mujoco.MjData, mujoco.MjData]:
    copies = mujoco.MjData(model), mujoco.MjData(model)
    for each in copies:
        mujoco.mj_copyData(each, model, data)
    return copies


def check_same_bits(client: sap.Client, model: Any, data: Any, law: adapter.Law) -> None:
    stepped, advanced = both(model, data)
    for _ in range(STEPS):
        adapter.step(model, stepped, client, law=law, on_unsolved="ignore")
        adapter.advance(model, advanced, law=law, on_unsolved="ignore")
        for one, other in zip(outputs(stepped), outputs(advanced), strict=True):
            assert np.array_equal(one, other)


@pytest.mark.parametrize("law", ["sap", "mujoco", "coulomb"])
@pytest.mark.parametrize("cone", ["PYRAMIDAL", "ELLIPTIC"])
@pytest.mark.parametrize("integrator", ["EULER", "IMPLICITFAST"])
def test_advance_has_the_bits_of_step(
    client: sap.Client, law: adapter.Law, cone: str, integrator: str
) -> None:
    for name in KINDS:
        model, data = load_kind(name, cone, integrator)
        model.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_ENERGY)
        check_same_bits(client, model, data, law)


@pytest.mark.parametrize("law", ["sap", "mujoco", "coulomb"])
@pytest.mark.parametrize("integrator", ["EULER", "IMPLICITFAST", "DISCRETE"])
def test_forces_of_servos_have_the_bits_of_step(
    client: sap.Client, law: adapter.Law, integrator: str
) -> None:
    if not hasattr(mujoco.mjtIntegrator, f"mjINT_{integrator}"):
        pytest.skip(f"this MuJoCo has no integrator {integrator}")
    model = mujoco.MjModel.from_xml_string(SERVOS)
    model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator}")
    data = mujoco.MjData(model)
    data.ctrl[:] = 0.4
    data.qvel[:] = 0.2, -0.1, 0.3
    check_same_bits(client, model, data, law)


# The link without gravity has M dv / dt = force of its servo at the end of the step.
@pytest.mark.parametrize("law", ["sap", "coulomb"])
def test_forces_of_servos_are_those_at_the_end_of_the_step_in_every_call(
    client: sap.Client, law: adapter.Law
) -> None:
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><option timestep=".01" gravity="0 0 0"/><worldbody><body>
        <joint name="j" axis="0 1 0" armature=".1"/>
        <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass="1"/></body></worldbody>
        <actuator><position name="p" joint="j" kp="500" kv="20" forcerange="-60 60"/></actuator>
        <sensor><actuatorfrc actuator="p"/><jointactuatorfrc joint="j"/></sensor></mujoco>"""
    )
    state = np.empty(mujoco.mj_stateSize(model, STATE))
    mujoco.mj_getState(model, mujoco.MjData(model), state, STATE)
    control = np.full((4, 1), 0.1)
    by_client = adapter.rollout(model, state, control, client, law=law)
    by_threads = adapter.rollout(model, state, control, law=law, threads=2)
    stepped, batched = mujoco.MjData(model), mujoco.MjData(model)
    for step in range(4):
        before = stepped.qvel[0]
        for data in (stepped, batched):
            data.ctrl[0] = 0.1
        adapter.step(model, stepped, client, law=law)
        adapter.step_batch(model, [batched], client, law=law)
        force = model.dof_M0[0] * (stepped.qvel[0] - before) / model.opt.timestep
        for data in (stepped, batched):
            for found in (data.actuator_force, data.qfrc_actuator, data.sensordata):
                assert found == pytest.approx(force, abs=1e-3)
        for _, sensors in (by_client, by_threads):
            assert sensors[0, step] == pytest.approx(force, abs=1e-3)


def test_data_of_another_model_is_refused_and_of_a_copy_taken(client: sap.Client) -> None:
    ball, _ = load_kind("connect", "ELLIPTIC", "EULER")
    pile = mujoco_program.pile()
    data = mujoco.MjData(pile)
    for advance in (
        lambda: adapter.advance(ball, data),
        lambda: adapter.advance_batch(ball, [data]),
        lambda: adapter.step(ball, data, client),
        lambda: adapter.step_batch(ball, [data], client),
    ):
        with pytest.raises(sap.InvalidArgument, match="data is of another model: nq is") as caught:
            advance()
        assert caught.value.field == "data"
    heavier = copy.copy(pile)
    heavier.opt.gravity[2] *= 2
    adapter.advance(heavier, data)
    assert data.time == pile.opt.timestep


@pytest.mark.parametrize("law", ["sap", "mujoco"])
def test_contacts_in_the_gap_and_sleeping_trees_have_the_bits_of_step(
    client: sap.Client, law: adapter.Law
) -> None:
    model = mujoco_program.pile()
    adapter.find_contacts_within(model, 0.004)
    model.opt.enableflags |= int(mujoco.mjtEnableBit.mjENBL_SLEEP)
    check_same_bits(client, model, mujoco.MjData(model), law)


def test_controls_of_a_callback_are_read(client: sap.Client) -> None:
    model, data = load_kind("everything", "ELLIPTIC", "EULER")

    def control(_: Any, state: Any) -> None:
        state.ctrl[:] = np.sin(state.time)

    mujoco.set_mjcb_control(control)
    try:
        check_same_bits(client, model, data, "sap")
    finally:
        mujoco.set_mjcb_control(None)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("law", ["sap", "mujoco"])
def test_rollout_on_threads_has_the_bits_of_one_with_a_client(
    client: sap.Client, law: adapter.Law, threads: int
) -> None:
    model, data = load_kind("everything", "PYRAMIDAL", "EULER")
    initial = []
    for i in range(5):
        data.qvel[:] += 0.02 * i
        initial.append(np.empty(mujoco.mj_stateSize(model, STATE)))
        mujoco.mj_getState(model, data, initial[-1], STATE)
    control = np.random.default_rng(1).uniform(-1, 1, (5, STEPS, model.nu))
    expected = adapter.rollout(model, np.array(initial), control, client, law=law)
    found = adapter.rollout(model, np.array(initial), control, law=law, threads=threads)
    for one, other in zip(expected, found, strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_step_of_many_states_has_the_bits_of_one_each(client: sap.Client, threads: int) -> None:
    models = [mujoco_program.pile(count) for count in (2, 5, 9, 3)]
    stepped, advanced = ([mujoco.MjData(model) for model in models] for _ in range(2))
    for _ in range(STEPS):
        for model, data in zip(models, stepped, strict=True):
            adapter.step(model, data, client)
        sums = adapter.advance_batch(models, advanced, threads=threads)
        assert sums.unsolved == 0
        for one, other in zip(stepped, advanced, strict=True):
            assert np.array_equal(one.qpos, other.qpos)
            assert np.array_equal(one.sensordata, other.sensordata)


def test_states_of_a_batch_are_checked() -> None:
    model = mujoco_program.pile(1)
    data = mujoco.MjData(model)
    with pytest.raises(sap.InvalidArgument, match="a state twice"):
        adapter.advance_batch(model, [data, data])
    with pytest.raises(sap.InvalidArgument, match="threads is 0"):
        adapter.advance_batch(model, [data], threads=0)
    with pytest.raises(sap.InvalidArgument, match="2 models for 1 states"):
        adapter.advance_batch([model, model], [data])
    broken = mujoco_program.pile(2)
    broken.opt.timestep = -1.0
    with pytest.raises(sap.InvalidArgument, match="time_step"):
        adapter.advance_batch(broken, [mujoco.MjData(broken)])


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_of_states_of_a_batch_names_them_and_all_others_are_advanced(
    threads: int,
) -> None:
    model = mujoco_program.pile(3)
    data = [mujoco.MjData(model) for _ in range(6)]
    for i in (2, 4):
        data[i].qfrc_applied[1] = np.nan
    with pytest.raises(sap.InvalidArgument, match=r"data\[2\]: .*is NaN") as caught:
        adapter.advance_batch(model, data, threads=threads)
    assert caught.value.states == (2, 4)
    dt = model.opt.timestep
    assert [each.time for each in data] == [dt, dt, 0.0, dt, 0.0, dt]
    assert all(np.array_equal(data[0].qpos, data[i].qpos) for i in (1, 3, 5))


def test_a_step_writes_what_mujocos_constraint_stage_writes(client: sap.Client) -> None:
    model = mujoco_program.pile()
    model.opt.tolerance = 1e-12
    plain = mujoco.MjData(model)
    while plain.nisland == 0:
        mujoco.mj_step(model, plain)
    stepped, advanced = both(model, plain)
    for data in (plain, stepped, advanced):
        data.timer.number[:] = 0
    mujoco.mj_step(model, plain)
    adapter.step(model, stepped, client, law="mujoco")
    adapter.advance(model, advanced, law="mujoco")
    timers = mujoco.mjtTimer
    kinds = [int(timers.mjTIMER_STEP), int(timers.mjTIMER_FORWARD), int(timers.mjTIMER_CONSTRAINT)]
    names = ["efc_b", "iefc_force", "iefc_aref", "iefc_state"]
    names += ["iacc", "iacc_smooth", "ifrc_smooth", "ifrc_constraint"]
    for data in (stepped, advanced):
        for name in names:
            expected = getattr(plain, name)
            assert getattr(data, name) == pytest.approx(expected, rel=1e-6, abs=1e-6), name
        assert np.array_equal(data.solver_niter > 0, plain.solver_niter > 0)
        assert data.timer.number[kinds].tolist() == [1, 1, 1]
    assert np.array_equal(stepped.solver_niter, advanced.solver_niter)


def test_a_forked_process_has_threads_of_its_own() -> None:
    program = """
import os
import mujoco
import sap_islands.mujoco as adapter
from support.mujoco_program import pile
model = pile(4)
data = [mujoco.MjData(model) for _ in range(4)]
adapter.advance_batch(model, data, threads=2)
if (child := os.fork()) == 0:
    adapter.advance_batch(model, data, threads=2)
    os._exit(int(data[0].time != 2 * model.opt.timestep))
assert os.waitpid(child, 0)[1] == 0
print("fine")
"""
    result = run_program(program)
    assert result.stdout == "fine\n", result.stderr


def test_an_error_of_mujoco_is_an_error_of_the_call_and_leaves_the_next_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    box = '<freejoint/><geom type="box" size=".05 .05 .05"/>'
    boxes = "".join(f'<body pos="0 0 {0.05 + 0.09 * i}">{box}</body>' for i in range(40))
    small = mujoco.MjModel.from_xml_string(
        f"""<mujoco><size memory="40K"/><worldbody><geom type="plane" size="2 2 1"/>{boxes}
        </worldbody></mujoco>"""
    )
    monkeypatch.chdir(tmp_path)  # MuJoCo writes its errors to a file there
    with pytest.raises(sap.SapError, match=r"MuJoCo: .*stack overflow"):
        adapter.advance(small, mujoco.MjData(small))
    with pytest.raises(mujoco.FatalError):
        mujoco.mj_step(small, mujoco.MjData(small))
    model = mujoco_program.pile()
    data = mujoco.MjData(model)
    assert adapter.advance(model, data).unsolved == 0
    assert data.time == model.opt.timestep


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"law": "drake"}, "law is 'drake'"),
        ({"options": sap.Options(max_iterations=3)}, "no option but relative_tolerance"),
        ({"on_unsolved": "hide"}, "on_unsolved is 'hide'"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, Any], message: str) -> None:
    model = mujoco_program.pile(1)
    with pytest.raises(sap.InvalidArgument, match=message):
        adapter.advance(model, mujoco.MjData(model), **arguments)


def test_a_rollout_releases_pythons_lock() -> None:
    model = mujoco_program.pile()
    state = np.empty(mujoco.mj_stateSize(model, STATE))
    mujoco.mj_getState(model, mujoco.MjData(model), state, STATE)
    counted = 0
    done = threading.Event()

    def count() -> None:
        nonlocal counted
        while not done.is_set():
            counted += 1
            time.sleep(0)

    thread = threading.Thread(target=count)
    thread.start()
    before = counted
    adapter.rollout(model, np.tile(state, (8, 1)), None, nstep=100)
    counted_meanwhile = counted - before
    done.set()
    thread.join()
    assert counted_meanwhile > 10


C_PROGRAM = """
#include <mujoco/mujoco.h>
#include <stdio.h>

#include "client/mujoco/sap_mujoco.h"

int main(int count, char** arguments) {
  mjModel* model = mj_loadModel(arguments[count - 1], 0);
  mjData* data = mj_makeData(model);
  sap_mujoco* solver;
  sap_mujoco_outcome outcome;
  if (sap_mujoco_open(NULL, NULL, &solver, &outcome)) return puts(outcome.message), 1;
  for (int i = 0; i < 60; ++i) {
    if (sap_mujoco_step(solver, model, data, NULL, &outcome)) return puts(outcome.message), 1;
  }
  if (sap_mujoco_forward(solver, model, data, NULL, &outcome)) return puts(outcome.message), 1;
  for (int i = 0; i < model->nq; ++i) printf("%.17g\\n", data->qpos[i]);
  for (int i = 0; i < model->nv; ++i) printf("%.17g\\n", data->qacc[i]);
  sap_mujoco_close(solver);
  return 0;
}
"""


@pytest.mark.parametrize("integrator", ["EULER", "DISCRETE"])
def test_a_program_in_c_has_the_bits_of_python(tmp_path: Path, integrator: str) -> None:
    if not hasattr(mujoco.mjtIntegrator, f"mjINT_{integrator}"):
        pytest.skip(f"this MuJoCo has no integrator {integrator}")
    model = mujoco_program.pile()
    model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator}")
    mujoco.mj_saveModel(model, str(tmp_path / "pile.mjb"), None)
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(C_PROGRAM)
    folder, solver = Path(mujoco.__file__).parent, Path(find_c_library()).resolve()
    (library,) = folder.glob("libmujoco.so*")
    flags = [f"-I{ROOT}", f"-I{folder / 'include'}", str(solver), str(library)]
    flags += [f"-Wl,-rpath,{folder}", f"-Wl,-rpath,{solver.parent}"]
    subprocess.run(["cc", str(source), "-o", str(program), *flags], check=True)
    printed = subprocess.run(
        [str(program), str(tmp_path / "pile.mjb")], check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    data = mujoco.MjData(model)
    for _ in range(60):
        adapter.advance(model, data)
    position = data.qpos.tolist()
    adapter.advance(model, data)  # its accelerations are those of the last state
    assert [float(line) for line in printed.split()] == position + data.qacc.tolist()
