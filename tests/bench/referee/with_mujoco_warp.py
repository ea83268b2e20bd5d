"""One step of mujoco-warp from each state of the corpus, each in a world of its own.

with_mujoco_warp.py CORPUS RUNS
"""

from __future__ import annotations

import sys
from pathlib import Path

import mujoco_warp as mjw
import numpy as np
import warp as wp

import corpus

sys.path.insert(0, str(corpus.EXAMPLES))
from record_mujoco_warp import Recorder

WORLDS = 50  # at once
# Iterations of the solver (None: those of the model), and rows of a world.
ENGINES = {
    "mujoco-warp": (None, 2000),
    "mujoco-warp, 3 iterations": (3, 2000),
    "mujoco-warp, 64 rows": (None, 64),
}


def main() -> None:
    directory, runs = map(Path, sys.argv[1:3])
    wp.config.quiet = True
    for scene, model, arrays in corpus.states(directory):
        former = model.opt.iterations
        for engine, (iterations, njmax) in ENGINES.items():
            model.opt.iterations = former if iterations is None else iterations
            recorder = Recorder(WORLDS)
            on_device = mjw.put_model(model)
            on_device.opt.warn_overflow = 0
            for first in range(0, corpus.STATES, WORLDS):
                data = mjw.make_data(model, nworld=WORLDS, nconmax=300, njmax=njmax)
                for name in corpus.INPUTS:
                    values = arrays[name][first : first + WORLDS].astype(np.float32)
                    if values.size:
                        wp.copy(getattr(data, name), wp.array(values, dtype=float))
                mjw.step(on_device, data)
                recorder.after(data)
            rows = {name: np.concatenate(each) for name, each in recorder.rows.items()}
            velocities = rows.pop("next_qvel")
            corpus.save_run(runs, engine, scene, arrays, velocities, rows)


if __name__ == "__main__":
    main()
