"""Faults of simulators of every kind, planted into exact runs of several models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import mujoco
import numpy as np
import record_mujoco_warp
from numpy.typing import NDArray
from record_mujoco_warp import CONTACT
from sap_islands.arrays import FloatArray
from sap_islands.referee.contacts import touching
from sap_islands.scenes import SCENES

from support.mujoco_agreement import solve_tightly
from support.recorded_runs import (
    INPUTS,
    WORKSHOP,
    Run,
    changed,
    error_of,
    found_contacts,
    place,
    record,
    step_from,
    step_with,
    with_flag,
    with_integrator,
    with_option,
    with_row,
)

STEPS = 60
# A crate and a pipe under elliptic cones, a body held by a mocap body, an arm with everything that
# joints have, activations, and a keyframe.
BENCH = """
<mujoco>
  <option timestep="0.004" integrator="implicitfast" cone="elliptic"/>
  <worldbody>
    <geom name="ground" type="plane" size="5 5 .1"/>
    <body name="crate" pos="0 0 .1"><freejoint/>
      <geom name="crate" type="box" size=".15 .12 .1" condim="4" friction=".6 .02 .001"/></body>
    <body name="pipe" pos=".02 .01 .26" euler="80 20 10"><freejoint/>
      <geom name="pipe" type="capsule" size=".05 .1"/></body>
    <body name="hand" mocap="true" pos="1 0 .6"/>
    <body name="held" pos="1 0 .6"><freejoint/>
      <geom name="held" type="box" size=".08 .08 .08"/></body>
    <body name="first" pos="0 1 1">
      <joint name="a" axis="0 1 0" range="-3 3" damping=".3" frictionloss=".3"/>
      <geom type="capsule" size=".04" fromto="0 0 0 .3 0 0"/>
      <body name="second" pos=".3 0 0">
        <joint name="b" axis="0 1 0" damping=".3" stiffness="9" springref="40"/>
        <geom type="capsule" size=".04" fromto="0 0 0 .3 0 0"/>
        <body pos=".3 0 0"><joint name="c" axis="0 0 1" damping=".1" frictionloss=".2"/>
          <geom type="capsule" size=".04" fromto="0 0 0 .2 0 0"/>
          <body pos=".2 0 0"><joint name="d" axis="1 0 0" damping=".1"/>
            <geom type="box" size=".03 .06 .1"/></body></body>
      </body>
    </body>
  </worldbody>
  <equality><weld body1="hand" body2="held"/></equality>
  <actuator>
    <general joint="a" dyntype="filter" dynprm=".03" gainprm="40" forcerange="-6 6"/>
    <general joint="c" gainprm="4" biastype="affine" biasprm="0 0 -1"/>
  </actuator>
  <keyframe><key qvel="0 .1 0 0 0 0 0 0 .2 0 0 0 0 .3 0 0 0 0 1 -1 2 .5"/></keyframe>
</mujoco>"""
HANDLE = """
<mujoco>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body name="hand" mocap="true" pos="0 0 .5"/>
    <body name="held" pos="0 0 .5"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
    <body pos="1 0 1"><joint name="hinge" axis="0 1 0" damping="1" frictionloss=".6"
      stiffness="5" springref="60"/><geom type="capsule" size=".04" fromto="0 0 0 .3 0 0"/></body>
  </worldbody>
  <equality><weld body1="hand" body2="held"/></equality>
  <actuator><general joint="hinge" dyntype="filter" dynprm=".05" gainprm="5"/>
    <motor joint="hinge" gear="5"/></actuator>
</mujoco>"""
EXAMPLES = Path(record_mujoco_warp.__file__).parent
MODELS: dict[str, Callable[[], str]] = {
    "workshop": lambda: WORKSHOP,
    "bench": lambda: BENCH,
    "handle": lambda: HANDLE,
    "clutter": lambda: SCENES["clutter"](12),
    "arm": lambda: (
        (EXAMPLES / "arm.xml")
        .read_text()
        .replace("<option ", '<option integrator="implicitfast" ', 1)
    ),
    "humanoid": (EXAMPLES / "humanoid.xml").read_text,
}


SKIPPED = {"clutter": 20, "humanoid": 15}  # steps of free fall


def model_of(scene: str) -> mujoco.MjModel:
    """A model of which MuJoCo's steps are exact."""
    model = mujoco.MjModel.from_xml_string(MODELS[scene]())
    solve_tightly(model)
    return model


def record_of(
    scene: str,
    seed: int,
    change: Callable[[mujoco.MjModel], None] = lambda _: None,
    *,
    steps: int = STEPS,
    with_contacts: bool = False,
    pushed: bool = False,
) -> tuple[mujoco.MjModel, Run]:
    """A model, changed, and an exact run of it."""
    model = changed(model_of(scene), change)
    skip = SKIPPED.get(scene, 0)
    run = record(model, steps, seed=seed, with_contacts=with_contacts, pushed=pushed, skip=skip)
    return model, run


# Makes a state of a run wrong; None where the fault cannot be.
Plant: TypeAlias = Callable[[mujoco.MjModel, Run, int, np.random.Generator], Run | None]


class Fault(NamedTuple):
    """A fault of a simulator.

    Attributes:
        cause: Its name in the report.
        words: What the detail must have.
        plant: Makes a state wrong.
        scenes: Models to plant it in.
        tolerance: Of the verdict.
        has_contacts: Whether the simulator's contacts are recorded.
        pushed: Whether all inputs are.
    """

    cause: str
    words: str
    plant: Plant
    scenes: tuple[str, ...]
    tolerance: float = 1e-3
    has_contacts: bool = False
    pushed: bool = False


def _velocity(run: Run, state: int, velocity: FloatArray) -> Run:
    return with_row(run, "next_qvel", state, velocity)


def otherwise(*changes: Callable[[mujoco.MjModel], None]) -> Plant:
    """The step of a model that differs."""

    def plant(model: mujoco.MjModel, run: Run, state: int, _: np.random.Generator) -> Run:
        other = model
        for change in changes:
            other = changed(other, change)
        return _velocity(run, state, step_from(other, run, state))

    return plant


def few_iterations(solver: str, iterations: int) -> Callable[[mujoco.MjModel], None]:
    """Makes MuJoCo's solver stop early."""

    def change(model: mujoco.MjModel) -> None:
        model.opt.solver = getattr(mujoco.mjtSolver, f"mjSOL_{solver}")
        model.opt.iterations, model.opt.tolerance = iterations, 0.0

    return change


def scaled(name: str, factor: float, column: int = 0) -> Callable[[mujoco.MjModel], None]:
    """Multiplies a column of an array of the model."""

    def change(model: mujoco.MjModel) -> None:
        getattr(model, name)[:, column] *= factor

    return change


def without_limits_of_actuators(model: mujoco.MjModel) -> None:
    """Leaves forces and controls as they are."""
    model.actuator_forcelimited[:] = model.actuator_ctrllimited[:] = 0


def another_iterate(
    model: mujoco.MjModel, run: Run, state: int, random: np.random.Generator
) -> Run:
    """An iterate that no iteration of MuJoCo's solvers is: part of the way of each velocity."""
    data = place(model, run, state)
    mujoco.mj_forward(model, data)
    left = random.uniform(0.2, 0.8, model.nv) * model.opt.timestep
    off = left * (data.qacc_smooth - data.qacc)
    return _velocity(run, state, run["next_qvel"][state] + off)


def _remaining(model: mujoco.MjModel, run: Run, state: int, kept: NDArray[Any]) -> FloatArray:
    """The velocity with some of MuJoCo's contacts alone."""
    contacts, _ = found_contacts(model, run, state)
    return step_with(model, run, state, {name: each[kept] for name, each in contacts.items()})


def dropped_pair(
    model: mujoco.MjModel, run: Run, state: int, random: np.random.Generator
) -> Run | None:
    """Contacts of a pair of geoms have no force."""
    _, pairs = found_contacts(model, run, state)
    if len(set(pairs)) < 2:
        return None
    pair = sorted(set(pairs))[random.integers(len(set(pairs)))]
    kept = np.array([each != pair for each in pairs])
    return _velocity(run, state, _remaining(model, run, state, kept))


def _full_buffer(model: mujoco.MjModel, run: Run, state: int) -> int | None:
    """Contacts that have room: all up to one within those of a pair."""
    _, pairs = found_contacts(model, run, state)
    cuts = [i for i in range(1, len(pairs)) if pairs[i] == pairs[i - 1]]
    return cuts[len(cuts) // 2] if cuts else None


def first_rows(model: mujoco.MjModel, run: Run, state: int, _: np.random.Generator) -> Run | None:
    """Contacts beyond a number have no force."""
    count = _full_buffer(model, run, state)
    if count is None:
        return None
    velocity = _remaining(model, run, state, np.arange(count))
    if "contact_state" in run:
        own = np.flatnonzero(run["contact_state"] == state)
        run = with_row(run, "contact_efc_address", own[count:], -1)
    return _velocity(run, state, velocity)


def lost_pair(
    model: mujoco.MjModel, run: Run, state: int, random: np.random.Generator
) -> Run | None:
    """A pair of geoms that overlap has no contact, and none is recorded."""
    contacts, pairs = found_contacts(model, run, state)
    deep = contacts["includemargin"] - contacts["dist"] > 2 * touching(model)
    overlapping = sorted({pair for pair, is_deep in zip(pairs, deep, strict=True) if is_deep})
    if not overlapping:
        return None
    pair = overlapping[random.integers(len(overlapping))]
    kept = np.array([each != pair for each in pairs])
    velocity = _remaining(model, run, state, kept)
    recorded = np.ones(len(run["contact_state"]), bool)
    recorded[run["contact_state"] == state] = kept
    run = {name: each[recorded] if "contact" in name else each for name, each in run.items()}
    return _velocity(run, state, velocity)


def other_points(
    model: mujoco.MjModel, run: Run, state: int, random: np.random.Generator
) -> Run | None:
    """The velocity is right, and the recorded contacts are at other points."""
    own = np.flatnonzero(run["contact_state"] == state)
    if not own.size:
        return None
    moved = run["contact_pos"][own] + random.uniform(-0.03, 0.03, (own.size, 3)) * [1, 1, 0]
    return with_row(run, "contact_pos", own, moved)


def recorded_otherwise(name: str, row_of: Callable[..., FloatArray]) -> Plant:
    """The velocity is right, and an input is recorded that was not used."""

    def plant(model: mujoco.MjModel, run: Run, state: int, random: np.random.Generator) -> Run:
        return with_row(run, name, state, row_of(model, run, state, random))

    return plant


def of_neighbor(name: str, offset: int) -> Plant:
    """The step with an input of the state before or after."""

    def plant(model: mujoco.MjModel, run: Run, state: int, _: np.random.Generator) -> Run:
        lagging = with_row(run, name, state, run[name][state + offset])
        return _velocity(run, state, step_from(model, lagging, state))

    return plant


def other_controls(
    model: mujoco.MjModel, run: Run, state: int, random: np.random.Generator
) -> FloatArray:
    """Other controls of the range of a run."""
    low, high = run["ctrl"].min(0), run["ctrl"].max(0)
    return np.asarray(random.uniform(low, high))


def several_steps(count: int) -> Plant:
    """The velocity after several steps."""
    return lambda model, run, state, _: _velocity(run, state, step_from(model, run, state, count))


def written(change: Callable[[Run, int], FloatArray]) -> Plant:
    """Another number of the run in place of the velocity."""
    return lambda model, run, state, _: _velocity(run, state, change(run, state))


def in_bfloat16(run: Run, state: int) -> FloatArray:
    """Velocities rounded to 8 bits."""
    bits = run["next_qvel"][state].astype(np.float32).view(np.uint32)
    rounded: FloatArray = ((bits + 0x8000) & 0xFFFF0000).view(np.float32).astype(float)
    return rounded


def pulled(model: mujoco.MjModel, run: Run, state: int, random: np.random.Generator) -> Run:
    """A body is pulled into the floor, as no force of the model does."""
    assert model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE
    velocity = run["next_qvel"][state].copy()
    velocity[2] -= random.uniform(3.0, 6.0)
    return _velocity(run, state, velocity)


def keyframe(model: mujoco.MjModel, run: Run, state: int, _: np.random.Generator) -> Run:
    """Another episode begins at a keyframe."""
    return _velocity(run, state, model.key_qvel[0])


def step_from_start(model: mujoco.MjModel, run: Run, state: int, _: np.random.Generator) -> Run:
    """Another episode begins at qpos0, and makes its first step."""
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data)
    return _velocity(run, state, data.qvel)


def another_episode(has_time: bool) -> Plant:
    """The states after are those of another episode, elsewhere."""

    def plant(model: mujoco.MjModel, run: Run, state: int, random: np.random.Generator) -> Run:
        count = len(run["qpos"])
        other = record(model, count, seed=int(random.integers(1 << 31)))
        own, begin = np.arange(count) <= state, int(random.integers(count // 2, count - 1))
        rows = np.minimum(np.arange(count) - state - 1 + begin, count - 1)
        joined = {
            name: np.where(own.reshape(-1, *[1] * (values.ndim - 1)), values, other[name][rows])
            for name, values in run.items()
            if name in other and (has_time or name != "time")
        }
        if has_time:
            joined["time"][state + 1 :] -= joined["time"][state + 1]
        return _velocity(joined, state, joined["qvel"][state + 1])

    return plant


_W, _B, _H, _C, _M, _A = "workshop", "bench", "handle", "clutter", "humanoid", "arm"
FAULTS: dict[str, Fault] = {
    "Newton, 1 iteration": Fault(
        "not_converged", "NEWTON after 1 it", otherwise(few_iterations("NEWTON", 1)), (_C, _B, _M)
    ),
    "CG, 3 iterations": Fault(
        "not_converged", "after", otherwise(few_iterations("CG", 3)), (_W, _C, _B)
    ),
    "PGS, 2 iterations": Fault(
        "not_converged", "after", otherwise(few_iterations("PGS", 2)), (_W, _C, _B)
    ),
    "another iterate": Fault("not_converged", "%", another_iterate, (_C, _W)),
    "half of the friction": Fault(
        "friction", "times 0.5", otherwise(scaled("geom_friction", 0.5)), (_W, _C)
    ),
    "three times the friction": Fault(
        "friction", "times 3", otherwise(scaled("geom_friction", 3.0)), (_W, _C)
    ),
    "soft contacts": Fault(
        "compliance", "times 3", otherwise(scaled("geom_solref", 3.0)), (_W, _C, _B, _M)
    ),
    "contacts of less damping": Fault(
        "compliance", "solref[1]", otherwise(scaled("geom_solref", 3.0, 1)), (_W, _C)
    ),
    "time step": Fault(
        "time_step", "times that", otherwise(with_option("timestep", 0.003)), (_W, _B, _C)
    ),
    "limits of actuators": Fault(
        "actuator_limits", "without", otherwise(without_limits_of_actuators), (_W, _B)
    ),
    "actuation": Fault("actuation", "without", otherwise(with_flag("ACTUATION")), (_W, _B, _H, _A)),
    "limits": Fault("limits", "without", otherwise(with_flag("LIMIT")), (_W, _B, _M)),
    "equalities": Fault("equalities", "without", otherwise(with_flag("EQUALITY")), (_B, _H)),
    "friction loss": Fault(
        "friction_loss", "without", otherwise(with_flag("FRICTIONLOSS")), (_B, _H)
    ),
    "gravity": Fault("gravity", "without", otherwise(with_flag("GRAVITY")), (_W, _B, _C)),
    "springs": Fault("springs", "without", otherwise(with_flag("SPRING")), (_B, _H)),
    "dampers": Fault("damping", "without", otherwise(with_flag("DAMPER")), (_W, _B, _M)),
    "explicit damping": Fault(
        "damping", "explicit", otherwise(with_flag("EULERDAMP")), (_H, _M, _W)
    ),
    "implicit": Fault("integrator", "implicit", otherwise(with_integrator("IMPLICIT")), (_W, _M)),
    "Euler": Fault("integrator", "euler", otherwise(with_integrator("EULER")), (_A, _B)),
    "discrete": Fault(
        "integrator", "discrete", otherwise(with_integrator("DISCRETE")), (_W, _B, _M)
    ),
    "Runge and Kutta": Fault("integrator", "rk4", otherwise(with_integrator("RK4")), (_W, _B, _C)),
    "elliptic cones": Fault(
        "cone", "elliptic", otherwise(with_option("cone", mujoco.mjtCone.mjCONE_ELLIPTIC)), (_W, _C)
    ),
    "pyramids": Fault(
        "cone", "pyramidal", otherwise(with_option("cone", mujoco.mjtCone.mjCONE_PYRAMIDAL)), (_B,)
    ),
    "dropped pair": Fault("dropped_contacts", "without", dropped_pair, (_W, _C, _B)),
    "no contacts": Fault(
        "dropped_contacts", "without contacts", otherwise(with_flag("CONTACT")), (_W, _C, _M)
    ),
    "first rows": Fault("first_rows", "first ", first_rows, (_W, _C)),
    "first rows, recorded": Fault(
        "first_rows", "by the recorded", first_rows, (_W, _C, _B), has_contacts=True
    ),
    "lost pair": Fault("lost_pairs", "missing", lost_pair, (_W, _C, _M), has_contacts=True),
    "other points": Fault("collision", "exact on", other_points, (_W, _C, _M), has_contacts=True),
    "control lag": Fault(
        "control_lag", "ctrl of the state before", of_neighbor("ctrl", -1), (_W, _B, _A)
    ),
    "control lead": Fault(
        "control_lag", "ctrl of the state after", of_neighbor("ctrl", 1), (_W, _B)
    ),
    "lag of activations": Fault(
        "control_lag", "act of the state before", of_neighbor("act", -1), (_B, _H)
    ),
    **{
        f"lag of {name}": Fault(
            "input_lag", f"{name} of the state before", of_neighbor(name, -1), (_B, _H), pushed=True
        )
        for name in INPUTS
        if name not in ("act", "ctrl")
    },
    "other controls": Fault(
        "control", "other controls", recorded_otherwise("ctrl", other_controls), (_W, _B)
    ),
    "no controls": Fault(
        "control",
        "other controls",
        recorded_otherwise("ctrl", lambda model, *_: np.zeros(model.nu)),
        (_W, _B),
    ),
    "next_qvel of the state before": Fault(
        "off_by_one", "before", written(lambda run, k: run["next_qvel"][k - 1]), (_W, _C, _M)
    ),
    "next_qvel of the state after": Fault(
        "off_by_one", "after", written(lambda run, k: run["next_qvel"][k + 1]), (_W, _C, _M)
    ),
    "next_qvel is qvel": Fault(
        "off_by_one", "before the step", written(lambda run, k: run["qvel"][k]), (_W, _C)
    ),
    **{
        f"{count} steps": Fault(
            "several_steps", f"after {count} steps", several_steps(count), (_W, _B, _A)
        )
        for count in (2, 5, 20)
    },
    "fixed point": Fault(
        "rounding",
        "1/64",
        written(lambda run, k: np.round(run["next_qvel"][k] * 64) / 64),
        (_W, _C, _M),
    ),
    "float16": Fault(
        "rounding",
        "float16",
        written(lambda run, k: run["next_qvel"][k].astype(np.float16).astype(float)),
        (_W, _C, _M),
        tolerance=3e-5,
    ),
    "bfloat16": Fault("rounding", "bfloat16", written(in_bfloat16), (_W, _C, _M), tolerance=3e-4),
    "unknown force": Fault("unexplained", "no change", pulled, (_W, _C, _B)),
    "episode from qpos0": Fault(
        "reset", "qpos0", written(lambda run, k: np.zeros_like(run["next_qvel"][k])), (_W, _C, _M)
    ),
    "episode from a keyframe": Fault("reset", "keyframe 0", keyframe, (_B,)),
    "first step of an episode": Fault("reset", "a step from qpos0", step_from_start, (_W, _B, _M)),
    "time begins anew": Fault("reset", "time goes back", another_episode(True), (_W, _B, _C)),
    "positions jump": Fault("reset", "jump", another_episode(False), (_W, _C)),
}


def plant(fault: Fault, scene: str, seed: int, count: int) -> tuple[mujoco.MjModel, Run, set[int]]:
    """A model, a run of it with a fault in some of its states, and which these are.

    The fault is planted where its effect is at least twice the tolerance, on MuJoCo's contacts or
    on the recorded ones.
    """
    random = np.random.default_rng(seed)
    model, run = record_of(scene, seed, with_contacts=fault.has_contacts, pushed=fault.pushed)
    planted: set[int] = set()
    for state in sorted(
        random.choice(np.arange(2, STEPS - 2, 2), 5 * count, replace=False).tolist()
    ):
        spoiled = fault.plant(model, run, state, random)
        if spoiled is None or len(planted) == count:
            continue
        if _effect(model, spoiled, state) > 2 * fault.tolerance:
            run = spoiled
            planted.add(state)
    return model, run, planted


def _effect(model: mujoco.MjModel, run: Run, state: int) -> float:
    """The error of a state: the larger one of those on MuJoCo's and on the recorded contacts."""
    steps = [step_from(model, run, state)]
    if "contact_state" in run:
        own = run["contact_state"] == state
        recorded = {name: run[f"contact_{name}"][own] for name in CONTACT if name != "efc_address"}
        steps.append(step_with(model, run, state, recorded))
    return max(error_of(model, run, state, right) for right in steps)
