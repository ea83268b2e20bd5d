"""Sequences of the project's own scenes, on several threads and with bodies at rest."""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Iterator

from table import Table

# Bodies in heaps and in stacks, first and last step.
LARGE = [(3000, 20, 50), (10_000, 20, 30), (30_000, 20, 26), (100_000, 20, 23)]
PROCESSES = 10

SEQUENCE = (
    "scene;bodies;walls;steps;contacts;islands;largest dofs;iterations;largest;plain;"
    "factorizations;min ms;median ms;predicted ms;threads;its median ms;speed-up;plain / this;"
    "allocations;failed;layout ms;GFLOP;GFLOP/s;factor MB;peak MB;by sums;round trip ns"
)


def sequence(bench, *arguments: object) -> list[str]:
    """The row that sequence_benchmark prints for a scene, bodies, walls, first and last step."""
    output = bench.program("sequence_benchmark", "--csv", *map(str, arguments))
    return next(csv.reader(io.StringIO(output)))


def large(bench) -> Iterator[Table]:
    """Scenes of thousands of bodies: whole steps, and the memory of the process."""
    scenes = [("heaps", 3000, 0, 30, 60)]  # on a plane, none at rest
    scenes += [("stacks", n, 0, 20, 30) for n in (10_000, 100_000)]  # at rest, ten to a stack
    scenes += [("heaps", n, 0, 20, 30) for n in (10_000, 100_000)]
    if bench.full:
        scenes += [("pile", 10_000, 1, begin, begin + 5) for begin in (60, 300)]
    table = Table("large", f"Large scenes, {bench.threads} threads against 1", SEQUENCE)
    for scene, *numbers in scenes:
        if bench.wants(f"large/{scene}/{numbers[0]}"):
            count = str(bench.threads)
            table.add(*sequence(bench, scene, *numbers, "--threads", count))
    yield table


def threads(bench) -> Iterator[Table]:
    """Scenes of many islands and of a single pile, on more and more threads.

    Each figure is of ten processes: whether threads gain may be decided as a process begins. The
    round trip of a cache line between two cores is that of the process with the least speed-up.
    """
    table = Table(
        "threads",
        f"Own scenes, warm sequences: threads against 1, {PROCESSES} processes each",
        "scene;bodies;threads;1 thread ms;its median ms;least speed-up;median speed-up;"
        "least by sums;round trip ns",
    )
    counts = [2**k for k in range(1, 8) if 2**k < bench.threads] + [bench.threads]
    scenes = [
        ("heaps", 900, 0, 30, 130),
        ("clutter", 160, 1, 80, 120),
        ("pile", 1000, 1, 60, 75),
    ]
    for bodies, begin, end in LARGE:
        scenes += [("heaps", bodies, 1, begin, end), ("stacks", bodies, 1, begin, end)]
    if bench.full:
        scenes += [("pile", 3000, 1, 60, 100)]
    for scene, bodies, walls, begin, end in scenes:
        if not bench.wants(f"threads/{scene}/{bodies}"):
            continue
        for count in counts:
            rows = [
                sequence(bench, scene, bodies, walls, begin, end, "--threads", count)
                for _ in range(PROCESSES)
            ]
            speed_ups = [float(row[16]) for row in rows]
            slowest = rows[speed_ups.index(min(speed_ups))]
            table.add(
                scene,
                bodies,
                count,
                statistics.median(float(row[12]) for row in rows),
                statistics.median(float(row[15]) for row in rows),
                min(speed_ups),
                statistics.median(speed_ups),
                min(float(row[25]) for row in rows),
                slowest[26],
            )
    yield table


def stages(bench) -> Iterator[Table]:
    """Stages of a session step of a large scene: which thread runs each, and for how long."""
    for bodies in (10_000, 30_000):
        if not bench.wants(f"stages/{bodies}"):
            continue
        table = Table(
            f"stages_{bodies}",
            f"A session step of {bodies} bodies in falling heaps, processor time",
            "thread;stage;ms;page faults",
        )
        server = bench.build / "bin" / "sap-server"
        scene = ("heaps", str(bodies), "20", "30", "--threads", str(bench.threads))
        for line in bench.program("step_stages", str(server), *scene).splitlines():
            table.add(*line.split(";"))
        yield table


def activity(bench) -> Iterator[Table]:
    """Scenes in which most bodies rest: all awake, and without those at rest."""
    table = Table(
        "activity",
        "Bodies at rest left out of the steps: horizon 0.25 s, tolerance 0.1 mm",
        "scene;bodies;pushed;body steps %;long steps %;all awake ms;left out ms;ratio;"
        "farthest apart um;woken by a pair;long steps refused",
    )
    scenes = [("stacks", 10_000, 10, 10, 0), ("stacks", 10_000, 10, 2, 100)]
    scenes += [("heaps", 9_999, 10, 2, 100)]
    if bench.full:
        scenes += [("stacks", 100_000, 10, 10, 100), ("heaps", 99_999, 10, 2, 100)]
    for scene, bodies, settle, measured, moving in scenes:
        if bench.wants(f"activity/{scene}/{bodies}"):
            numbers = map(str, (bodies, settle, measured, moving))
            output = bench.program("activity_benchmark", "--csv", scene, *numbers)
            table.add(*output.strip().split(";"))
    yield table
