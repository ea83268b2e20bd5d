"""Runs the solver and its peers on the same work, in turn, and prints what each took.

    bench.py --build DIR --out DIR [--threads N] [--full] [--problems DIR] [CASE...]

Use tests/bench/run.sh, which installs the peers and builds what is timed. CASE: drake, mujoco,
robots, robots_drake, rollout, run, steps, flex, clarabel, cholmod, golden, soft, boxes, gradients,
scaling, large, activity, threads, stages, busy, predicted, or a part of a table such as drake/bin
or drake/bin/160.
Tables go to standard output, to DIR/<name>.csv, and all together to DIR/tables.md. The problem of
the first state of each line of robots goes to --problems, for solve_counts.py.
"""

from __future__ import annotations

import argparse
import csv
import functools
import io
import json
import os
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from built import Built
from busy_machine import busy
from coupled_trees import soft
from lone_boxes import boxes
from mujoco_programs import flex, rollout, run, steps
from one_core import pin_to_one_core
from problem_files import problem_files
from sequences import SEQUENCE, activity, large, sequence, stages, threads
from table import Table
from task_graphs import COLUMNS, predicted, prediction


# Steps of a sequence, by what the bodies do then.
PHASES = {"falling": (10, 40), "transient": (40, 140), "rest": (200, 300)}


@dataclass
class Bench(Built):
    threads: int
    full: bool
    wanted: list[str]
    problems: Path | None = None

    def wants(self, line: str) -> bool:
        """Whether the line, or group of lines, is a part of a wanted case or the case of it."""
        return not self.wanted or any(
            all(part == wanted for part, wanted in zip(line.split("/"), case.split("/")))
            for case in self.wanted
        )

    def solver(self, accelerated: bool = True, tolerance: float = 1e-6):
        from sap_library import Solver

        library = self.build / "tests" / "bench" / "libsap_bench_solver.so"
        return Solver(library, accelerated=accelerated, tolerance=tolerance)

    @functools.cached_property
    def drake_timer(self):
        """It changes functions of Drake's library, which can be done once."""
        import drake_peer

        return drake_peer.Timer(self.build / "tests" / "bench" / "libdrake_timer.so")


def ms(seconds: list[float]) -> tuple[str, str]:
    """Least and median."""
    return f"{1e3 * min(seconds):.3f}", f"{1e3 * statistics.median(seconds):.3f}"


def ratio(peer: list[float], ours: list[float]) -> str:
    return f"{statistics.median(p / o for p, o in zip(peer, ours)):.1f}"


def drake(bench: Bench) -> Iterator[Table]:
    """Drake steps its own plant; each contact problem of it is solved here too."""
    import drake_peer

    pin_to_one_core()
    timer = bench.drake_timer
    table = Table(
        "drake",
        f"Drake {drake_peer.version()}: its own contact problems, time inside SapSolver",
        "scene;bodies;phase;contacts;islands;Drake min ms;Drake median ms;ours min ms;"
        "ours median ms;ratio;Drake iterations;ours;ours plain;Drake factor ms;"
        "largest difference m/s",
    )
    scenes = [("bin", n) for n in (40, 80, 160, 320)] + [("open", n) for n in (40, 80, 160, 320)]
    scenes += [("stacks", 90)] + ([("stacks", 320)] if bench.full else [])
    for kind, bodies in scenes:
        if not bench.wants(f"drake/{kind}/{bodies}"):
            continue
        phases = PHASES if kind != "stacks" else {"standing": (20, 120)}
        solver, plain = bench.solver(), bench.solver(accelerated=False)
        scene = drake_peer.Scene(kind, bodies, timer)
        steps = []
        for step in scene.steps(max(end for _, end in phases.values())):
            ours = solver.solve(step.problem)
            difference = float(np.abs(ours.velocity - step.velocity).max())
            plain_iterations = plain.solve(step.problem).iterations
            steps.append((step, ours, difference, plain_iterations))
            step.contacts = step.problem.num_contacts
            step.problem = None
        for phase, (begin, end) in phases.items():
            part = [s for s in steps[begin:end] if s[0].iterations > 0 and s[1].first_s > 0]
            if not part:
                continue
            peer, ours = [s[0].solve_s for s in part], [s[1].first_s for s in part]
            table.add(
                kind,
                bodies,
                phase,
                round(statistics.mean(s[0].contacts for s in part)),
                round(statistics.mean(s[1].islands for s in part), 1),
                *ms(peer),
                *ms(ours),
                ratio(peer, ours),
                round(statistics.mean(s[0].iterations for s in part), 1),
                round(statistics.mean(s[1].iterations for s in part), 1),
                round(statistics.mean(s[3] for s in part), 1),
                f"{1e3 * statistics.median(s[0].factor_s for s in part):.3f}",
                f"{max(s[2] for s in part):.0e}",
            )
    yield table


def mujoco(bench: Bench) -> Iterator[Table]:
    """MuJoCo steps its own model; the same convex problem is solved here too."""
    import mujoco_peer

    pin_to_one_core()
    table = Table(
        "mujoco",
        f"MuJoCo {mujoco_peer.version()}: its own constraint problems, time of mj_fwdConstraint",
        "scene;bodies;regularization;contacts;islands;MuJoCo min ms;MuJoCo median ms;ours min ms;"
        "ours median ms;ratio;MuJoCo iterations;ours;largest difference m/s",
    )
    scenes = [("bin", n, 100, 100) for n in (40, 80, 160)] + [("bin", 320, 100, 30)]
    scenes += [("piles", 999, 150, 100)]
    if bench.full:
        scenes += [("bin", 1000, 100, 4)]
    for kind, bodies, settle, count in scenes:
        for regularization in mujoco_peer.REGULARIZATION:
            like_sap_too_slow = regularization != "default" and bodies > 320
            if like_sap_too_slow or not bench.wants(f"mujoco/{kind}/{bodies}"):
                continue
            scene = mujoco_peer.Scene(kind, bodies, regularization)
            scene.settle(settle)
            solver, steps = bench.solver(), []
            for step in scene.steps(count):
                ours = solver.solve(step.problem)
                difference = float(np.abs(ours.velocity - step.velocity).max())
                steps.append((step, ours, difference, step.problem.num_contacts))
                step.problem = None
            peer, ours = [s[0].solve_s for s in steps], [s[1].first_s for s in steps]
            table.add(
                kind,
                bodies,
                regularization,
                round(statistics.mean(s[3] for s in steps)),
                round(statistics.mean(s[1].islands for s in steps), 1),
                *ms(peer),
                *ms(ours),
                ratio(peer, ours),
                round(statistics.mean(s[0].iterations for s in steps), 1),
                round(statistics.mean(s[1].iterations for s in steps), 1),
                f"{max(s[2] for s in steps):.0e}",
            )
    yield table


def robots(bench: Bench) -> Iterator[Table]:
    """Published robots with all their constraints, stepped by MuJoCo; the same problems here."""
    import robots as models
    from mujoco_peer import version
    from robot_steps import Served, Timed, save_to, timed_steps

    pin_to_one_core()
    table = Table(
        "robots",
        f"MuJoCo {version()}: robots, all constraints; medians over states, times in us",
        "robot;cone;velocities;rows;contacts;islands;MuJoCo iterations;ours;"
        "MuJoCo warm us;ours warm us;ratio;MuJoCo in step us;ours in step us;its ratio;"
        "MuJoCo stage us;ours in its place us;its ratio;ours new us;check us;session step us;"
        "MuJoCo error;our error",
    )
    for name in models.ROBOTS:
        for cone in models.CONES:
            if not bench.wants(f"robots/{name}/{cone}"):
                continue
            steps = list(timed_steps(bench.solver, name, cone, 60 if bench.full else 30))
            if bench.problems is not None:
                save_to(bench.problems, name, cone, steps[0].problem)

            def median(value: Callable[[Timed], float], form: str = ".1f") -> str:
                return format(statistics.median(value(step) for step in steps), form)

            with Served(bench.build / "bin", [step.problem for step in steps]) as served:
                session_s = served.median_step_s()
            stage_s, replaced_s = models.stages_in_turn(name, models.load(name, cone))
            table.add(
                name,
                cone,
                len(steps[0].velocity),
                median(lambda step: step.problem.rows.count, ".0f"),
                median(lambda step: step.problem.num_contacts, ".0f"),
                median(lambda step: step.ours.islands, ".0f"),
                f"{statistics.mean(step.peer.iterations for step in steps):.1f}",
                f"{statistics.mean(step.ours.iterations for step in steps):.1f}",
                median(lambda step: 1e6 * step.peer_warm_s),
                median(lambda step: 1e6 * step.warm_s),
                median(lambda step: step.peer_warm_s / step.warm_s, ".2f"),
                median(lambda step: 1e6 * step.peer.seconds),
                median(lambda step: 1e6 * step.ours.first_s),
                median(lambda step: step.peer.seconds / step.ours.first_s, ".2f"),
                f"{1e6 * stage_s:.1f}",
                f"{1e6 * replaced_s:.1f}",
                f"{stage_s / replaced_s:.2f}",
                median(lambda step: 1e6 * step.new_s),
                median(lambda step: 1e6 * step.ours.check_s),
                f"{1e6 * session_s:.0f}",
                f"{max(step.peer_error for step in steps):.0e}",
                f"{max(step.error for step in steps):.0e}",
            )
    yield table


def robots_drake(bench: Bench) -> Iterator[Table]:
    """Robots that Drake's parser reads, stepped by Drake: contacts and joint limits."""
    import drake_peer
    import drake_robots as models
    from sap_library import wire_arrays_of_client

    pin_to_one_core()
    timer = bench.drake_timer
    table = Table(
        "robots_drake",
        f"Drake {drake_peer.version()}: robots, time inside SapSolver; medians over states, in us",
        "robot;velocities;rows;contacts;islands;Drake iterations;ours;Drake warm us;ours warm us;"
        "ratio;Drake in step us;ours in step us;its ratio;largest difference m/s",
    )
    for name in models.ROBOTS:
        if not bench.wants(f"robots_drake/{name}"):
            continue
        solver, rows = bench.solver(), []
        for step in models.Scene(name, timer).steps(60 if bench.full else 30):
            arrays = wire_arrays_of_client(step.problem)
            ours = solver.solve(arrays)
            warm_s = solver.solve(arrays, repeats=models.REPEATS).least_s
            figures = {
                "velocities": len(ours.velocity),
                "rows": step.problem.rows.count,
                "contacts": step.problem.num_contacts,
                "islands": ours.islands,
                "peer iterations": step.iterations,
                "iterations": ours.iterations,
                "peer warm": 1e6 * step.warm_s,
                "warm": 1e6 * warm_s,
                "ratio": step.warm_s / warm_s,
                "peer step": 1e6 * step.solve_s,
                "step": 1e6 * ours.first_s,
                "step ratio": step.solve_s / ours.first_s,
            }
            rows.append((list(figures.values()), np.abs(ours.velocity - step.velocity).max()))
        medians = np.median([figures for figures, _ in rows], axis=0)
        forms = [".0f"] * 4 + [".1f"] * 8
        shown = [format(value, form) for value, form in zip(medians, forms)]
        table.add(name, *shown, f"{max(difference for _, difference in rows):.0e}")
    yield table


def clarabel(bench: Bench) -> Iterator[Table]:
    """An interior point method at the accuracy of the project's default tolerance."""
    import clarabel_peer
    import contact_arrays

    pin_to_one_core()
    table = Table(
        "clarabel",
        f"Clarabel {clarabel_peer.version()}: the same cone program, at an accuracy not better",
        "problem;contacts;Clarabel ms;ours ms;ratio;Clarabel iterations;ours;Clarabel tolerance;"
        "Clarabel error;our error",
    )
    names = ["clutter_piles_40_0_t3p00", "clutter_bin_40_t5p00", "clutter_bin_160_t5p00"]
    names += ["pile_500_t12p00"] + (["pile_1000_t12p00"] if bench.full else [])
    files = problem_files()
    for name in names:
        if name not in files or not bench.wants(f"clarabel/{name}"):
            continue
        problem = contact_arrays.load(files[name])
        best = bench.solver(tolerance=1e-14).solve(problem).velocity

        solver = bench.solver()
        ours_error = contact_arrays.relative_error(problem, solver.solve(problem).velocity, best)
        # The loosest tolerance at which Clarabel is as exact, or the tightest that it offers.
        for tolerance in (1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12):
            answer = clarabel_peer.solve(problem, tolerance)
            if contact_arrays.relative_error(problem, answer.velocity, best) <= ours_error:
                break
        peer, ours = [], []
        for _ in range(7):
            peer.append(clarabel_peer.solve(problem, tolerance).solve_s)
            solved = solver.solve(problem)
            ours.append(solved.first_s)
        table.add(
            name,
            problem.num_contacts,
            ms(peer)[1],
            ms(ours)[1],
            ratio(peer, ours),
            answer.iterations,
            solved.iterations,
            f"{tolerance:.0e}",
            f"{contact_arrays.relative_error(problem, answer.velocity, best):.0e}",
            f"{ours_error:.0e}",
        )
    yield table


def cholmod(bench: Bench) -> Iterator[Table]:
    """Google Benchmark runs both on one matrix, on one thread and in random order."""
    if not bench.wants("cholmod"):
        return
    pin_to_one_core()
    size = "[0-9]+" if bench.full else "[0-9]{1,4}"
    output = bench.program(
        "block_cholesky_benchmark",
        f"--benchmark_filter=^(Factor(Double|Float)/{size}/1/|(Cholmod|Plan|Solve).*/{size}$)",
        "--benchmark_enable_random_interleaving=true",
        "--benchmark_repetitions=5",
        "--benchmark_min_time=0.1",
        "--benchmark_format=json",
    )
    timed: dict[str, list[dict]] = {}
    for each in json.loads(output)["benchmarks"]:
        if each["run_type"] == "iteration":
            timed.setdefault(each["run_name"], []).append(each)
    table = Table(
        "cholmod",
        "CHOLMOD with OpenBLAS: one matrix of a pile, 6 rows per body; processor time",
        "benchmark;bodies;min us;median us;GFLOP/s;Mflop;factor MB;CHOLMOD / this",
    )

    def cpu(runs: list[dict]) -> list[float]:
        return [run["cpu_time"] for run in runs]

    for name, runs in sorted(timed.items()):
        bodies = next(part for part in name.split("/") if part.isdigit())
        operation = name.split(f"/{bodies}")[0]
        peer = timed.get(f"CholmodFactor/{bodies}", [])
        flops = runs[0].get("Mflop", 0)
        median = statistics.median(cpu(runs))
        is_factor = operation.startswith("Factor")
        table.add(
            operation,
            bodies,
            f"{min(cpu(runs)):.1f}",
            f"{median:.1f}",
            f"{1e3 * flops / min(cpu(runs)):.1f}" if is_factor else "",
            f"{flops:.1f}" if flops else "",
            f"{runs[0]['MB']:.2f}" if "MB" in runs[0] else "",
            f"{statistics.median(cpu(peer)) / median:.1f}" if is_factor and peer else "",
        )
    yield table


def golden(bench: Bench) -> Iterator[Table]:
    """Single steps from problem files: islands on and off, one thread and several."""
    files = problem_files()
    names = [
        name
        for name in (
            "clutter_bin_160_t5p00",
            "heaps_300x3_t0p35",
            "heaps_300x3_t1p50",
            "nasty_tower_50",
            "pile_500_t12p00",
            "pile_1000_t12p00",
            "pile_1000_t4p00",
            "pile_2000_t5p00",
            "stacks_9x10_t0p10",
            "stacks_9x10_t2p00",
        )
        if name in files and bench.wants(f"golden/{name}")
    ]
    if not names:
        return
    output = bench.program(
        "solve_benchmark", "--threads", str(bench.threads), "--pairs", "31", *names
    )
    lines = [line.split() for line in output.splitlines()]
    table = Table(
        "golden", f"Problem files, warm; {bench.threads} threads against 1", ";".join(lines[0])
    )
    for line in lines[1:]:
        table.add(*line)
    yield table


def scaling(bench: Bench) -> Iterator[Table]:
    """The project's own scenes as warm sequences, and what their task graphs allow."""
    scenes = [("clutter", n, 1, 60, 160) for n in (40, 80, 160, 320)]
    scenes += [("clutter", 160, 1, 20, 60), ("clutter", 160, 1, 300, 400)]  # falling, at rest
    scenes += [("clutter", n, 0, 60, 160) for n in (40, 160)]
    scenes += [("stacks", 90, 0, 20, 120), ("stacks", 990, 0, 20, 60), ("heaps", 900, 0, 30, 130)]
    scenes += [("pile", 100, 1, 60, 160), ("pile", 1000, 1, 60, 160)]
    if bench.full:
        scenes += [("clutter", n, walls, 60, 100) for n in (1000, 3000) for walls in (0, 1)]
        scenes += [("pile", 3000, 1, 60, 100), ("pile", 10000, 1, 60, 70)]
    table = Table(
        "scaling", f"Own scenes, warm sequences, {bench.threads} threads against 1", SEQUENCE
    )
    task_graphs = Table(
        "task_graph",
        f"Predicted speed-up: task times replayed by a list scheduler; measured: {bench.threads} "
        "threads",
        f"scene;bodies;walls;steps;{COLUMNS};threads;measured",
    )
    for scene, bodies, walls, begin, end in scenes:
        if not bench.wants(f"scaling/{scene}/{bodies}"):
            continue
        plain = ["--plain"] if bodies <= 1000 else []
        row = sequence(
            bench, scene, bodies, walls, begin, end, "--threads", str(bench.threads), *plain
        )
        table.add(*row)
        speed_ups = prediction(bench, scene, bodies, walls, begin, end)
        task_graphs.add(*row[:4], *speed_ups, row[14], row[16])
    yield table
    yield task_graphs


def gradients(bench: Bench) -> Iterator[Table]:
    """A gradient against a solve, differences of solutions, and Drake's AutoDiff."""
    scenes = [("clutter", n, 1, step) for n in (8, 40, 160, 500) for step in (60, 100)]
    table = Table(
        "gradients",
        "Own scenes, one thread: a gradient against a cold solve, and against differences for 10 "
        "parameters",
        "scene;bodies;step;contacts;iterations;solve min ms;solve median ms;gradient min ms;"
        "gradient median ms;gradient / solve;differences median ms;differences / gradient",
    )
    for scene, bodies, walls, step in scenes:
        if bench.wants(f"gradients/{scene}/{bodies}"):
            arguments = map(str, (scene, bodies, walls, step))
            output = bench.program("gradient_benchmark", "--csv", *arguments)
            table.add(*next(csv.reader(io.StringIO(output))))
    yield table
    if bench.wants("gradients/drake"):
        yield drake_gradients(bench)


def drake_gradients(bench: Bench) -> Table:
    """Drake differentiates its step with SapSolver<AutoDiffXd>; the same problem here."""
    import drake_gradients as peer

    pin_to_one_core()
    table = Table(
        "gradients_drake",
        "Derivatives of the velocity along directions of v*, solve and derivatives together: "
        "inside Drake's SapSolver<AutoDiffXd>, and here",
        "bodies;contacts;directions;Drake min ms;Drake median ms;ours min ms;ours median ms;ratio;"
        "Drake's whole step ms;largest difference",
    )
    for bodies in (20, 60):
        differentiator = peer.Differentiator(bodies, 40, bench.drake_timer)
        solver = bench.solver(tolerance=1e-10)
        random = np.random.default_rng(1)
        for count in (1, 10):
            directions = random.standard_normal((count, differentiator.num_velocities))
            drakes, ours, steps = [], [], []
            for _ in range(10):
                theirs = differentiator.derivative(directions)
                seconds, tangents = solver.tangents(theirs.problem, directions)
                drakes.append(theirs.solve_s)
                steps.append(theirs.step_s)
                ours.append(seconds)
            table.add(
                bodies,
                theirs.problem.num_contacts,
                count,
                *ms(drakes),
                *ms(ours),
                ratio(drakes, ours),
                ms(steps)[1],
                f"{np.abs(tangents - theirs.tangents).max():.0e}",
            )
    return table


GROUPS: dict[str, Callable[[Bench], Iterator[Table]]] = {
    "golden": golden,
    "flex": flex,
    "soft": soft,
    "boxes": boxes,
    "gradients": gradients,
    "scaling": scaling,
    "large": large,
    "activity": activity,
    "threads": threads,
    "stages": stages,
    "busy": busy,
    "predicted": predicted,
    "cholmod": cholmod,
    "clarabel": clarabel,
    "mujoco": mujoco,
    "robots": robots,
    "robots_drake": robots_drake,
    "rollout": rollout,
    "run": run,
    "steps": steps,
    "drake": drake,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--problems", type=Path)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    arguments = parser.parse_args()
    for case in arguments.cases:
        if case.split("/")[0] not in GROUPS:
            parser.error(f"unknown case '{case}'; groups are: {', '.join(GROUPS)}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    bench = Bench(
        arguments.build, arguments.threads, arguments.full, arguments.cases, arguments.problems
    )
    processors = os.sched_getaffinity(0)
    tables = []
    for name, group in GROUPS.items():
        if not bench.wants(name):
            continue
        os.sched_setaffinity(0, processors)  # the group before may have pinned itself
        print(f"== {name}: {group.__doc__}", flush=True)
        for table in group(bench):
            table.write_csv(arguments.out)
            tables.append(table)
    text = "\n".join(table.markdown() for table in tables)
    (arguments.out / "tables.md").write_text(text)
    print("\n" + text)


if __name__ == "__main__":
    main()
