"""Counts the instructions of a first and of a warm solve, and the code that a solve runs.

    SAP_PROBLEMS_DIR=DIR solve_counts.py [--solves N] build/bench/bin/solve_benchmark NAME...

One thread, under callgrind, so that a busy machine counts what an idle one does. The first solve
lays the islands out and takes memory. Distinct lines of 64 bytes and pages of 4 KiB are of the code
that both ran, libraries included. Problems of robots: tests/bench/run.sh --problems DIR robots.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

COST = re.compile(r"(0x[0-9a-f]+|\+\d+|-\d+|\*) \S+ (\d+)")


def counts(program: Path, name: str, solves: int) -> Iterator[tuple[str, int, int]]:
    """Object, address and executions of each instruction of a first solve and so many warm ones."""
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "callgrind"
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"]
        command += ["--dump-instr=yes", "--toggle-collect=sap::Solver::Solve(*"]
        command += [str(program), "--solves", str(solves), name]
        subprocess.run(command, check=True, capture_output=True)
        lines = out.read_text().splitlines()
    file, address, of_call = "", 0, False
    for line in lines:
        if line.startswith("ob="):
            file = line[3:].split(" ")[0]
        elif line.startswith("calls="):
            of_call = True  # the next line has what the called function took
        elif found := COST.fullmatch(line):
            place, count = found.groups()
            if place.startswith("0x"):
                address = int(place, 16)
            elif place != "*":
                address += int(place)
            if not of_call:
                yield file, address, int(count)
            of_call = False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--solves", type=int, default=10)
    parser.add_argument("program", type=Path)
    parser.add_argument("names", nargs="+", metavar="NAME")
    arguments = parser.parse_args()
    print(f"{'problem':<32} {'first':>10} {'warm':>10} {'lines':>6} {'pages':>6}")
    for name in arguments.names:
        one = list(counts(arguments.program, name, 1))
        many = list(counts(arguments.program, name, 1 + arguments.solves))
        total = sum(count for _, _, count in one)
        warm = (sum(count for _, _, count in many) - total) / arguments.solves
        lines, pages = (len({(file, at // size) for file, at, _ in one}) for size in (64, 4096))
        print(f"{name:<32} {total - warm:>10.0f} {warm:>10.0f} {lines:>6} {pages:>6}", flush=True)


if __name__ == "__main__":
    main()
