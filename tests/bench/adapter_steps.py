"""Measures the adapters against the simulators' own steps, from the same states.

During a simulation by the simulator, five times are measured in every step, in changing order:

    simulator   its whole step (`mj_step`, `Simulator.AdvanceTo`): kinematics, forces, collision,
                constraints, solve, integration
    problem     the adapter's `build_problem`, with the simulator's kinematics, forces, collision
    step        the adapter's `step` in a session of the solver in this process, on one thread
    one call    with MuJoCo, its `advance`
    message     the problem as bytes

Medians are printed as a table, with the medians of the ratios to the simulator's step, and the
geometric mean over MuJoCo's scenes of those of one call.

    build/python/bin/python tests/client/python/adapter_cost.py [--steps N] [SCENE...]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import mujoco
import numpy as np
import sap_islands as sap
import sap_islands.mujoco
from sap_islands.arrays import FloatArray
from sap_islands.problem import Problem
from sap_islands.scenes import load_scene

EXAMPLES = Path(__file__).resolve().parents[3] / "client" / "python" / "examples"
SETTLED_S = 0.5  # simulated before anything is measured
COLUMNS = (
    "scene",
    "contacts",
    "simulator [ms]",
    "problem [ms]",
    "ratio",
    "step [ms]",
    "ratio",
    "one call [ms]",
    "ratio",
    "message [ms]",
)


class Actions(NamedTuple):
    """What is called in every step.

    Attributes:
        copy_state: Gives the others the state of the simulator.
        simulator: The simulator's step.
        build: Builds the problem of the state.
        step: The adapter's step from the state.
        advance: The same in one call, if the adapter has one.
    """

    copy_state: Callable[[], None]
    simulator: Callable[[], None]
    build: Callable[[], Problem]
    step: Callable[[sap.Session], object]
    advance: Callable[[], object] | None


def mujoco_actions(model: mujoco.MjModel) -> Actions:
    """The actions of a MuJoCo model."""
    data, to_build, to_step, to_advance = (mujoco.MjData(model) for _ in range(4))
    while data.time < SETTLED_S:
        mujoco.mj_step(model, data)

    def copy_state() -> None:
        for copy in (to_build, to_step, to_advance):
            mujoco.mj_copyData(copy, model, data)

    return Actions(
        copy_state,
        lambda: mujoco.mj_step(model, data),
        lambda: sap_islands.mujoco.build_problem(model, to_build).problem,
        lambda session: sap_islands.mujoco.step(model, to_step, session),
        lambda: sap_islands.mujoco.advance(model, to_advance),
    )


def drake_actions(make: str, *arguments: int, **named: bool) -> Actions:
    """The actions of a Drake plant of the tests."""
    import sap_islands.drake
    from pydrake.systems.analysis import Simulator

    from support import drake_scenes

    scene = getattr(drake_scenes, make)(*arguments, **named)
    to_build, to_step = scene.copy(), scene.copy()
    plant = scene.plant
    simulator = Simulator(scene.diagram, scene.context)
    simulator.Initialize()
    simulator.AdvanceTo(SETTLED_S)

    def copy_state() -> None:
        # Setting positions and velocities invalidates the context's cache.
        state = plant.GetPositionsAndVelocities(scene.plant_context).copy()
        for copy in (to_build, to_step):
            plant.SetPositionsAndVelocities(copy.plant_context, state)

    return Actions(
        copy_state,
        lambda: simulator.AdvanceTo(scene.context.get_time() + drake_scenes.TIME_STEP),
        lambda: sap_islands.drake.build_problem(plant, to_build.plant_context).problem,
        lambda session: sap_islands.drake.step(plant, to_step.context, session),
        None,
    )


def robot(name: str) -> Actions:
    """A robot model from another package, see test_robots."""
    from test_robots import ROBOTS

    return mujoco_actions(ROBOTS[name]().compile())


def example(name: str) -> Actions:
    """The model of an example."""
    return mujoco_actions(mujoco.MjModel.from_xml_path(str(EXAMPLES / name)))


SCENES: dict[str, Callable[[], Actions]] = {
    "MuJoCo clutter 20": lambda: mujoco_actions(load_scene("clutter", 20)),
    "MuJoCo clutter 40": lambda: mujoco_actions(load_scene("clutter", 40)),
    "MuJoCo stacks 90": lambda: mujoco_actions(load_scene("stacks", 90)),
    "MuJoCo heaps 300": lambda: mujoco_actions(load_scene("heaps", 300)),
    "MuJoCo bin 160": lambda: mujoco_actions(load_scene("bin", 160)),
    "MuJoCo bin 300": lambda: mujoco_actions(load_scene("bin", 300)),
    "MuJoCo arm": lambda: example("arm.xml"),
    "MuJoCo humanoid": lambda: example("humanoid.xml"),
    "robosuite panda": lambda: robot("panda"),
    "Shadow hand": lambda: robot("shadow hand"),
    "dm_control humanoid": lambda: robot("humanoid"),
    "Drake clutter 20": lambda: drake_actions("clutter", 20),
    "Drake stacks 4 x 5": lambda: drake_actions("stacks", 4, 5),
    "Drake arm with gripper": lambda: drake_actions("arm_holding_box"),
    "Drake hydroelastic 12": lambda: drake_actions("clutter", 12, hydroelastic=True),
    "Drake hydroelastic stack": lambda: drake_actions("stacks", 1, 3, hydroelastic=True),
}


class Figures(NamedTuple):
    """What is measured in each of S steps.

    Attributes:
        contacts: [S] contacts of the problem.
        times: [S, 5] of simulator, problem, step, one call and message [s], or NaN.
    """

    contacts: FloatArray
    times: FloatArray


def measure(actions: Actions, steps: int, session: sap.Session) -> Figures:
    """Measures one scene."""
    figures = Figures(np.empty(steps), np.full((steps, 5), np.nan))
    timed = [actions.simulator, actions.build, lambda: actions.step(session)]
    if actions.advance is not None:
        timed.append(actions.advance)
    for i, times in enumerate(figures.times):
        actions.copy_state()
        results: list[object] = [None] * len(timed)
        for j in range(len(timed)):
            which = (i + j) % len(timed)
            times[which], results[which] = _timed(timed[which])
        problem = results[1]
        assert isinstance(problem, Problem)
        times[4], _ = _timed(problem.to_bytes)
        figures.contacts[i] = problem.num_contacts
    return figures


def _timed(action: Callable[[], object]) -> tuple[float, object]:
    started = time.perf_counter()
    result = action()
    return time.perf_counter() - started, result


def row(name: str, figures: Figures) -> str:
    """A scene's row of the table."""
    simulator, problem, step, one_call, message = 1e3 * np.median(figures.times, axis=0)
    of_problem, of_step, of_one_call = _ratios(figures)
    cells = (
        f"{name} | {np.median(figures.contacts):.0f} | {simulator:.3f} | {problem:.3f} "
        f"| {of_problem:.2g} | {step:.3f} | {of_step:.2g} "
        f"| {one_call:.3f} | {of_one_call:.2g} | {message:.3f}"
    )
    return f"| {cells.replace('nan', '')} |"


def _ratios(figures: Figures) -> FloatArray:
    """Medians of the ratios of problem, step and one call to the simulator's step."""
    return np.median(figures.times / figures.times[:, :1], axis=0)[1:4]


def main() -> None:
    """Prints a row for each scene."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("scenes", nargs="*", metavar="SCENE", help="a part of the name is enough")
    parser.add_argument("--steps", type=int, default=300)
    arguments = parser.parse_args()
    one_calls: list[float] = []
    print(f"| {' | '.join(COLUMNS)} |\n|---|" + "---:|" * (len(COLUMNS) - 1))
    with sap.connect("embedded:", threads=1) as client:
        for name in SCENES:
            if arguments.scenes and not any(part in name for part in arguments.scenes):
                continue
            try:
                actions = SCENES[name]()
            except (AssertionError, ImportError):
                print(f"{name}: skipped, its package is not installed")
                continue
            with client.session() as session:
                figures = measure(actions, arguments.steps, session)
            print(row(name, figures), flush=True)
            if actions.advance is not None:
                one_calls.append(_ratios(figures)[2])
    if one_calls:
        mean = np.exp(np.mean(np.log(one_calls)))
        print(f"One call, geometric mean of {len(one_calls)} scenes: {mean:.2f}")


if __name__ == "__main__":
    main()
