"""Solves problem files; prints the solution of one as JSON, a table for several."""

from __future__ import annotations

import argparse
import json
import sys
import time

from tqdm import tqdm

from sap_islands.client import Client
from sap_islands.options import Options
from sap_islands.problem_files import load_problem
from sap_islands.solution import IslandStatus, Solution
from sap_islands.tools.commands.shared_arguments import (
    add_server_arguments,
    add_solver_arguments,
    connect_to,
    input_path,
    options_of,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="JSON or binary, also gzipped; - is standard input"
    )
    add_solver_arguments(parser)
    add_server_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns 0 only if every island of every problem was solved."""
    options = options_of(arguments)
    with connect_to(arguments) as client:
        if len(arguments.files) == 1:
            solution = client.solve(load_problem(input_path(arguments.files[0])), options)
            json.dump(as_json(solution), sys.stdout, indent=1)
            print()
            return 0 if solution.solved else 1
        return _print_table(client, arguments.files, options)


def as_json(solution: Solution) -> dict[str, object]:
    """The solution as a JSON-serializable dict; the status of an island is its name."""
    islands = [
        {**island._asdict(), "status": island.status.name}
        for island in (solution.islands[i] for i in range(len(solution.islands)))
    ]
    return {
        "velocity": solution.velocity.tolist(),
        "impulse": solution.impulse.tolist(),
        "contact_velocity": solution.contact_velocity.tolist(),
        "angular_impulse": solution.angular_impulse.tolist(),
        "delassus_estimate": solution.delassus_estimate.tolist(),
        "row_impulse": solution.row_impulse.tolist(),
        "row_velocity": solution.row_velocity.tolist(),
        "cost": solution.cost,
        "island_of_tree": solution.island_of_tree.tolist(),
        "islands": islands,
    }


def _print_table(client: Client, files: list[str], options: Options) -> int:
    print(f"{'velocities':>10} {'contacts':>8} {'rows':>6} {'islands':>7}", end=" ")
    print(f"{'iterations':>10} {'gap [J]':>8} {'time [ms]':>9}  outcome")
    unsolved = 0
    for path in tqdm(files, disable=None, leave=False):
        problem = load_problem(input_path(path))
        started = time.perf_counter()
        solution = client.solve(problem, options)
        elapsed = time.perf_counter() - started
        islands = solution.islands
        outcomes = sorted({IslandStatus(status).name for status in islands.status.tolist()})
        tqdm.write(
            f"{solution.velocity.size:10} {len(solution.impulse):8} "
            f"{solution.row_impulse.size:6} {len(islands):7} "
            f"{islands.iterations.max(initial=0):10} "
            f"{islands.optimality_gap_bound.max(initial=0):8.1e} {1e3 * elapsed:9.3f}  "
            f"{', '.join(outcomes) or 'no constraint'}: {path}"
        )
        unsolved += not solution.solved
    return 1 if unsolved else 0
