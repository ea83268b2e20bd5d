#!/usr/bin/env python3
"""What Python adds to a step: the same steps by the C library alone, embedded, and by a server.

  tests/bench/embedded_steps.py [STEPS]         in an environment with sap_islands (tests/python.sh)

Steps of 21 contacts (tests/data/clutter_bin_8_t2p00.json, from its guess) whose free-motion
velocities change from step to step, as sessions on one thread. Every step is taken three times in
turn, so that a noisy machine slows all three; times are medians.
"""

import pathlib
import sys
import time

import numpy as np
import sap_islands as sap
from sap_islands import problem_files
from sap_islands._library.c_structs import ProblemBlock

ROOT = pathlib.Path(__file__).resolve().parents[2]
WARM_UP = 50


def make_problem():
    """The problem with arrays of its own: those of a file are read-only."""
    problem = problem_files.load_problem(ROOT / "tests/data/clutter_bin_8_t2p00.json")
    for group in (problem.trees, problem.contacts):
        for name, value in list(vars(group).items()):
            if isinstance(value, np.ndarray) and value.size:
                setattr(group, name, value.copy())
    return problem


class LibraryStep:
    """A step by the C library: the arrays are known, and nobody reads the answer."""

    def __init__(self, client):
        self._solver = client._solver._solver  # the sap_solver of the C library
        self._library = self._solver.library
        self._session = self._solver.open_session()
        self._answer = self._solver.answer()
        self._block = ProblemBlock()

    def prepare(self, problem):
        self._block.fill(problem)

    def __call__(self):
        self._library.sap_session_step(
            self._session, self._block.address, None, None, self._answer.handle)


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    problem = make_problem()
    v_star = problem.trees.free_motion_velocity
    random = np.random.default_rng(0)
    times = {"C library": [], "embedded:": [], "embedded:process": []}
    with (sap.connect("embedded:", threads=1) as inside,
          sap.connect("embedded:process", server_arguments=("--threads", "1")) as outside,
          inside.session() as one, outside.session() as other):
        library_step = LibraryStep(inside)
        for step in range(WARM_UP + steps):
            problem.trees.free_motion_velocity = v_star + random.uniform(-0.02, 0.02, v_star.size)
            library_step.prepare(problem)
            calls = {
                "C library": library_step,
                "embedded:": lambda: one.step(problem).velocity,
                "embedded:process": lambda: other.step(problem).velocity,
            }
            for name, call in calls.items():
                start = time.perf_counter()
                call()
                if step >= WARM_UP:
                    times[name].append(time.perf_counter() - start)
    medians = {name: float(np.median(values)) for name, values in times.items()}
    print("| step of 21 contacts | us | ratio |\n|---|---|---|")
    for name, median in medians.items():
        print(f"| `{name}` | {1e6 * median:.1f} | {median / medians['C library']:.2f} |")


if __name__ == "__main__":
    main()
