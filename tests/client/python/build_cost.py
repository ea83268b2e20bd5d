"""Measures the time to build a problem from Python, relative to a step of the simulator.

During a simulation, two times are measured from the same state in every step, in alternating order:
that of the simulator's whole step (`mj_step`, `Simulator.AdvanceTo`: kinematics, forces, collision,
constraints, solve, integration) and that of the adapter's `build_problem`, which includes the
simulator's kinematics, forces and collision. Medians are printed, and the median of the ratios.

    build/python/bin/python tests/client/python/build_cost.py [--steps N] [SCENE...]
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np
import sap_islands.mujoco
from sap_islands import messages
from sap_islands.problem import Problem
from sap_islands.scenes import load_scene

EXAMPLES = Path(__file__).resolve().parents[3] / "client" / "python" / "examples"
SETTLED_S = 0.5  # simulated before anything is measured

Steps = tuple[Callable[[], None], Callable[[], None], Callable[[], Problem]]


def mujoco_steps(model: mujoco.MjModel) -> Steps:
    """Functions that copy the simulator's state, take its step, and build the problem."""
    data, other = mujoco.MjData(model), mujoco.MjData(model)
    while data.time < SETTLED_S:
        mujoco.mj_step(model, data)

    def prepare() -> None:
        mujoco.mj_copyData(other, model, data)

    def build() -> Problem:
        return sap_islands.mujoco.build_problem(model, other).problem

    return prepare, lambda: mujoco.mj_step(model, data), build


def drake_steps(make: str, *arguments: int, hydroelastic: bool = False) -> Steps:
    """As `mujoco_steps`."""
    import sap_islands.drake
    from pydrake.systems.analysis import Simulator

    from support import drake_scenes

    if hydroelastic:
        scene = getattr(drake_scenes, make)(*arguments, hydroelastic=True)
    else:
        scene = getattr(drake_scenes, make)(*arguments)
    other = scene.copy()
    plant, context, other_context = scene.plant, scene.plant_context, other.plant_context
    simulator = Simulator(scene.diagram, scene.context)
    simulator.Initialize()
    simulator.AdvanceTo(SETTLED_S)

    def prepare() -> None:
        # Setting positions and velocities invalidates the context's cache.
        plant.SetPositionsAndVelocities(
            other_context, plant.GetPositionsAndVelocities(context).copy()
        )

    def step() -> None:
        simulator.AdvanceTo(scene.context.get_time() + drake_scenes.TIME_STEP)

    return prepare, step, lambda: sap_islands.drake.build_problem(plant, other_context).problem


def robot(name: str) -> mujoco.MjModel:
    """A robot model from another package, see test_robots."""
    from test_robots import ROBOTS

    return ROBOTS[name]().compile()


def example(name: str) -> mujoco.MjModel:
    """The model of an example."""
    return mujoco.MjModel.from_xml_path(str(EXAMPLES / name))


SCENES: dict[str, Callable[[], Steps]] = {
    "MuJoCo clutter 20": lambda: mujoco_steps(load_scene("clutter", 20)),
    "MuJoCo clutter 40": lambda: mujoco_steps(load_scene("clutter", 40)),
    "MuJoCo stacks 90": lambda: mujoco_steps(load_scene("stacks", 90)),
    "MuJoCo heaps 300": lambda: mujoco_steps(load_scene("heaps", 300)),
    "MuJoCo bin 300": lambda: mujoco_steps(load_scene("bin", 300)),
    "MuJoCo arm": lambda: mujoco_steps(example("arm.xml")),
    "MuJoCo humanoid": lambda: mujoco_steps(example("humanoid.xml")),
    "robosuite panda": lambda: mujoco_steps(robot("panda")),
    "Shadow hand": lambda: mujoco_steps(robot("shadow hand")),
    "dm_control humanoid": lambda: mujoco_steps(robot("humanoid")),
    "Drake clutter 20": lambda: drake_steps("clutter", 20),
    "Drake stacks 4 x 5": lambda: drake_steps("stacks", 4, 5),
    "Drake arm with gripper": lambda: drake_steps("arm_holding_box"),
    "Drake hydroelastic 12": lambda: drake_steps("clutter", 12, hydroelastic=True),
    "Drake hydroelastic stack": lambda: drake_steps("stacks", 1, 3, hydroelastic=True),
}


def measure(name: str, steps: int) -> str:
    """Measures one scene; returns its line of the table."""
    prepare, step, build = SCENES[name]()
    taken = np.empty((steps, 3))
    contacts = np.empty(steps)

    def timed(action: Callable[[], object]) -> tuple[float, object]:
        started = time.perf_counter()
        result = action()
        return time.perf_counter() - started, result

    for i in range(steps):
        prepare()
        if i % 2:
            taken[i, 0], _ = timed(step)
            taken[i, 1], problem = timed(build)
        else:
            taken[i, 1], problem = timed(build)
            taken[i, 0], _ = timed(step)
        assert isinstance(problem, Problem)
        taken[i, 2], _ = timed(functools.partial(messages.step_request, 1, problem, None))
        contacts[i] = problem.num_contacts
    simulator, build_time, message = 1e3 * np.median(taken, axis=0)
    ratio = np.median(taken[:, 1] / taken[:, 0])
    return (
        f"{np.median(contacts):8.0f} {simulator:10.3f} {build_time:10.3f} {message:12.3f} "
        f"{ratio:7.2f}  {name}"
    )


def main() -> None:
    """Prints a line for each scene."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("scenes", nargs="*", metavar="SCENE", help="a part of the name is enough")
    parser.add_argument("--steps", type=int, default=300)
    arguments = parser.parse_args()
    print(f"{'contacts':>8} {'step [ms]':>10} {'build [ms]':>10} {'message [ms]':>12} {'ratio':>7}")
    for name in SCENES:
        if not arguments.scenes or any(part in name for part in arguments.scenes):
            try:
                print(measure(name, arguments.steps), flush=True)
            except (AssertionError, ImportError) as error:
                print(f"{name}: skipped, since its package is not installed ({error})")


if __name__ == "__main__":
    main()
