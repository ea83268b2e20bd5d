"""A program of MuJoCo that knows nothing of this package's solver; test_replacement runs it.

    mujoco_program.py TASK OUTPUT.npz

writes arrays of what the task computed.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from pathlib import Path
from typing import Any

import mujoco
import mujoco.rollout
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from sap_islands.scenes import load_scene

from support.mujoco_agreement import KINDS, load_kind, solve_tightly
from support.mujoco_flexes import NAMES as FLEXES
from support.mujoco_flexes import flex_model, large_cloth
from support.mujoco_flexes import in_motion as flexes_in_motion

STEPS, MANY = 12, 80
SENSORS = """<sensor><touch site="site"/><force site="site"/><torque site="site"/>
<accelerometer site="site"/></sensor>"""
Arrays = dict[str, Any]


def pile(bodies: int = 12, options: str = "") -> Any:
    """Boxes that fall on each other; the lowest one has sensors."""
    rng = np.random.default_rng(3)
    falling = "".join(
        f"""<body pos="{rng.uniform(-0.1, 0.1)} {rng.uniform(-0.1, 0.1)} {0.05 + 0.09 * i}">
        <freejoint/><geom type="box" size=".05 .04 .04"/>
        {'<site name="site" size=".06"/>' if i == 0 else ""}</body>"""
        for i in range(bodies)
    )
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><option {options}/><worldbody><geom type="plane" size="2 2 1"/>{falling}
        </worldbody>{SENSORS}</mujoco>"""
    )


def run(model: Any, data: Any, steps: int) -> Any:
    """The last state, with accelerations, forces and sensors."""
    for _ in range(steps):
        mujoco.mj_step(model, data)
    mujoco.mj_forward(model, data)
    parts = (data.qpos, data.qvel, data.qacc, data.qfrc_constraint, data.sensordata)
    return np.concatenate(parts)


def kinds() -> Arrays:
    """Every kind of constraint, with every cone and integrator."""
    return {
        f"{name}/{cone}/{integrator}": run(*load_kind(name, cone, integrator), STEPS)
        for name in KINDS
        for cone in ("PYRAMIDAL", "ELLIPTIC")
        for integrator in ("EULER", "RK4", "IMPLICIT", "IMPLICITFAST")
    }


def falling(options: str = 'tolerance="1e-12"') -> Arrays:
    """A pile."""
    model = pile(options=options)
    return {"pile": run(model, mujoco.MjData(model), MANY)}


def flexes() -> Arrays:
    """Cables, cloths and solids, with every cone."""
    found = {}
    for name in FLEXES:
        for cone in ("pyramidal", "elliptic"):
            model = flex_model(name, f'cone="{cone}"')
            found[f"{name}/{cone}"] = run(model, flexes_in_motion(model), STEPS)
    return found


def cloths() -> Arrays:
    """A large cloth, with either cone."""
    models = {cone: large_cloth(cone) for cone in ("pyramidal", "elliptic")}
    return {cone: run(model, mujoco.MjData(model), MANY) for cone, model in models.items()}


def large() -> Arrays:
    """A pile that is one island of many bodies."""
    model = load_scene("bin", 160)
    return {"pile": run(model, mujoco.MjData(model), 2 * MANY)}


def stages() -> Arrays:
    """mj_step1 and mj_step2, derivatives by finite differences, and forward dynamics alone."""
    model = pile()
    data = mujoco.MjData(model)
    for _ in range(MANY):
        mujoco.mj_step1(model, data)
        mujoco.mj_step2(model, data)
    nx = 2 * model.nv
    a = np.zeros((nx, nx))
    mujoco.mjd_transitionFD(model, data, 1e-6, True, a, None, None, None)
    mujoco.mj_forwardSkip(model, data, 0, 1)
    return {"state": np.concatenate((data.qpos, data.qvel, data.qacc)), "derivatives": a}


def rollouts() -> Arrays:
    """mujoco.rollout on one thread and on three, and steps on threads of Python."""
    model = pile()
    state = np.empty(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    data = [mujoco.MjData(model) for _ in range(6)]
    for i, each in enumerate(data):
        each.qvel[:] = 0.1 * i
    initial = []
    for each in data:
        mujoco.mj_getState(model, each, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        initial.append(state.copy())
    workers = [mujoco.MjData(model) for _ in range(3)]
    one, _ = mujoco.rollout.rollout(model, workers[:1], np.array(initial), nstep=MANY)
    three, _ = mujoco.rollout.rollout(model, workers, np.array(initial), nstep=MANY)
    threads = [threading.Thread(target=run, args=(model, each, MANY)) for each in data]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stepped = [np.concatenate((each.qpos, each.qvel)) for each in data]
    return {"one": one, "three": three, "threads": np.array(stepped)}


def batches() -> Arrays:
    """mujoco.batch on one thread and on three, of versions that have it."""
    from mujoco import batch

    model = pile()
    found = {}
    for threads in (1, 3):
        simulations = batch.Batch(model, 6, threads)
        simulations.qvel[:] += 0.1 * np.arange(6)[:, None]
        simulations.step(nstep=MANY)
        found[str(threads)] = np.concatenate((simulations.qpos, simulations.qvel), axis=1)
    return found


def processes() -> Arrays:
    """A pile in this process, in a forked and in a spawned one."""
    model = pile()
    data = mujoco.MjData(model)
    run(model, data, MANY // 2)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, run(model, data, MANY // 2).tobytes())
        os._exit(0)
    forked = np.frombuffer(os.read(reading, 1 << 16))
    os.waitpid(child, 0)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        spawned = pool.apply(falling, ("",))["pile"]
    return {"own": run(model, data, MANY // 2), "forked": forked, "spawned": spawned}


def gym() -> Arrays:
    """An environment of Gymnasium, which steps with RK4."""
    import gymnasium

    environment = gymnasium.make("Ant-v5")
    environment.reset(seed=1)
    rng = np.random.default_rng(1)
    shape = environment.action_space.shape
    for _ in range(STEPS):
        observation, *_ = environment.step(rng.uniform(-1.0, 1.0, shape))
    return {"observation": observation}


def left_to_mujoco() -> Arrays:
    """Models of which MuJoCo's own solver takes the steps."""
    chosen = {
        "PGS": 'solver="PGS"',
        "noslip": 'noslip_iterations="3"',
        "no iterations": 'iterations="0"',
    }
    found = {name: falling(options)["pile"] for name, options in chosen.items()}
    if hasattr(mujoco.mjtIntegrator, "mjINT_DISCRETE"):
        block = flex_model("block on a plane", 'integrator="discrete"')
        found["flex"] = run(block, mujoco.MjData(block), STEPS)
    return found


CHAIN = """<body pos="{x} 0 1"><joint name="a{n}" axis="0 1 0" {joint}/>
<geom type="capsule" size=".03" fromto="0 0 0 .3 0 0" {geom}/>
<body pos=".3 0 0"><joint name="b{n}" axis="0 1 0" {joint}/>
<geom type="capsule" size=".03" fromto="0 0 0 .3 0 0" {geom}/></body></body>"""
SPINNING = """<body pos="0 2 2"><freejoint/>
<geom type="box" size=".3 .1 .05" pos=".2 .1 -.1" euler="20 40 0"/></body>"""
LYING = '<body pos=".1 1 .04"><freejoint/><geom type="box" size=".2 .1 .05"/></body>'
FLOATING = """<body pos="0 -2 1"><freejoint/><geom type="box" size=".2 .1 .05"/>
<body pos=".2 0 0"><joint axis="0 1 0" stiffness="80" damping="2"/>
<geom type="capsule" size=".03" fromto="0 0 0 .3 0 .1"/></body></body>"""


def chains(
    joint: str = "", geom: str = "", more: str = "", options: str = "", bodies: str = ""
) -> Any:
    """Two chains, one of which has a joint limit or friction to be solved, and free bodies."""
    world = "".join(CHAIN.format(x=0.9 * n, n=n, joint=joint, geom=geom) for n in range(2))
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco><option integrator="discrete" {options}/><worldbody>
        <geom type="plane" size="5 5 1"/>{world}{SPINNING}{LYING}{bodies}</worldbody>{more}
        </mujoco>"""
    )
    solve_tightly(model)
    model.opt.tolerance = 1e-15  # at 0 its conjugate gradients end in 0 / 0
    return model


def tendon(first: str, second: str, more: str) -> str:
    """A stiff tendon between two joints."""
    return f"""<tendon><fixed name="t" stiffness="300" damping="5" springlength="0" {more}>
    <joint joint="{first}" coef="1"/><joint joint="{second}" coef="-.6"/></fixed></tendon>"""


def discrete_models() -> dict[str, Any]:
    """Models of MuJoCo's integrator `discrete`, with each kind of term in its metric."""
    servo = '<actuator><position joint="{}" kp="900" kv="20"/></actuator>'
    return {
        "nothing stiff": chains(),
        "dampers": chains('damping="3"'),
        "springs": chains('stiffness="400" damping="1" springref="20"'),
        "friction loss": chains('frictionloss=".3" stiffness="100"'),
        "limits": chains('range="-10 10" stiffness="50"'),
        "elliptic cones": chains('stiffness="100"', options='cone="elliptic"'),
        "servo": chains("", more=servo.format("a0")),
        "tendon within a tree": chains(more=tendon("a0", "b0", "")),
        "tendon between trees": chains(more=tendon("a0", "b1", "")),
        "limited tendon between trees": chains(more=tendon("a1", "b0", 'range="-.1 .1"')),
        "servo of a tendon between trees": chains(
            more=tendon("a0", "a1", "")
            + '<actuator><position tendon="t" kp="500" kv="9"/></actuator>'
        ),
        "fluid": chains(geom='fluidshape="ellipsoid"', options='density="800" viscosity=".3"'),
        "floating chain": chains(bodies=FLOATING),
        "equality": chains(
            'stiffness="40"', more='<equality><joint joint1="a0" joint2="b1"/></equality>'
        ),
        "dense": chains('damping="3" stiffness="100"', options='jacobian="dense"'),
        "sparse": chains('damping="3" stiffness="100"', options='jacobian="sparse"'),
    }


def in_motion(model: Any) -> Any:
    """A state of one of these models, with a spinning body."""
    data = mujoco.MjData(model)
    data.qvel[:] = np.random.default_rng(0).normal(size=model.nv)
    data.qvel[7:10] = 9.0, 2.0, 1.0
    data.ctrl[:] = 0.5
    return data


def discrete() -> Arrays:
    """Steps of each of these models."""
    models = discrete_models()
    return {name: run(model, in_motion(model), STEPS) for name, model in models.items()}


def arrays_of(data: Any) -> Arrays:
    """All arrays and numbers of a state, those of contacts, timers and solver statistics too."""
    found: Arrays = {}
    owners = {"": data, "contact.": data.contact, "timer.": data.timer, "solver.": data.solver}
    for prefix, owner in owners.items():
        for name in dir(owner):
            value = None if name.startswith("_") else getattr(owner, name)
            if isinstance(value, np.ndarray | float | int):
                found[prefix + name] = np.array(value)
    return found


EVERYTHING = """<mujoco><option cone="{cone}" tolerance="1e-15" integrator="{integrator}"
jacobian="{jacobian}"><flag fwdinv="enable" energy="enable" {flag}/></option>
<worldbody><geom type="plane" size="3 3 1"/>
<body pos="0 0 .095"><freejoint/><geom type="box" size=".1 .1 .1" mass="1"/></body>
<body pos="0 1 1"><freejoint/><geom type="box" size=".1 .1 .1" mass="1"/></body>
<body pos=".3 0 .3"><joint axis="0 1 0" range="-10 10" frictionloss=".2" damping=".1"/>
<geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
<body pos=".3 0 0"><joint name="k" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 .2 0 0" size=".03"/><site name="site" pos=".2 0 0"/>
</body></body></worldbody><equality><joint joint1="k" polycoef=".1 0 0 0 0"/></equality>
{sensors}</mujoco>"""


def outputs() -> Arrays:
    """All of mjData after mj_forward, from one state of each model."""
    found: Arrays = {}
    integrators = ["Euler", "implicitfast"]
    if hasattr(mujoco.mjtIntegrator, "mjINT_DISCRETE"):
        integrators.append("discrete")
    choices = [
        (cone, integrator, jacobian, flag)
        for cone in ("elliptic", "pyramidal")
        for integrator in integrators
        for jacobian in ("dense", "sparse")
        for flag in ("", 'island="disable"', 'warmstart="disable"')
    ]
    for cone, integrator, jacobian, flag in choices:
        model = mujoco.MjModel.from_xml_string(
            EVERYTHING.format(
                cone=cone, integrator=integrator, jacobian=jacobian, flag=flag, sensors=SENSORS
            )
        )
        data = mujoco.MjData(model)
        data.qpos[14] = 0.2
        data.qvel[:] = np.linspace(-0.3, 0.4, model.nv)
        mujoco.mj_forward(model, data)
        name = f"{cone} {integrator} {jacobian} {flag}"
        found |= {f"{name}/{key}": value for key, value in arrays_of(data).items()}
    return found


def clock() -> Arrays:
    """MuJoCo's timers after some steps, by a clock that counts its own calls."""
    calls = 0

    def tick() -> float:
        nonlocal calls
        calls += 1
        return float(calls)

    model = pile()
    data = mujoco.MjData(model)
    for _ in range(MANY // 2):
        mujoco.mj_step(model, data)
    mujoco.set_mjcb_time(tick)
    for _ in range(STEPS):
        mujoco.mj_step(model, data)
    mujoco.set_mjcb_time(None)
    return {"number": data.timer.number.copy(), "duration": data.timer.duration.copy()}


def unknown_solver() -> Arrays:
    """Whether MuJoCo refuses a solver that it does not have."""
    model = pile()
    data = mujoco.MjData(model)
    for _ in range(MANY // 2):
        mujoco.mj_step(model, data)
    messages = {}
    for solver in (3, 10, -1):
        model.opt.solver = solver
        try:
            mujoco.mj_step(model, data)
        except mujoco.FatalError as error:
            messages[str(solver)] = np.array(str(error))
    return messages


def few_iterations() -> Arrays:
    """Steps from the same states under bounds on the iterations."""
    model = pile(options='tolerance="1e-12" cone="elliptic"')
    found = {}
    for most in (1, 2, 3, 5, 100):
        model.opt.iterations = 100
        data = mujoco.MjData(model)
        data.qvel[:] = np.random.default_rng(1).normal(size=model.nv)
        forces, counts = [], []
        for _ in range(MANY):
            model.opt.iterations = 100
            mujoco.mj_step(model, data)
            other = mujoco.MjData(model)
            mujoco.mj_copyData(other, model, data)
            other.qacc_warmstart[:] = 0.0
            model.opt.iterations = most
            mujoco.mj_forward(model, other)
            forces.append(other.qfrc_constraint.copy())
            counts.append(other.solver_niter.max())
        found[f"forces {most}"], found[f"counts {most}"] = np.array(forces), np.array(counts)
    return found


def nothing() -> Arrays:
    """No step at all."""
    return {}


if __name__ == "__main__":
    np.savez(sys.argv[2], **globals()[sys.argv[1]]())
