"""Times the solvers of two trees on the same problems, in turn, and prints what each took.

    tests/bench/run.sh --before REVISION [--threads N] [--rounds N] [--problems DIR] [--busy]
                       [--predicted] [NAME...]

run.sh builds that revision and the tree as it is. NAME: a problem of tests/data or
SAP_PROBLEMS_DIR; without any, those of PROBLEMS that are there. --problems: of DIR instead, all
that it has without a NAME. --busy: also several threads against one next to busy loops.
--predicted: also the speed-ups that task_graph_benchmark predicts. Tables go to standard output and
to --out.

A round runs solve_benchmark of one tree and then of the other, within seconds; the next round
begins with the other. Times are medians over rounds of the least time of a round, ratios medians of
the rounds' ratios, with the least and the largest. Where the solver of the revision lacks what
solve_benchmark of the tree calls, its own takes its place; without a hash of the answer "bits" is
unknown.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import busy_machine
from built import Built
from problem_files import DATA, problem_files
from table import Table
from task_graphs import CASES, COLUMNS, prediction

PROBLEMS = (
    "clutter_bin_160_t5p00",
    "heaps_300x3_t1p50",
    "pile_500_t12p00",
    "pile_1000_t12p00",
    "pile_2000_t5p00",
)
RUN_MS = 1000  # of solves in one run of a program, about
BUSY_ROUNDS = 3
# solve_benchmark prints whole microseconds: too few digits of a time below this. Processor time of
# many solves has more, and solves as short as that gain nothing by threads.
SHORT_MS = 0.1
# What decides about a prediction besides the solver.
REPLAY = ("task_graph.cc", "task_graph_benchmark.cc", "recording_arena.cc")

T = TypeVar("T")


class NotMeasured(Exception):
    """Why a tree has no figures of a problem."""


@dataclass
class Side(Built):
    """The build of a tree."""

    name: str  # before or after

    def program(self, name: str, *arguments: str, prefix: Sequence[str] = ()) -> str:
        try:
            return super().program(name, *arguments, prefix=prefix)
        except FileNotFoundError as error:
            raise NotMeasured(f"{self.name}: there is no {name}") from error
        except subprocess.CalledProcessError as error:
            reasons = error.stderr.splitlines() or [f"{name} ended with {error.returncode}"]
            raise NotMeasured(f"{self.name}: {reasons[0]}") from error

    def solves(
        self, name: str, threads: int, pairs: int, prefix: Sequence[str] = ()
    ) -> dict[str, str]:
        """What solve_benchmark prints of a problem, by its columns."""
        arguments = ("--threads", str(threads), "--pairs", str(pairs), name)
        lines = self.program("solve_benchmark", *arguments, prefix=prefix).splitlines()
        columns, values = (line.split() for line in (lines + ["", ""])[:2])
        if values[:1] != [name] or len(values) != len(columns):  # NAME: why it is no problem
            raise NotMeasured(f"{self.name}: {lines[1] if len(lines) > 1 else 'no figures'}")
        return dict(zip(columns, values))

    def warm_us(self, name: str, about_ms: float) -> float:
        """Processor time of a warm solve on one thread: of many, less that of a run with one."""
        solves = round(RUN_MS / 4 / max(about_ms, 0.002))
        return 1e6 * (self.processor_s(name, 1 + solves) - self.processor_s(name, 1)) / solves

    def processor_s(self, name: str, solves: int) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.program("solve_benchmark", "--solves", str(solves), name)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@dataclass
class Both:
    """The trees that are compared."""

    before: Side
    after: Side

    def each(self, measure: Callable[[Side], T]) -> tuple[T, T]:
        return measure(self.before), measure(self.after)

    def in_turn(self, rounds: int, measure: Callable[[Side], T]) -> list[tuple[T, T]]:
        """Before and after, round by round; every second round begins with after."""
        results = []
        for index in range(rounds):
            if index % 2 == 0:
                results.append(self.each(measure))
            else:
                after = measure(self.after)
                results.append((measure(self.before), after))
        return results


def number_of_pairs(figures: dict[str, str]) -> int:
    """Solves that take about RUN_MS; each is a solve without islands and three with."""
    pair_ms = float(figures["whole/ms"]) + 3 * float(figures["min/ms"])
    return min(max(round(RUN_MS / max(pair_ms, 0.01)), 3), 999)


def times_and_ratio(times_us: list[tuple[float, float]]) -> list[str]:
    """Medians of before and after, and of before / after in a round, with its range."""
    ratios = [before / after for before, after in times_us]
    medians = [statistics.median(times) for times in zip(*times_us)]
    shown = [f"{median:.{0 if median >= 1e3 * SHORT_MS else 2}f}" for median in medians]
    return [*shown, f"{statistics.median(ratios):.3f}", f"{min(ratios):.3f}-{max(ratios):.3f}"]


def iterations(before: dict[str, str], after: dict[str, str]) -> str:
    """The largest number of iterations of an island."""
    if before["its"] == after["its"]:
        return before["its"]
    return f"DIFFERENT: {before['its']}, {after['its']}"


def bits(before: dict[str, str], after: dict[str, str]) -> str:
    """Whether velocities and impulses are the same; unknown of revisions without a hash."""
    hashes = [side.get("bits") for side in (before, after)]
    if "threads-differ" in hashes:
        return "DIFFERENT by threads"
    if None in hashes:
        return "-"
    return "same" if hashes[0] == hashes[1] else "DIFFERENT"


def compare(both: Both, name: str, threads: int, rounds: int) -> Iterator[list]:
    """The rows of a problem: on one thread, and on several."""
    first = both.each(lambda side: side.solves(name, threads, pairs=3))
    answers = [iterations(*first), bits(*first)]
    about_ms = min(float(figures["min/ms"]) for figures in first)
    if about_ms < SHORT_MS:
        times_us = both.in_turn(rounds, lambda side: side.warm_us(name, about_ms))
        yield [name, 1, *times_and_ratio(times_us), *answers]
        return
    pairs = number_of_pairs(first[0])
    figures = both.in_turn(rounds, lambda side: side.solves(name, threads, pairs))
    columns = {1: "min/ms", threads: "par./ms"} if threads > 1 else {1: "min/ms"}
    for count, column in columns.items():
        times_us = [tuple(1e3 * float(side[column]) for side in each) for each in figures]
        yield [name, count, *times_and_ratio(times_us), *answers]


def solves(both: Both, names: list[str], threads: int, rounds: int) -> Table:
    table = Table(
        "before_after",
        f"Problem files, warm: before and after, {rounds} rounds in turn",
        "problem;threads;before us;after us;before / after;of rounds;iterations;bits",
    )
    for name in names:
        try:
            for row in compare(both, name, threads, rounds):
                table.add(*row)
        except NotMeasured as error:
            print(f"left out, {name}: {error}", flush=True)
    return table


def speed_ups(both: Both, name: str, threads: int, prefix: Sequence[str]) -> list[str]:
    """Medians of rounds: by the median of pairs, before and after; by the sum of all times."""
    pairs = number_of_pairs(both.before.solves(name, threads, 3, prefix))
    figures = both.in_turn(BUSY_ROUNDS, lambda side: side.solves(name, threads, pairs, prefix))
    values = []
    for column in ("speed-up", "by-sums"):
        for of_side in zip(*figures):
            known = [float(each[column]) for each in of_side if column in each]
            values.append(f"{statistics.median(known):.2f}" if known else "-")
    return values


def busy(both: Both, names: list[str], threads: int) -> Table:
    table = Table(
        "before_after_busy",
        f"Problem files, warm, on a busy machine: {threads} threads against 1, by the median of "
        f"pairs and by the sum of all times; medians of {BUSY_ROUNDS} rounds in turn",
        "neighbors;problem;before;after;by sums before;by sums after",
    )
    for neighbors, machine in busy_machine.busy_machines().items():
        with contextlib.ExitStack() as stack:
            try:
                prefix = stack.enter_context(machine)
            except OSError as error:
                print(f"left out, {neighbors}: {error}")
                continue
            for name in names:
                try:
                    table.add(neighbors, name, *speed_ups(both, name, threads, prefix))
                except NotMeasured as error:
                    print(f"left out, {neighbors}, {name}: {error}", flush=True)
    return table


def predictions(both: Both, *arguments: object) -> tuple[list[str], list[str]]:
    return both.each(lambda side: prediction(side, *arguments))


def predicted(both: Both, wanted: list[str]) -> Table:
    """The cases of task_graphs.py whose names are wanted, or all."""
    table = Table(
        "before_after_predicted",
        "Predicted speed-up, before; after. Fresh: reading and planning included",
        f"problem;bodies;pattern;{COLUMNS}",
    )
    files = problem_files()
    for case in CASES:
        name, bodies, *_ = case
        if (wanted and name not in wanted) or (bodies == 0 and name not in files):
            continue
        for pattern, flags in {"seen": [], "fresh": ["--fresh"]}.items():
            try:
                values = predictions(both, *flags, *case)
            except NotMeasured as error:
                print(f"left out, {name}, {pattern}: {error}", flush=True)
                continue
            cells = ["; ".join(f"{float(value):.3g}" for value in pair) for pair in zip(*values)]
            table.add(name, bodies, pattern, *cells)
    return table


def different_replay(before: Path, after: Path) -> list[str]:
    """Sources of the replay that are not the same in both trees."""

    def text(tree: Path, name: str) -> str:
        path = tree / "tests" / "bench" / name
        return path.read_text() if path.exists() else ""

    return [name for name in REPLAY if text(before, name) != text(after, name)]


@contextlib.contextmanager
def read_by_both(files: dict[str, Path]) -> Iterator[None]:
    """Both programs read these, not what each finds in the tests/data of its own tree."""
    with tempfile.TemporaryDirectory() as directory:
        for path in files.values():
            (Path(directory) / path.name).symlink_to(path.resolve())
        os.environ["SAP_PROBLEMS_DIR"] = directory
        yield


def names_to_compare(names: list[str], problems: Path | None, files: dict[str, Path]) -> list[str]:
    """ValueError where there is no such problem, or none at all."""
    for name in names:
        if name not in files:
            raise ValueError(f"there is no problem '{name}' in {problems or DATA}")
    if not names and problems is not None:
        names = sorted(name for name, path in files.items() if path.parent == problems)
    elif not names:
        names = [name for name in PROBLEMS if name in files]
    if not names:
        raise ValueError(f"there are no problems in {problems or DATA}")
    return names


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="run.sh --before REVISION", description=__doc__.splitlines()[0]
    )
    # These three are of run.sh.
    parser.add_argument("--trees", type=Path, nargs=2, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--check", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--problems", type=Path)
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--predicted", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parsed = parser.parse_args(arguments)
    if parsed.threads < 1 or parsed.rounds < 1:
        parser.error("--threads and --rounds are at least 1")
    if parsed.problems is not None:
        parsed.problems = parsed.problems.resolve()
        os.environ["SAP_PROBLEMS_DIR"] = str(parsed.problems)
    parsed.wanted = parsed.names
    try:
        parsed.names = names_to_compare(parsed.names, parsed.problems, problem_files())
    except ValueError as error:
        parser.error(str(error))
    return parsed


def main() -> None:
    arguments = parse()
    if arguments.check:
        return
    sides = [tree / "build" / "bench" for tree in arguments.trees]
    both = Both(Side(sides[0], "before"), Side(sides[1], "after"))
    arguments.out.mkdir(parents=True, exist_ok=True)
    tables = []
    if not arguments.wanted and not arguments.problems:
        for name in sorted(set(PROBLEMS) - set(arguments.names)):
            print(f"left out, {name}: it is not in tests/data, and SAP_PROBLEMS_DIR has none")
    with read_by_both(problem_files()):
        tables.append(solves(both, arguments.names, arguments.threads, arguments.rounds))
        if arguments.busy:
            names = [name for name in busy_machine.PAIRS if name in problem_files()]
            tables.append(busy(both, arguments.wanted or names, max(arguments.threads, 2)))
        if arguments.predicted:
            if different := different_replay(*arguments.trees):
                print(f"predictions are also of other replays: {', '.join(different)} differ")
            tables.append(predicted(both, arguments.wanted))
    for table in tables:
        table.write_csv(arguments.out)
    text = "\n".join(table.markdown() for table in tables)
    (arguments.out / "tables.md").write_text(text)
    print("\n" + text)


if __name__ == "__main__":
    main()
