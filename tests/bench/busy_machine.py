"""Solves on several threads against one on a machine that does other things as well."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from problem_files import problem_files
from table import Table

# Processor time after which a busy loop ends by itself, if the benchmark is killed.
BUSY_SECONDS = 1200
PERIOD_US = 100_000

# A solve of 2 ms takes 6 when another process has its core for a time slice, so sums of a hundred
# differ by a tenth, even of one thread against one thread. Larger problems average by themselves.
PAIRS = {
    "clutter_bin_160_t5p00": 401,
    "heaps_300x3_t1p50": 401,
    "pile_1000_t12p00": 31,
    "pile_2000_t5p00": 15,
}


@contextlib.contextmanager
def busy_loops(cores: list[int]) -> Iterator[list[str]]:
    """On each of these cores a process that always wants to run; PermissionError with real-time
    priority, which the loops would inherit and stop the machine."""
    if cores and os.sched_getscheduler(0) in (os.SCHED_FIFO, os.SCHED_RR):
        raise PermissionError("busy loops with real-time priority leave nothing to others")
    command = ["sh", "-c", f"ulimit -t {BUSY_SECONDS}; while :; do :; done"]
    processes = [
        subprocess.Popen(["taskset", "-c", str(core), *command])
        for core in cores
    ]
    try:
        yield []
    finally:
        for process in processes:
            process.kill()
            process.wait()


@contextlib.contextmanager
def processor_quota(cores: float) -> Iterator[list[str]]:
    """Yields the prefix of a command that gives it so many cores, if one may make groups."""
    root = Path("/sys/fs/cgroup")
    version_1 = (root / "cpu").is_dir()
    group = root / ("cpu" if version_1 else "") / f"sap_bench_{os.getpid()}"
    group.mkdir()
    try:
        quota_us = round(cores * PERIOD_US)
        if version_1:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(quota_us))
        else:
            (group / "cpu.max").write_text(f"{quota_us} {PERIOD_US}")
        yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
    finally:
        group.rmdir()


def busy_machines() -> dict[str, contextlib.AbstractContextManager[list[str]]]:
    """Loads of the machine by name; each yields the prefix of a command."""
    cores = sorted(os.sched_getaffinity(0))
    return {
        "none": busy_loops([]),
        "a busy loop on one core": busy_loops(cores[:1]),
        "a busy loop on each core": busy_loops(cores),
        "a quota of 1.5 cores": processor_quota(1.5),
    }


def busy(bench) -> Iterator[Table]:
    """Threads against one thread next to busy loops, and under a quota of processor time."""
    table = Table(
        "busy",
        f"Problem files, warm, on a busy machine: {bench.threads} threads against 1, by the median "
        "of pairs and by the sum of all times; and 1 thread against 1, which is chance",
        "neighbors;problem;1 thread ms;speed-up;by sums;1 against 1;1 against 1 by sums",
    )
    names = [name for name in PAIRS if name in problem_files()]
    for neighbors, machine in busy_machines().items():
        try:
            with machine as prefix:
                for name in names:
                    several = speed_up(bench, name, bench.threads, prefix)
                    one = speed_up(bench, name, 1, prefix)
                    table.add(neighbors, name, several["median/ms"], several["speed-up"],
                              several["by-sums"], one["speed-up"], one["by-sums"])
        except PermissionError as error:
            print(f"left out, {neighbors}: {error}")
    yield table


def speed_up(bench, name: str, threads: int, prefix: list[str]) -> dict[str, str]:
    """The line of solve_benchmark for a problem, by its header."""
    output = bench.program(
        "solve_benchmark", "--threads", str(threads), "--pairs", str(PAIRS[name]), name,
        prefix=prefix,
    )
    header, line = (line.split() for line in output.splitlines())
    return dict(zip(header, line))
