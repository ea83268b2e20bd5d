"""Measures the time to solve problem files from Python."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from tqdm import tqdm

from sap_islands.arrays import FloatArray
from sap_islands.client import Client
from sap_islands.options import Options
from sap_islands.problem import Problem
from sap_islands.problem_files import load_problem
from sap_islands.tools.commands.shared_arguments import (
    add_server_arguments,
    add_solver_arguments,
    connect_to,
    new_file,
    options_of,
    require_plot,
    whole_number,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="JSON or binary, also gzipped")
    parser.add_argument(
        "--repeat", type=whole_number(1), default=50, metavar="N", help="solves (%(default)s)"
    )
    parser.add_argument(
        "--plot", type=new_file, metavar="FILE", help="plot the times, as .png, .svg or .pdf"
    )
    add_solver_arguments(parser)
    add_server_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Prints per file the median and 90th percentile of the call, and the median of the solve."""
    if arguments.plot:
        require_plot(arguments.plot)
    options = options_of(arguments)
    print(f"{'median [ms]':>11} {'p90 [ms]':>9} {'solve [ms]':>10}  file")
    medians = {}
    with connect_to(arguments) as client:
        for path in tqdm(arguments.files, disable=None, leave=False):
            call, solve = measure(client, load_problem(path), options, arguments.repeat)
            medians[Path(path).name] = float(np.median(call))
            tqdm.write(
                f"{1e3 * np.median(call):11.3f} {1e3 * np.percentile(call, 90):9.3f} "
                f"{1e3 * np.median(solve):10.3f}  {path}"
            )
    if arguments.plot:
        _plot(medians, arguments.plot)
    return 0


def measure(
    client: Client, problem: Problem, options: Options, repeat: int
) -> tuple[FloatArray, FloatArray]:
    """Times of the calls, and of the solves on the server, [repeat] each [s].

    One untimed call precedes them.
    """
    call, solve = np.empty(repeat), np.empty(repeat)
    client.solve(problem, options)
    for i in range(repeat):
        started = time.perf_counter()
        solution = client.solve(problem, options)
        call[i] = time.perf_counter() - started
        solve[i] = solution.timings.solve_s
    return call, solve


def _plot(medians: dict[str, float], path: str) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot

    height = 1 + 0.25 * len(medians)
    figure, axes = pyplot.subplots(figsize=(8, height), layout="constrained")
    axes.barh(list(medians), [1e3 * median for median in medians.values()])
    axes.set_xscale("log")
    axes.set_xlabel("median of a call [ms]")
    figure.savefig(path)
    pyplot.close(figure)
