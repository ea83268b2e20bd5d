"""Simulates clutter through three servers and HAProxy while each server is restarted in turn."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType

import numpy as np

from picture import Restart, draw
from processes import Balancer, LoadSamples, Server, free_port, make_certificate
from scenes import Run, Simulation, simulate_embedded

HOSTS = ("127.0.0.11", "127.0.0.12", "127.0.0.13")  # as of three machines, with equal ports
LAME_DUCK_S = 2.0  # HAProxy takes 0.6 s to notice
QUIET_S = 1.5  # between two restarts


def main() -> int:
    arguments = parse_arguments()
    # As Ctrl-C: contexts end what they started.
    signal.signal(signal.SIGTERM, interrupt)
    with tempfile.TemporaryDirectory(prefix="sap-fleet-") as directory:
        return demonstrate(arguments, Path(directory))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="deploy/fleet.sh", description=__doc__)
    parser.add_argument("--sessions", type=int, default=4, help="simulations at the same time")
    parser.add_argument("--bodies", type=int, default=20, help="bodies of each simulation")
    parser.add_argument("--rounds", type=int, default=1, help="restarts of each server, of a kind")
    parser.add_argument("--picture", type=Path, help="file for the picture, .svg or .png")
    return parser.parse_args()


def interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def demonstrate(arguments: argparse.Namespace, directory: Path) -> int:
    certificate = make_certificate(directory)
    calls, metrics = free_port(HOSTS[0]), free_port(HOSTS[0])
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(Server(host, calls, metrics, LAME_DUCK_S)) for host in HOSTS]
        balancer = stack.enter_context(Balancer(servers, directory, certificate))
        samples = stack.enter_context(LoadSamples(servers))
        simulations = [
            stack.enter_context(Simulation(balancer.address, certificate, seed, arguments.bodies))
            for seed in range(arguments.sessions)
        ]
        restarts = restart_all(servers, simulations, arguments.rounds)
        runs = [simulation.finish() for simulation in simulations]
    print("comparing with a run without restarts, solved in the processes themselves", flush=True)
    references = simulate_embedded(arguments.bodies, [len(run.digests) for run in runs])
    if arguments.picture is not None:
        draw(arguments.picture, samples.rows, runs, restarts)
        print(f"picture: {arguments.picture.resolve()}")
    return report(runs, references, restarts)


def restart_all(servers: list[Server], simulations: list[Simulation], rounds: int) -> list[Restart]:
    """Restarts each server in turn, first announced, then not."""
    restarts = []
    for simulation in simulations:
        simulation.await_steps()
    time.sleep(QUIET_S)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for _ in range(rounds):
            for i, server in enumerate(servers):
                begin = time.time()
                server.restart(number)
                restarts.append(Restart(i, number.name, begin, time.time()))
                print(f"server {i + 1} restarted by {number.name}", flush=True)
                time.sleep(QUIET_S)
    return restarts


def report(runs: list[Run], references: list[Run], restarts: list[Restart]) -> int:
    steps = sum(len(run.digests) for run in runs)
    failed = sum(run.failure != "" for run in runs)
    equal = sum(
        int(np.sum(run.digests == reference.digests))
        for run, reference in zip(runs, references, strict=True)
    )
    print(f"steps: {steps} in {len(runs)} sessions, {len(restarts)} restarts of servers")
    print(f"failed calls: {failed}")
    for run in runs:
        if run.failure:
            print(f"  {run.failure}")
    print(f"steps with all bits of a run without restarts: {equal} of {steps}")
    for name in ("SIGTERM", "SIGKILL"):
        print(f"slowest step with {name}: {slowest_ms(runs, restarts, name):.0f} ms")
    return 0 if failed == 0 and equal == steps and steps > 0 else 1


def slowest_ms(runs: list[Run], restarts: list[Restart], name: str) -> float:
    """Slowest step in flight or sent between a restart of the kind and the next restart."""
    begins = [restart.begin for restart in restarts] + [np.inf]
    slowest = 0.0
    for restart, following in zip(restarts, begins[1:], strict=True):
        if restart.signal != name:
            continue
        for run in runs:
            inside = (run.sent + run.latency >= restart.begin) & (run.sent < following)
            slowest = max(slowest, 1e3 * float(np.max(run.latency[inside], initial=0.0)))
    return slowest


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
