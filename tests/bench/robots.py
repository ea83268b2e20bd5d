"""Published robots with all their constraints, stepped by MuJoCo, as problems of this solver.

Limits, equalities, friction loss, tendons and contacts become rows and contacts as MuJoCo has
assembled them, by the adapter of the Python client.
"""

from __future__ import annotations

import functools
import importlib.util
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
from sap_islands.mujoco import build_problem
from sap_islands.problem import Problem

from replaced_stage import stage_of

HAND = "gymnasium_robotics/envs/assets/hand/manipulate_block.xml"
FETCH = "gymnasium_robotics/envs/assets/fetch/pick_and_place.xml"
ADROIT = "gymnasium_robotics/envs/assets/adroit_hand/adroit_relocate.xml"
KITCHEN = "gymnasium_robotics/envs/assets/kitchen_franka/kitchen_assets/kitchen_env_model.xml"

CONTROL_STEPS = 20  # a random control is held so long


@dataclass
class Robot:
    file: str  # in a package
    control: float = 0.5  # share of the range of the random controls
    settle: int = 100  # steps before the first that is timed


ROBOTS = {
    "Shadow hand, block": Robot(HAND),
    "Adroit hand, ball": Robot(ADROIT),
    "humanoid": Robot("dm_control/suite/humanoid.xml", settle=400),
    "humanoid CMU": Robot("dm_control/suite/humanoid_CMU.xml", settle=400),
    "quadruped": Robot("dm_control/suite/quadruped.xml", settle=200),
    "dog": Robot("dm_control/suite/dog.xml", settle=200),
    "Panda, kitchen": Robot(KITCHEN, control=0.1),
    "Fetch arm": Robot(FETCH, control=0.1),
}
CONES = {"pyramidal": mujoco.mjtCone.mjCONE_PYRAMIDAL, "elliptic": mujoco.mjtCone.mjCONE_ELLIPTIC}


def path_of(robot: Robot) -> Path:
    package, name = robot.file.split("/", 1)
    spec = importlib.util.find_spec(package)  # imports neither the package nor what it depends on
    return Path(spec.submodule_search_locations[0]) / name


def load(name: str, cone: str) -> mujoco.MjModel:
    """The model as it is published, with MuJoCo's Newton solver and the cone that is asked for."""
    model = mujoco.MjModel.from_xml_path(str(path_of(ROBOTS[name])))
    model.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    model.opt.cone = CONES[cone]
    model.opt.noslip_iterations = 0  # another problem, solved after this one
    if model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4:  # solves four problems a step
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
    return model


def controls(model: mujoco.MjModel, robot: Robot, steps: int) -> np.ndarray:
    low, high = model.actuator_ctrlrange.T
    limited = model.actuator_ctrllimited.astype(bool)
    middle = np.where(limited, np.clip(0.0, low, high), 0.0)
    reach = robot.control * np.where(limited, (high - low) / 2, 1.0)
    random = np.random.default_rng(1)
    held = middle + reach * random.uniform(-1, 1, (steps // CONTROL_STEPS + 1, model.nu))
    return np.repeat(held, CONTROL_STEPS, axis=0)[:steps]


def assemble(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """The stages of mj_step before its constraint solver."""
    mujoco.mj_fwdPosition(model, data)
    mujoco.mj_fwdVelocity(model, data)
    mujoco.mj_fwdActuation(model, data)
    mujoco.mj_fwdAcceleration(model, data)


def advance(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """The stages after it."""
    if model.opt.integrator == mujoco.mjtIntegrator.mjINT_EULER:
        mujoco.mj_Euler(model, data)
    else:
        mujoco.mj_implicit(model, data)


def states(name: str, model: mujoco.MjModel, count: int, every: int) -> Iterator[mujoco.MjData]:
    """`count` states of a motion with random controls, assembled, not solved."""
    robot, data = ROBOTS[name], mujoco.MjData(model)
    for step, control in enumerate(controls(model, robot, robot.settle + count * every)):
        data.ctrl[:] = control
        assemble(model, data)
        if step >= robot.settle and (step - robot.settle) % every == 0 and data.nefc > 0:
            yield data
        mujoco.mj_fwdConstraint(model, data)
        advance(model, data)


@dataclass
class Stage:
    """MuJoCo's constraint stage."""

    seconds: float
    iterations: int  # largest of its islands
    velocity: np.ndarray  # v_0 + dt a


def constraint_stage(
    model: mujoco.MjModel, data: mujoco.MjData, run: Callable[[], None] | None = None
) -> Stage:
    """Runs mj_fwdConstraint, or what takes its place; the state is then as before."""
    run = run or functools.partial(mujoco.mj_fwdConstraint, model, data)
    warm_start = data.qacc_warmstart.copy()
    start = time.perf_counter()
    run()
    seconds = time.perf_counter() - start
    data.qacc_warmstart[:] = warm_start
    islands = min(max(1, int(data.nisland)), len(data.solver_niter))
    velocity = data.qvel + model.opt.timestep * data.qacc
    return Stage(seconds, int(data.solver_niter[:islands].max()), velocity)


def stages_in_turn(name: str, model: mujoco.MjModel, steps: int = 150) -> tuple[float, float]:
    """Seconds of MuJoCo's constraint stage and of this solver in its place.

    Least of the medians of three motions each, in turn, since the speed of a machine changes.
    """
    motions = [
        [stage_seconds(name, model, steps, replaced) for replaced in (False, True)]
        for _ in range(3)
    ]
    theirs, ours = zip(*motions)
    return min(theirs), min(ours)


def stage_seconds(name: str, model: mujoco.MjModel, steps: int, replaced: bool) -> float:
    """Median of the constraint stages of a motion, each right after MuJoCo's others of its step."""
    robot, data = ROBOTS[name], mujoco.MjData(model)
    run = stage_of(model, data) if replaced else None
    seconds = []
    for control in controls(model, robot, robot.settle + steps):
        data.ctrl[:] = control
        assemble(model, data)
        if data.nefc > 0:
            seconds.append(constraint_stage(model, data, run).seconds)
        mujoco.mj_fwdConstraint(model, data)
        advance(model, data)
    return statistics.median(seconds[-steps:])


def converged_velocity(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """MuJoCo's answer where its solver runs to round-off."""
    names = ("tolerance", "ls_tolerance", "iterations", "ls_iterations")
    kept = {name: getattr(model.opt, name) for name in names}
    for name, value in zip(names, (0.0, 1e-12, 200, 200)):
        setattr(model.opt, name, value)
    velocity = constraint_stage(model, data).velocity
    for name, value in kept.items():
        setattr(model.opt, name, value)
    return velocity


def distance(model: mujoco.MjModel, data: mujoco.MjData, v: np.ndarray, best: np.ndarray) -> float:
    """|v - best|_M over the largest of |v_0|_M and |dt a_smooth|_M."""

    def norm(velocity: np.ndarray) -> float:
        momentum = np.zeros(model.nv)
        mujoco.mj_mulM(model, data, momentum, velocity)
        return float(np.sqrt(max(0.0, velocity @ momentum)))

    scale = max(norm(data.qvel.copy()), norm(model.opt.timestep * data.qacc_smooth), 1e-12)
    return norm(v - best) / scale


def problem_of(model: mujoco.MjModel, data: mujoco.MjData) -> Problem:
    """The problem that mj_fwdConstraint solves in this state, and from where it starts."""
    return build_problem(model, data, law="mujoco").problem
