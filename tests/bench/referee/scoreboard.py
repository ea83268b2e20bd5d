"""Judges the steps of all engines and prints a table.

    scoreboard.py CORPUS RUNS

Error and causes are the referee's, under MuJoCo's law. Penetration and unexplained momentum need no
law, so that they are fair to engines with another one: the deepest overlap after the step, and the
part of the momentum of the constraints that no pushing forces within the friction cones give.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import mujoco
import numpy as np
import sap_islands as sap
from sap_islands.referee.counterfactuals import Trial
from sap_islands.referee.exact_steps import ExactSteps
from sap_islands.referee.run_reader import read_runs

import corpus

TOLERANCE = 1e-3
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


def line(engine: str, name: str, model: mujoco.MjModel, path: Path, client: sap.Client) -> str:
    """A row of the table; the report is written next to the run."""
    verdict = sap.certify(model, path, tolerance=TOLERANCE, diagnose=20, client=client)
    path.with_suffix(".json").write_text(json.dumps(verdict.to_json(), indent=1))
    with np.load(path) as arrays:
        depth = penetration(model, dict(arrays))
    left = unexplained(model, path, client)
    causes = {name: n for name, n in verdict.causes.items() if name != "undiagnosed"}
    return (
        f"| {engine} | {name} | {np.median(verdict.error):.0e} | {verdict.error.max():.0e} "
        f"| {100 * verdict.above / verdict.states:.0f} "
        f"| {', '.join(list(causes)[:2])} "
        f"| {np.median(depth):.1f} / {depth.max():.1f} | {np.median(left):.0e} / {left.max():.0e} |"
    )


def main() -> None:
    directory, runs = map(Path, sys.argv[1:3])
    print(
        "| engine | scene | median error | largest | % above 1e-3 | main causes "
        "| penetration [mm] | unexplained momentum |"
    )
    print("|---|---|---:|---:|---:|---|---:|---:|")
    scenes = {name: model for name, model, _ in corpus.states(directory)}
    with sap.connect("embedded:") as client:
        for engine in sorted(path for path in runs.iterdir() if path.is_dir()):
            for name, model in scenes.items():
                path = engine / f"{name}.npz"
                if path.exists():
                    print(line(engine.name, name, model, path, client), flush=True)


if __name__ == "__main__":
    main()
