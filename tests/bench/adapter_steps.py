"""Steps of the adapters against the simulators' own, from the same states.

During a simulation by the simulator, five times are measured in every step, in changing order:

    simulator   its whole step (`mj_step`, `Simulator.AdvanceTo`): kinematics, forces, collision,
                constraints, solve, integration
    problem     the adapter's `build_problem`, with the simulator's kinematics, forces, collision
    step        the adapter's `step` in a session of the solver in this process, on one thread
    one call    with MuJoCo, its `advance`
    message     the problem as bytes
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import mujoco
import numpy as np
import robots
import sap_islands as sap
import sap_islands.mujoco
from sap_islands.arrays import FloatArray
from sap_islands.problem import Problem
from sap_islands.scenes import load_scene

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLES = REPOSITORY / "client" / "python" / "examples"
TESTS = REPOSITORY / "tests" / "client" / "python"
SETTLED_S = 0.5  # simulated before anything is measured
STEPS = 300
TITLE = "Steps of the adapters: medians [ms], and medians of the ratios to the simulator's step"
COLUMNS = (
    "scene;contacts;simulator ms;problem ms;ratio;step ms;ratio;one call ms;ratio of one call;"
    "message ms"
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

    if str(TESTS) not in sys.path:
        sys.path.append(str(TESTS))
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
    "MuJoCo Shadow hand": lambda: mujoco_actions(robots.load("Shadow hand, block", "pyramidal")),
    "MuJoCo dog": lambda: mujoco_actions(robots.load("dog", "pyramidal")),
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


def rows(name: str, library: Path, threads: int) -> Iterator[list[object]]:
    """The row of a scene; a step is on one thread."""
    del library, threads
    with sap.connect("embedded:", threads=1) as client, client.session() as session:
        figures = measure(SCENES[name](), STEPS, session)
    simulator, problem, step, one_call, message = np.median(1e3 * figures.times, axis=0)
    ratios = np.median(figures.times / figures.times[:, :1], axis=0)
    pairs = ((problem, ratios[1]), (step, ratios[2]), (one_call, ratios[3]))
    row: list[object] = [round(np.median(figures.contacts)), f"{simulator:.3f}"]
    for milliseconds, ratio in pairs:
        row += ["", ""] if np.isnan(ratio) else [f"{milliseconds:.3f}", f"{ratio:.2g}"]
    yield [*row, f"{message:.3f}"]
