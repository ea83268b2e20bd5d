#!/usr/bin/env python3
"""What Python adds to a step: the same steps by the C library alone and through the package, in
this process and at a server on a Unix socket, blocking and awaited.

  tests/bench/embedded_steps.py [STEPS]         in an environment with sap_islands (tests/python.sh)

Steps of 21 contacts (tests/data/clutter_bin_8_t2p00.json, from its guess) whose free-motion
velocities change from step to step, as sessions on one thread. Every step is taken in each way in
turn, so that a noisy machine slows all of them; times are medians. `client_steps` compares the C
library with the client for C++.
"""

import asyncio
import pathlib
import sys
import time

import numpy as np
import sap_islands as sap
import sap_islands.aio
from sap_islands import problem_files
from sap_islands._library.c_structs import ProblemBlock
from sap_islands._library.native_session import SessionHandle, SessionSettings

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
        self._client = client._solver._client
        self._library = self._client.library
        self._session = SessionHandle(self._client, SessionSettings(None, None, None, False))
        self._answer = self._client.answer()
        self._block = ProblemBlock()

    def prepare(self, problem):
        self._block.fill(problem)

    async def __call__(self):
        self._library.sap_session_step(
            self._session._handle, self._block.address, None, None, self._answer.handle)


def blocking(session, problem):
    async def step():
        return session.step(problem).velocity
    return step


async def measure(steps):
    """Times of each way to take a step [s], all of them in turn."""
    problem = make_problem()
    v_star = problem.trees.free_motion_velocity
    random = np.random.default_rng(0)
    with (sap.connect("embedded:", threads=1) as inside,
          sap.connect("embedded:process", server_arguments=("--threads", "1")) as outside):
        async with sap.aio.connect(outside.address) as awaited, awaited.session() as third:
            own, remote = LibraryStep(inside), LibraryStep(outside)
            first, second = inside.session(), outside.session()
            calls = {
                "C library, embedded:": own,
                "embedded:": blocking(first, problem),
                "C library, unix:": remote,
                "unix:": blocking(second, problem),
                "asyncio, unix:": lambda: third.step(problem),
            }
            times = {name: [] for name in calls}
            for step in range(WARM_UP + steps):
                noise = random.uniform(-0.02, 0.02, v_star.size)
                problem.trees.free_motion_velocity = v_star + noise
                own.prepare(problem)
                remote.prepare(problem)
                for name, call in calls.items():
                    start = time.perf_counter()
                    await call()
                    if step >= WARM_UP:
                        times[name].append(time.perf_counter() - start)
            first.close()
            second.close()
    return times


def main():
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    times = asyncio.run(measure(steps))
    medians = {name: float(np.median(values)) for name, values in times.items()}
    print("| step of 21 contacts | us | ratio |\n|---|---|---|")
    for name, median in medians.items():
        library = medians["C library, unix:" if "unix" in name else "C library, embedded:"]
        print(f"| `{name}` | {1e6 * median:.1f} | {median / library:.2f} |")


if __name__ == "__main__":
    main()
