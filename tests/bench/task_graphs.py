"""What the task graphs of solves allow on more threads than the machine has."""

from __future__ import annotations

from collections.abc import Iterator

from problem_files import problem_files
from table import Table

THREADS = (2, 4, 8, 16, 32, 64)
COLUMNS = "work ms;critical path ms;" + ";".join(f"predicted {count}" for count in THREADS)


def prediction(bench, *arguments: object) -> list[str]:
    """The values of COLUMNS for a scene, bodies, walls, first and last step."""
    output = bench.program("task_graph_benchmark", *map(str, (*arguments, *THREADS)))
    lines = [line.split(",") for line in output.splitlines()]
    _, work, critical_path, *_ = lines[-1]
    return [work, critical_path, *(speed_up for *_, speed_up in lines)]


def predicted(bench) -> Iterator[Table]:
    """Single problems and a falling pile, their patterns seen before and fresh."""
    table = Table(
        "predicted",
        "Predicted speed-up of single problems (the least time of each task of several solves) and "
        "of the steps of a falling pile; fresh: reading and planning included",
        f"problem;bodies;pattern;{COLUMNS}",
    )
    cases = [
        ("clutter_bin_160_t1p00", 0, 0, 1, 20),
        ("clutter_bin_160_t5p00", 0, 0, 1, 20),
        ("pile_500_t4p00", 0, 0, 1, 10),
        ("pile_1000_t12p00", 0, 0, 1, 8),
        ("pile_2000_t5p00", 0, 0, 1, 6),
        ("block", 12, 0, 1, 6),
        ("pile", 1000, 1, 20, 60),
    ]
    files = problem_files()
    for case in cases:
        name, bodies, *_ = case
        if not bench.wants(f"predicted/{name}") or (bodies == 0 and name not in files):
            continue
        table.add(name, bodies, "seen", *prediction(bench, *case))
        table.add(name, bodies, "fresh", *prediction(bench, "--fresh", *case))
    yield table
