"""Times MuJoCo's constraint stage and this solver on the same states of a robot."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sap_islands.problem import Problem
from sap_islands.problem_files import save_problem

import robots
from sap_library import Solved, Solver, wire_arrays_of_client

ROUNDS, REPEATS = 5, 6
AGREEMENT = 1e-6  # of the converged velocities, in the norm of M
EVERY = 5  # steps between the states


@dataclass
class Timed:
    problem: Problem
    velocity: np.ndarray
    peer: robots.Stage  # once, as in a step
    ours: Solved  # once, as in a step
    peer_warm_s: float  # least of many in a row
    warm_s: float
    new_s: float  # by a solver that has solved nothing
    peer_error: float  # of the default tolerance
    error: float


def timed_steps(
    make_solver: Callable[..., Solver], name: str, cone: str, count: int
) -> Iterator[Timed]:
    """Raises RuntimeError where the converged answers of the two differ."""
    model = robots.load(name, cone)
    solver, tight = make_solver(), make_solver(tolerance=1e-12)
    for data in robots.states(name, model, count, EVERY):
        problem = robots.problem_of(model, data)
        arrays = wire_arrays_of_client(problem)
        peer = robots.constraint_stage(model, data)
        ours = solver.solve(arrays)
        peer_s, ours_s = [], []
        for _ in range(ROUNDS):
            peer_s += [robots.constraint_stage(model, data).seconds for _ in range(REPEATS)]
            ours_s.append(solver.solve(arrays, repeats=REPEATS).least_s)
        best = robots.converged_velocity(model, data)
        agreed = robots.distance(model, data, tight.solve(arrays).velocity, best)
        if agreed > AGREEMENT:
            raise RuntimeError(f"{name}: velocities differ by {agreed:.0e}")
        yield Timed(
            problem,
            ours.velocity,
            peer,
            ours,
            min(peer_s),
            min(ours_s),
            make_solver().solve(arrays).first_s,
            robots.distance(model, data, peer.velocity, best),
            robots.distance(model, data, ours.velocity, best),
        )


def save_to(directory: Path, name: str, cone: str, problem: Problem) -> None:
    """For solve_counts.py."""
    directory.mkdir(parents=True, exist_ok=True)
    file = f"{name}_{cone}.json".replace(", ", "_").replace(" ", "_").lower()
    save_problem(problem, directory / file)


class Served:
    """A server on a Unix socket, and a session that sends the problems in turn."""

    def __init__(self, programs: Path, problems: list[Problem]):
        self._programs = programs
        self._directory = tempfile.TemporaryDirectory()
        self._socket = f"unix:{self._directory.name}/server"
        self._files = []
        for i, problem in enumerate(problems):
            self._files.append(Path(self._directory.name) / f"{i:03}.json")
            save_problem(problem, self._files[-1])

    def __enter__(self) -> Served:
        self._server = subprocess.Popen(
            [self._programs / "sap-server", "--listen", self._socket],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for line in self._server.stdout:
            if "listening" in line:
                return self
        raise RuntimeError("the server did not start")

    def __exit__(self, *_) -> None:
        self._server.terminate()
        self._server.wait()
        self._directory.cleanup()

    def median_step_s(self) -> float:
        """From the call to the answer in the client."""
        csv = Path(self._directory.name) / "latencies.csv"
        flags = ["--server", self._socket, "--mode", "session", "--duration", "1"]
        subprocess.run(
            [self._programs / "sap-client", "bench", *self._files, *flags, "--csv", csv],
            check=True,
            capture_output=True,
        )
        names, values = (line.split(",") for line in csv.read_text().splitlines())
        return float(dict(zip(names, values))["p50_s"])
