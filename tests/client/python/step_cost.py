"""Measures a step with the service's contacts and constraints against the simulator's own.

During a simulation by the simulator, two times are measured from the same state in every step, in
alternating order: that of its own step (`mj_step`, `Simulator.AdvanceTo`), and that of
`sap_islands.mujoco.step` or `sap_islands.drake.step` in a session of an embedded server. Medians
are printed as a table, and the median of the ratios, ours to the simulator's.

    build/python/bin/python tests/client/python/step_cost.py [--steps N] [SCENE...]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import NamedTuple

import mujoco
import numpy as np
import sap_islands as sap
import sap_islands.mujoco
from sap_islands.scenes import load_scene

from build_cost import SETTLED_S, example, robot


class Steps(NamedTuple):
    """What is called in every step.

    Attributes:
        prepare: Copies the state of the simulator.
        simulator: The simulator's step.
        ours: The step of the copy; returns the number of its contacts.
    """

    prepare: Callable[[], None]
    simulator: Callable[[], None]
    ours: Callable[[sap.Session], int]


def mujoco_steps(model: mujoco.MjModel) -> Steps:
    """The steps of a MuJoCo model."""
    data, other = mujoco.MjData(model), mujoco.MjData(model)
    while data.time < SETTLED_S:
        mujoco.mj_step(model, data)

    def ours(session: sap.Session) -> int:
        return sap_islands.mujoco.step(model, other, session)[0].problem.num_contacts

    return Steps(
        lambda: mujoco.mj_copyData(other, model, data),
        lambda: mujoco.mj_step(model, data),
        ours,
    )


def drake_steps(make: str, *arguments: int) -> Steps:
    """The steps of a Drake plant of the tests."""
    import sap_islands.drake
    from pydrake.systems.analysis import Simulator

    from support import drake_scenes

    scene = getattr(drake_scenes, make)(*arguments)
    other = scene.copy()
    simulator = Simulator(scene.diagram, scene.context)
    simulator.Initialize()
    simulator.AdvanceTo(SETTLED_S)

    def prepare() -> None:
        state = scene.plant.GetPositionsAndVelocities(scene.plant_context).copy()
        scene.plant.SetPositionsAndVelocities(other.plant_context, state)

    def ours(session: sap.Session) -> int:
        taken = sap_islands.drake.step(scene.plant, other.context, session)
        return taken.built.problem.num_contacts

    return Steps(
        prepare,
        lambda: simulator.AdvanceTo(scene.context.get_time() + drake_scenes.TIME_STEP),
        ours,
    )


SCENES: dict[str, Callable[[], Steps]] = {
    "MuJoCo clutter 20": lambda: mujoco_steps(load_scene("clutter", 20)),
    "MuJoCo clutter 40": lambda: mujoco_steps(load_scene("clutter", 40)),
    "MuJoCo stacks 90": lambda: mujoco_steps(load_scene("stacks", 90)),
    "MuJoCo heaps 300": lambda: mujoco_steps(load_scene("heaps", 300)),
    "MuJoCo bin 160": lambda: mujoco_steps(load_scene("bin", 160)),
    "MuJoCo bin 300": lambda: mujoco_steps(load_scene("bin", 300)),
    "MuJoCo arm": lambda: mujoco_steps(example("arm.xml")),
    "MuJoCo humanoid": lambda: mujoco_steps(example("humanoid.xml")),
    "robosuite panda": lambda: mujoco_steps(robot("panda")),
    "Shadow hand": lambda: mujoco_steps(robot("shadow hand")),
    "Drake clutter 20": lambda: drake_steps("clutter", 20),
    "Drake stacks 4 x 5": lambda: drake_steps("stacks", 4, 5),
    "Drake arm with gripper": lambda: drake_steps("arm_holding_box"),
}


def measure(name: str, steps: int, session: sap.Session) -> str:
    """Measures one scene; returns its row of the table."""
    scene = SCENES[name]()
    taken = np.empty((steps, 2))
    contacts = np.empty(steps)
    for i in range(steps):
        scene.prepare()
        for which in (0, 1) if i % 2 else (1, 0):
            started = time.perf_counter()
            if which == 0:
                scene.simulator()
            else:
                contacts[i] = scene.ours(session)
            taken[i, which] = time.perf_counter() - started
    simulator, ours = 1e3 * np.median(taken, axis=0)
    ratio = np.median(taken[:, 1] / taken[:, 0])
    return f"| {name} | {np.median(contacts):.0f} | {simulator:.3f} | {ours:.3f} | {ratio:.2g} |"


def main() -> None:
    """Prints a line for each scene."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("scenes", nargs="*", metavar="SCENE", help="a part of the name is enough")
    parser.add_argument("--steps", type=int, default=200)
    arguments = parser.parse_args()
    print("| scene | contacts | simulator [ms] | ours [ms] | ratio |\n|---|---:|---:|---:|---:|")
    with sap.connect("embedded:", threads=1) as client:
        for name in SCENES:
            if not arguments.scenes or any(part in name for part in arguments.scenes):
                try:
                    with client.session() as session:
                        print(measure(name, arguments.steps, session), flush=True)
                except (AssertionError, ImportError) as error:
                    print(f"| {name} | skipped, its package is not installed {error} | | | |")


if __name__ == "__main__":
    main()
