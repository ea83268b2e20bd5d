"""Rollouts of many environments by this solver and by MuJoCo, on one core and on several.

    rollouts.py ours|MuJoCo SCENE BODIES

prints environment steps per second, of the fastest of some rollouts from the same states. Both
sides use every processor of the process; `rows` runs it under taskset.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import mujoco
import numpy as np
import sap_islands as sap
import sap_islands.mujoco
from mujoco.rollout import rollout as mujoco_rollout
from sap_islands.scenes import load_scene

TITLE = "Rollouts: environment steps per second, medians over runs in turn"
COLUMNS = (
    "scene;environments;cores;ours;ours, of one core;MuJoCo;MuJoCo, of one core;ours / MuJoCo"
)
SCENES = {
    "clutter of 20": ("clutter", 20),
    "clutter of 40": ("clutter", 40),
    "stacks of 20": ("stacks", 20),
}
ENVIRONMENTS, STEPS = 64, 20
SETTLE = 60  # steps of MuJoCo before the first that is timed
REPEATS, ROUNDS = 5, 7
SIDES = ("ours", "MuJoCo")
STATE = mujoco.mjtState.mjSTATE_FULLPHYSICS


def rows(name: str, library: Path, threads: int) -> Iterator[list[object]]:
    """A row for one core and one for `threads`; the runs of a round are in turn."""
    processors = sorted(os.sched_getaffinity(0))[:threads]
    chosen = {count: ",".join(map(str, processors[-count:])) for count in {1, len(processors)}}
    rates: dict[tuple[str, int], list[float]] = {}
    for _ in range(ROUNDS):
        for side in SIDES:
            for count, processor_list in chosen.items():
                command = ["taskset", "--cpu-list", processor_list, sys.executable, __file__]
                output = subprocess.run(
                    [*command, side, *map(str, SCENES[name])],
                    env={**os.environ, "SAP_LIBRARY": str(library)},
                    check=True,
                    stdout=subprocess.PIPE,
                ).stdout
                rates.setdefault((side, count), []).append(float(output))
    for count in chosen:
        row: list[object] = [ENVIRONMENTS, count]
        for side in SIDES:
            row.append(round(statistics.median(rates[side, count])))
            row.append(median_ratio(rates[side, count], rates[side, 1]))
        yield [*row, median_ratio(rates["ours", count], rates["MuJoCo", count])]


def median_ratio(some: list[float], others: list[float]) -> str:
    return f"{statistics.median(a / b for a, b in zip(some, others)):.2f}"


def states(model: mujoco.MjModel, count: int = ENVIRONMENTS) -> np.ndarray:
    """States of bodies that pile up, different in every environment."""
    random = np.random.default_rng(1)
    found = np.empty((count, mujoco.mj_stateSize(model, STATE)))
    data = mujoco.MjData(model)
    for state in found:
        mujoco.mj_resetData(model, data)
        data.qvel[:] = random.normal(scale=0.1, size=model.nv)
        for _ in range(SETTLE):
            mujoco.mj_step(model, data)
        mujoco.mj_getState(model, data, state, STATE)
    return found


def least_s(run: Callable[[], object]) -> float:
    run()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def steps_per_s(side: str, scene: str, bodies: int) -> float:
    model = load_scene(scene, bodies)
    initial = states(model)
    if side == "MuJoCo":
        data = [mujoco.MjData(model) for _ in os.sched_getaffinity(0)]
        seconds = least_s(lambda: mujoco_rollout(model, data, initial, nstep=STEPS))
    else:
        threads = len(os.sched_getaffinity(0))
        seconds = least_s(
            lambda: sap.mujoco.rollout(model, initial, None, nstep=STEPS, threads=threads)
        )
    return ENVIRONMENTS * STEPS / seconds


if __name__ == "__main__":
    print(steps_per_s(sys.argv[1], sys.argv[2], int(sys.argv[3])))
