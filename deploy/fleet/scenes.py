"""Simulations of clutter, each in a process of its own, through a server or in the process.

As a program: simulates until its standard input ends, or for a number of steps, and writes times
and digests of all answers to a file.
"""

from __future__ import annotations

import argparse
import hashlib
import select
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import sap_islands as sap
from numpy.typing import NDArray
from sap_islands.mujoco import step
from sap_islands.scenes import load_scene

PACE_S = 0.02  # wall time of a step through a server
EPISODE_STEPS = 300  # then the bodies fall again
PATIENCE_S = 60.0


@dataclass(frozen=True)
class Run:
    """Result of one simulation.

    Attributes:
        sent: [n] times at which the steps were sent [s], of the clock of `time.time`.
        latency: [n] times until their answers [s].
        digests: [n] digests of the bits of all answers up to each step.
        failure: The error that ended it; empty: none.
    """

    sent: NDArray[np.float64]
    latency: NDArray[np.float64]
    digests: NDArray[np.bytes_]
    failure: str


class _Recorder:
    """Stands in for a client of `step`: solves in a session and notes times and bits."""

    def __init__(self, session: sap.Session) -> None:
        self.sent: list[float] = []
        self.latency: list[float] = []
        self.digests: list[str] = []
        self._session = session
        self._digest = hashlib.blake2b(digest_size=8)

    def solve(self, problem: sap.Problem, options: sap.Options | None) -> sap.Solution:
        sent = time.time()
        start = time.monotonic()
        solution = self._session.step(problem, options)
        self.sent.append(sent)
        self.latency.append(time.monotonic() - start)
        islands = solution.islands
        for array in (
            solution.velocity,
            solution.impulse,
            solution.contact_velocity,
            islands.iterations,
            islands.cost,
        ):
            self._digest.update(array.tobytes())
        self.digests.append(self._digest.hexdigest())
        return solution


class Simulation:
    """A running simulation in a child process; it ends with the context, or with this process."""

    def __init__(self, address: str, certificate: Path, seed: int, bodies: int) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="sap-simulation-")
        self._file = Path(self._directory.name) / "run.npz"
        arguments = [f"--address={address}", f"--certificate={certificate}"]
        self._process = _start(self._file, seed, bodies, arguments)

    def __enter__(self) -> Simulation:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate(timeout=PATIENCE_S)
        self._directory.cleanup()

    def await_steps(self) -> None:
        """Waits until the first steps have answers."""
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            raise RuntimeError("a simulation has ended before its first steps")

    def finish(self) -> Run:
        """Ends the simulation after its step."""
        self._process.communicate(timeout=PATIENCE_S)
        return _read(self._file)


def simulate_embedded(bodies: int, steps: list[int]) -> list[Run]:
    """The same simulations, each of `steps` steps, solved in their processes."""
    runs = []
    with tempfile.TemporaryDirectory(prefix="sap-simulation-") as directory:
        for seed, count in enumerate(steps):
            file = Path(directory) / f"{seed}.npz"
            process = _start(file, seed, bodies, ["--address=embedded:", f"--steps={count}"])
            try:
                process.wait()
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait(PATIENCE_S)
            runs.append(_read(file))
    return runs


def _start(file: Path, seed: int, bodies: int, arguments: list[str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, __file__, f"--file={file}", f"--seed={seed}", f"--bodies={bodies}"]
    return subprocess.Popen(
        command + arguments,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )


def _read(file: Path) -> Run:
    with np.load(file) as arrays:
        failure = str(arrays["failure"])
        return Run(arrays["sent"], arrays["latency"], arrays["digests"], failure)


def _restart_scene(data: mujoco.MjData, seed: int, episode: int) -> None:
    mujoco.mj_resetData(data.model, data)
    random = np.random.default_rng((seed, episode))
    data.qvel[:] = random.uniform(-0.5, 0.5, data.model.nv)


def _ended() -> bool:
    """Whether the standard input has ended."""
    readable, _, _ = select.select([sys.stdin], [], [], 0)
    return bool(readable)


def _simulate(arguments: argparse.Namespace, recorder: Any) -> None:
    model = load_scene("clutter", arguments.bodies)
    data = mujoco.MjData(model)
    paced = arguments.steps is None
    next_step = time.monotonic()
    count = 0
    while count < arguments.steps if not paced else not _ended():
        if count % EPISODE_STEPS == 0:
            _restart_scene(data, arguments.seed, count // EPISODE_STEPS)
        step(model, data, recorder, on_unsolved="ignore")
        count += 1
        if count == 10:
            print("has steps", flush=True)
        if paced:
            next_step = max(next_step + PACE_S, time.monotonic())
            time.sleep(max(0.0, next_step - time.monotonic()))


def main() -> None:
    """Simulates as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", required=True)
    parser.add_argument("--certificate", type=Path)
    parser.add_argument("--file", type=Path, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--bodies", type=int, required=True)
    parser.add_argument("--steps", type=int)
    arguments = parser.parse_args()
    tls: sap.Tls | bool = False
    if arguments.certificate is not None:
        tls = sap.Tls(root_certificates=arguments.certificate)
    failure = ""
    with sap.connect(arguments.address, tls=tls) as client, client.session() as session:
        recorder = _Recorder(session)
        try:
            _simulate(arguments, recorder)
        except sap.SapError as error:
            failure = f"step {len(recorder.sent)}: {error!r}"
    np.savez(
        arguments.file,
        sent=recorder.sent,
        latency=recorder.latency,
        digests=np.array(recorder.digests, dtype="S16"),
        failure=failure,
    )


if __name__ == "__main__":
    main()
