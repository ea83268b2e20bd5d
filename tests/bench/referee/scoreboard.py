"""Judges the steps of all engines and prints a table.

    scoreboard.py CORPUS RUNS

Error and causes are the referee's, under MuJoCo's law. Penetration and unexplained momentum need no
law, so that they are fair to engines with another one: the deepest overlap after the step, and the
part of the momentum of the constraints that no pushing forces within the friction cones give.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import mujoco
import numpy as np
import sap_islands as sap
from sap_islands.referee.counterfactuals import Trial
from sap_islands.referee.exact_steps import ExactSteps
from sap_islands.referee.run_reader import read_runs

import corpus

TOLERANCE = 1e-3
EXACT = "MuJoCo Newton 1e-15"
REPEATS = 5  # of a run whose judging is timed
EVERY = 4  # of the states have their unexplained momentum computed


def penetration(model: mujoco.MjModel, run: dict[str, np.ndarray]) -> np.ndarray:
    """Deepest overlap after each step [mm]."""
    data, depths = mujoco.MjData(model), []
    for qpos, velocity in zip(run["qpos"], run["next_qvel"], strict=True):
        data.qpos[:] = qpos
        mujoco.mj_integratePos(model, data.qpos, velocity.astype(float), model.opt.timestep)
        mujoco.mj_fwdPosition(model, data)
        depths.append(-1e3 * data.contact.dist.min() if data.ncon else 0.0)
    return np.maximum(depths, 0.0)


def unexplained(model: mujoco.MjModel, path: Path, client: sap.Client) -> np.ndarray:
    """Part of the momentum of the constraints that no admissible forces give."""
    steps = ExactSteps(model)
    (run,) = read_runs(steps.model, [path], None, False)
    states = (run.state(number) for number in run.chosen[::EVERY].tolist())
    return np.array(
        [Trial(steps, client, state, TOLERANCE).unexplained_momentum() for state in states]
    )


def states_per_second(model: mujoco.MjModel, path: Path) -> float:
    """States of a run that one core judges in a second of its time."""
    with np.load(path) as arrays:
        run = {name: np.concatenate([values] * REPEATS) for name, values in arrays.items()}
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        sap.certify(model, run, diagnose=0, threads=1)
        times.append(time.process_time() - start)
    return len(run["qpos"]) / min(times)


class Score(NamedTuple):
    """What the tables show of the steps of an engine in a scene."""

    error: str
    causes: list[str]
    penetration: str
    unexplained: str


def judge(model: mujoco.MjModel, path: Path, client: sap.Client) -> Score:
    """The score of a run; the report is written next to it."""
    verdict = sap.certify(model, path, tolerance=TOLERANCE, diagnose=20)
    path.with_suffix(".json").write_text(json.dumps(verdict.to_json(), indent=1))
    with np.load(path) as arrays:
        depth = penetration(model, dict(arrays))
    left = unexplained(model, path, client)
    above = 100 * verdict.above / verdict.states
    return Score(
        f"{np.median(verdict.error):.0e} / {verdict.error.max():.0e} / {above:.1f}",
        [name for name in verdict.causes if name != "undiagnosed"],
        f"{np.median(depth):.1f} / {depth.max():.1f}",
        f"{np.median(left):.0e} / {left.max():.0e}",
    )


def main() -> None:
    directory, runs = map(Path, sys.argv[1:3])
    scenes = {name: model for name, model, _ in corpus.states(directory)}
    engines = sorted(path for path in runs.iterdir() if path.is_dir())
    with sap.connect("embedded:") as client:
        scores = {
            engine.name: {
                name: judge(model, path, client)
                for name, model in scenes.items()
                if (path := engine / f"{name}.npz").exists()
            }
            for engine in engines
        }
    print(f"| median / largest error / % above {TOLERANCE:g} | {' | '.join(scenes)} | causes |")
    print("|---" * (len(scenes) + 2) + "|")
    for engine, of_scenes in scores.items():
        cells = [of_scenes[name].error if name in of_scenes else "" for name in scenes]
        causes = Counter(name for score in of_scenes.values() for name in score.causes)
        listed = ", ".join(name for name, _ in causes.most_common(2))
        print(f"| {engine} | {' | '.join(cells)} | {listed} |")
    columns = [f"{name}: {what}" for name in corpus.FREE for what in ("mm", "unexplained")]
    print(f"\n| median / largest | {' | '.join(columns)} |")
    print("|---" * (len(columns) + 1) + "|")
    for engine, of_scenes in scores.items():
        cells = [
            cell
            for name in corpus.FREE
            for cell in (of_scenes[name].penetration, of_scenes[name].unexplained)
        ]
        print(f"| {engine} | {' | '.join(cells)} |")
    speeds = [
        states_per_second(model, runs / EXACT / f"{name}.npz") for name, model in scenes.items()
    ]
    print(f"\n| | {' | '.join(scenes)} |")
    print("|---" * (len(scenes) + 1) + "|")
    print(f"| states judged in a second | {' | '.join(f'{each:.2g}' for each in speeds)} |")


if __name__ == "__main__":
    main()
