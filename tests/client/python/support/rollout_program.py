"""A program that knows nothing of this package: it rolls MuJoCo out and saves what it gets.

    rollout_program.py TASK OUTPUT

prints the names of the startup modules that ran before it.
"""

import multiprocessing
import sys
from typing import Any

import mujoco
import numpy as np
from mujoco import rollout

CLUTTER = (
    '<mujoco><worldbody><geom type="plane" size="2 2 .1"/>'
    + "".join(
        f'<body pos="{0.03 * (i % 3)} {0.02 * (i % 2)} {0.06 + 0.11 * i}"><freejoint/>'
        f'<geom type="box" size=".05 .04 .05"/></body>'
        for i in range(6)
    )
    + '<body pos="1 0 1"><joint name="j" axis="0 1 0"/>'
    '<geom type="capsule" fromto="0 0 0 .2 0 0" size=".02"/></body></worldbody>'
    '<actuator><general joint="j" gaintype="affine" gainprm="0 0 3"/></actuator>'
    '<sensor><clock/><jointpos joint="j"/></sensor></mujoco>'
)
STATE = mujoco.mjtState.mjSTATE_FULLPHYSICS


def states(model: Any, count: int) -> Any:
    random, data = np.random.default_rng(0), mujoco.MjData(model)
    found = np.empty((count, mujoco.mj_stateSize(model, STATE)))
    for row in found:
        mujoco.mj_resetData(model, data)
        data.qvel[:] = 0.1 * random.standard_normal(model.nv)
        mujoco.mj_getState(model, data, row, STATE)
    return found


def in_child(model: Any, queue: Any) -> None:
    data = [mujoco.MjData(model)]
    queue.put(rollout.rollout(model, data, states(model, 8), nstep=100)[0])


def batches(model: Any, begin: Any, control: Any, binds: bool) -> dict[str, Any]:
    from mujoco.batch import Batch

    batch = Batch(model, 12, 2)
    batch.bind("time")[:] = begin[:, 0]
    batch.bind("qpos")[:] = begin[:, 1 : 1 + model.nq]
    batch.bind("qvel")[:] = begin[:, 1 + model.nq : 1 + model.nq + model.nv]
    sensors = batch.bind("sensordata")
    places = batch.bind("xpos") if binds else None
    found = {}
    for step in range(3):
        batch.bind("ctrl")[:] = 0.01 * step
        batch.step(nstep=50)
        found[f"row {step}"], found[f"sensors {step}"] = batch.state.copy(), sensors.copy()
        if places is not None:
            found[f"xpos {step}"] = places.copy()
    ids = np.array([2, 5, 7])
    records = ["qvel", "sensordata", "eq_active", int(STATE)]
    for name, record in batch.rollout(100, control, record=records, ids=ids).items():
        found[f"record {name}"] = record
    found["rows"], found["last sensors"] = batch.state.copy(), sensors.copy()
    batch.expand("body_mass")[:] *= 1.1
    batch.step(nstep=50)
    found["heavier"] = batch.state.copy()
    return found


def main() -> None:
    task, output = sys.argv[1:]
    model = mujoco.MjModel.from_xml_string(CLUTTER)
    data = [mujoco.MjData(model) for _ in range(2)]
    begin = states(model, 12)
    control = np.random.default_rng(1).uniform(-1, 1, (12, 100, 1))
    control[3] = 10.0  # it diverges
    found = {}
    if task in ("large", "fork"):
        found["state"], found["sensordata"] = rollout.rollout(model, data, begin, control)
        warm = np.full((12, model.nv), 0.1)
        found["warm"], _ = rollout.rollout(
            model, data, begin, control, initial_warmstart=warm, persistent_pool=True
        )
        push = int(mujoco.mjtState.mjSTATE_QFRC_APPLIED)
        force = np.random.default_rng(2).uniform(-1, 1, (12, 100, model.nv))
        found["pushed"], _ = rollout.rollout(model, data, begin, force, control_spec=push)
    if task == "fork":
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        child = context.Process(target=in_child, args=(model, queue))
        child.start()
        found["forked"] = queue.get()
        child.join()
    if task in ("batch", "bound"):
        found = batches(model, begin, control[:3], task == "bound")
    if task == "small":
        found["state"], _ = rollout.rollout(model, data[:1], begin[:1], control[:1, :2])
    if task == "callback":
        mujoco.set_mjcb_passive(lambda *_: None)
        found["state"], _ = rollout.rollout(model, data, begin, control)
        mujoco.set_mjcb_passive(None)
    if task == "error":
        model.opt.solver = 77  # MuJoCo raises
        try:
            rollout.rollout(model, data[:1], begin, control)
        except Exception as error:
            found["error"] = np.array(f"{type(error).__name__}: {error}")
    np.savez(output, **found)
    print(getattr(sys, "startup_ran", ""))


if __name__ == "__main__":
    main()
