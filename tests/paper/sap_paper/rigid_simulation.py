"""Runs `sap-client simulate`; reads its statistics per step, its problems and solutions."""

from __future__ import annotations

import csv
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sap_islands.arrays import FloatArray
from sap_islands.errors import Internal
from sap_islands.problem import Problem
from sap_islands.recording import read_recording
from sap_islands.solution import Solution
from sap_paper.setting import find_simulator

TIME_STEP = 0.01  # s
TOLERANCE = 1e-5
PLAIN_WHOLE = ("--newton", "plain", "--islands", "off")  # the algorithm of the paper
PLAIN_ISLANDS = ("--newton", "plain")
SERVICE = ("--newton", "accelerated")


@dataclass(frozen=True, eq=False)
class Simulated:
    """Results of a simulation.

    Attributes:
        columns: Columns of sap-client's table by name, one value per step.
        problems: Problem of each step with the guess that it started from; empty unless recorded.
        solutions: Solution of each problem; empty unless recorded.
    """

    columns: dict[str, FloatArray]
    problems: list[Problem]
    solutions: list[Solution]

    @property
    def iterations(self) -> FloatArray:
        """Newton iterations of each step, of the island with the most [-]."""
        return self.columns["iterations"]

    @property
    def solve_s(self) -> FloatArray:
        """Time of the solve of each step on the server [s]."""
        return self.columns["solve_s"]


def simulate(
    scene: str,
    bodies: int,
    walls: bool,
    duration: float,
    method: Sequence[str] = SERVICE,
    *,
    threads: int = 1,
    record: bool = False,
) -> Simulated:
    """Simulates a scene for `duration` [s] at a time step of 10 ms.

    Args:
        scene: "clutter", "stacks", "heaps" or "pile".
        bodies: Number of bodies.
        walls: Whether a bin with walls surrounds the bodies.
        duration: Simulated time [s].
        method: `PLAIN_WHOLE`, `PLAIN_ISLANDS` or `SERVICE`.
        threads: Solver threads.
        record: Whether to keep problems and solutions.

    Raises:
        Internal: sap-client failed; the message has its output.
    """
    with tempfile.TemporaryDirectory(prefix="sap-islands-") as directory:
        table, recording = Path(directory, "steps.csv"), Path(directory, "steps.rec")
        command = [find_simulator(), "simulate", scene, "--bodies", str(bodies)]
        command += ["--walls" if walls else "--no-walls", "--time", str(duration), *method]
        command += ["--tolerance", str(TOLERANCE), "--threads", str(threads), "--csv", str(table)]
        command += ["--record", str(recording)] if record else []
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Internal(f"{' '.join(command)} failed: {done.stderr.strip()}")
        with table.open() as lines:
            rows = list(csv.DictReader(lines))
        kept = list(read_recording(recording)) if record else []
    columns = {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}
    solutions = [step.outcome for step in kept if isinstance(step.outcome, Solution)]
    return Simulated(columns, [step.problem for step in kept], solutions)
