"""One scene over several servers against the same scene on one of them.

    split_scenes.py [SERVERS [THREADS]]

starts that many sap-servers (2) on this machine, with THREADS threads each (1), and prints for
scenes of bins, each an island, the time of a call, whole and split, as medians over calls in turn.
Needs sap-server ($SAP_SERVER) and the C libraries ($SAP_LIBRARY), as tests/python.sh does. All
servers and the client share the processors of this machine: with more threads in all than
processors a split gains nothing here, whatever it gains on several machines.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
import sap_islands as sap
from sap_islands.binaries import find_server

# Bins, and spheres along the three sides of the block in each.
SCENES = ((1, (10, 10, 10)), (200, (3, 1, 1)), (20, (5, 5, 4)), (60, (5, 5, 4)), (200, (5, 5, 4)))
CALLS = 9
RADIUS = 0.1


def bins(count: int, sides: tuple[int, int, int]) -> sap.Problem:
    """Blocks of spheres, each pressed against its neighbours, and the lowest against the floor."""
    grid = np.stack(np.meshgrid(*map(np.arange, sides), indexing="ij"), axis=-1).reshape(-1, 3)
    number = np.arange(len(grid)).reshape(sides)
    body_a, body_b, normals = [number[:, :, 0].ravel()], [], [[0, 0, 1]]
    body_b.append(np.full(body_a[0].size, sap.WORLD))
    for axis in range(3):
        upper = np.moveaxis(number, axis, 0)[1:].ravel()
        lower = np.moveaxis(number, axis, 0)[:-1].ravel()
        body_a.append(upper)
        body_b.append(lower)
        normals.append(np.eye(3)[axis])
    normal = np.repeat(normals, [len(a) for a in body_a], axis=0)
    a, b = np.concatenate(body_a), np.concatenate(body_b)
    first = len(grid) * np.arange(count)[:, None]
    shift = np.zeros((count, 1, 3))
    shift[:, 0, 0] = 2 * sides[0] * 2 * RADIUS * np.arange(count)
    center = (2 * RADIUS * grid + RADIUS + shift).reshape(-1, 3)
    all_a = (first + a).ravel()
    random = np.random.default_rng(1)
    return sap.Problem(
        0.01,
        bodies=sap.RigidBodies(
            mass=1.0,
            inertia=[0.004, 0.004, 0.004, 0, 0, 0],
            center_of_mass=center,
            free_motion_velocity=random.uniform(-0.1, 0.1, (len(center), 6)),
        ),
        body_contacts=sap.BodyContacts(
            body_a=all_a,
            body_b=np.where(b < 0, b, first + b).ravel(),
            point=center[all_a] - RADIUS * np.tile(normal, (count, 1)),
            normal=np.tile(normal, (count, 1)),
            signed_distance=-1e-4,
            stiffness=1e5,
            relaxation_time=0.01,
            friction=0.5,
        ),
    )


@contextlib.contextmanager
def started_server(threads: int) -> Iterator[str]:
    """The address of a server, which runs meanwhile."""
    process = subprocess.Popen(
        [find_server(), "--listen", "127.0.0.1:0", "--threads", str(threads)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
    finally:
        process.terminate()
        process.wait()


def medians(calls: list[Callable[[], object]]) -> list[float]:
    """The time of each call [ms], made in turn."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(CALLS):
        for call, taken in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            taken.append(1e3 * (time.perf_counter() - start))
    return [statistics.median(taken) for taken in times]


def print_scene(client: sap.Client, count: int, sides: tuple[int, int, int]) -> None:
    """Prints the line of a scene."""
    problem = bins(count, sides)
    whole, split = client.solve(problem), client.solve(problem, split=True)
    equal = whole.velocity.tobytes() == split.velocity.tobytes() and whole.cost == split.cost
    measured = medians([lambda: client.solve(problem), lambda: client.solve(problem, split=True)])
    print(
        f"{count:5} {problem.bodies.count // count:6} {problem.num_contacts:8} "
        f"{measured[0]:9.1f} {measured[1]:9.1f} {measured[0] / measured[1]:6.2f} "
        f"{'equal' if equal else 'DIFFERENT'}"
    )


def main() -> None:
    """Runs the scenes."""
    servers = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    threads = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    with contextlib.ExitStack() as stack:
        addresses = [stack.enter_context(started_server(threads)) for _ in range(servers)]
        client = stack.enter_context(sap.connect(",".join(addresses)))
        print(f"{servers} servers of {threads} threads, {os.cpu_count()} processors; in ms")
        print(" bins bodies contacts     whole     split   gain bits")
        for count, sides in SCENES:
            print_scene(client, count, sides)


if __name__ == "__main__":
    main()
