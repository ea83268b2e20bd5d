"""What the task graphs of solves allow on more threads than the machine has.

    python tests/bench/task_graphs.py PROGRAM [--fresh] SCENE BODIES WALLS FROM TO THREADS

prints which loops of a solve the predicted time is of, with one number of THREADS; PROGRAM is a
task_graph_benchmark. *Before* a loop a task runs by itself; small loops that one thread does alone
count there. *Work / time* is how many threads a loop keeps busy.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

from problem_files import problem_files
from table import Table

THREADS = (2, 4, 8, 16, 32, 64)
COLUMNS = "work ms;critical path ms;" + ";".join(f"predicted {count}" for count in THREADS)

# Scene or problem, bodies, walls, first and last step.
CASES = [
    ("clutter_bin_160_t1p00", 0, 0, 1, 20),
    ("clutter_bin_160_t5p00", 0, 0, 1, 20),
    ("pile_500_t4p00", 0, 0, 1, 10),
    ("pile_1000_t12p00", 0, 0, 1, 8),
    ("pile_2000_t5p00", 0, 0, 1, 6),
    ("block", 12, 0, 1, 6),
    ("pile", 1000, 1, 20, 60),
]
# Scenes that are solved shard by shard, in which reading is a part of every solve.
HEAPS = [(900, 20, 40), (10_000, 20, 26), (30_000, 20, 24)]


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
        "of the steps of a falling pile and of falling heaps; fresh: reading and planning included",
        f"problem;bodies;pattern;{COLUMNS}",
    )
    files = problem_files()
    for case in CASES:
        name, bodies, *_ = case
        if not bench.wants(f"predicted/{name}") or (bodies == 0 and name not in files):
            continue
        table.add(name, bodies, "seen", *prediction(bench, *case))
        table.add(name, bodies, "fresh", *prediction(bench, "--fresh", *case))
    for bodies, begin, end in HEAPS:
        if bench.wants(f"predicted/heaps/{bodies}"):
            arguments = ("--reading", "heaps", bodies, 1, begin, end)
            table.add("heaps", bodies, "read", *prediction(bench, *arguments))
    yield table


def function_names(program: str) -> dict[int, str]:
    """The functions of a program, by address."""
    command = ["nm", "--demangle", program]
    symbols = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    fields = [line.split(maxsplit=2) for line in symbols.splitlines()]
    return {int(f[0], 16): f[2] for f in fields if len(f) == 3 and f[1] in "tTwW"}


def short_name(body: str) -> str:
    """The function in which the loop is written."""
    name = body.removeprefix("void ").removeprefix("sap::TaskArena::Call<")
    name = re.sub(r"\(anonymous namespace\)::|sap::|ShareChunks<", "", name)
    return re.sub(r"\(.*", "", name)


def print_parts(program: str, arguments: list[str]) -> None:
    """Prints which loops the predicted time is of, the longest first."""
    command = [program, "--parts", *arguments]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = [line.split(",") for line in output.splitlines()]
    rows.sort(key=lambda row: -float(row[3]) - float(row[4]))
    total = sum(float(row[3]) + float(row[4]) for row in rows)
    names = function_names(program)
    print("before % | within % | loops | work / time | loop")
    for _, address, loops, before, within, work in rows:
        name = short_name(names.get(int(address, 16), address)) if address != "0" else "(after)"
        times = float(work) / float(within) if float(within) > 0 else 0.0
        shares = [100 * float(part) / total for part in (before, within)]
        print(f"{shares[0]:8.1f} | {shares[1]:8.1f} | {loops:>5} | {times:11.1f} | {name}")


if __name__ == "__main__":
    print_parts(sys.argv[1], sys.argv[2:])
