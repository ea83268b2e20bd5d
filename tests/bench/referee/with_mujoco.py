"""One step of MuJoCo from each state of the corpus, by its three solvers.

with_mujoco.py CORPUS RUNS
"""

from __future__ import annotations

import sys
from pathlib import Path

import mujoco
import numpy as np

import corpus

# Solver, iterations and tolerance; None: those of the model.
ENGINES = {
    "MuJoCo Newton 1e-15": ("NEWTON", 100, 1e-15),
    "MuJoCo Newton": ("NEWTON", None, None),
    "MuJoCo Newton, 2 iterations": ("NEWTON", 2, 0.0),
    "MuJoCo CG": ("CG", None, None),
    "MuJoCo CG, 20 iterations": ("CG", 20, 0.0),
    "MuJoCo CG, 5 iterations": ("CG", 5, 0.0),
    "MuJoCo PGS": ("PGS", None, None),
    "MuJoCo PGS, 20 iterations": ("PGS", 20, 0.0),
}


def main() -> None:
    directory, runs = map(Path, sys.argv[1:3])
    for scene, model, arrays in corpus.states(directory):
        former = model.opt.iterations, model.opt.tolerance
        for engine, (solver, iterations, tolerance) in ENGINES.items():
            model.opt.solver = getattr(mujoco.mjtSolver, f"mjSOL_{solver}")
            model.opt.iterations = former[0] if iterations is None else iterations
            model.opt.tolerance = former[1] if tolerance is None else tolerance
            data = mujoco.MjData(model)
            velocities = []
            for row in range(len(arrays["qpos"])):
                for name in corpus.INPUTS:
                    getattr(data, name)[:] = arrays[name][row]
                mujoco.mj_step(model, data)
                velocities.append(data.qvel.copy())
            corpus.save_run(runs, engine, scene, arrays, np.array(velocities))


if __name__ == "__main__":
    main()
