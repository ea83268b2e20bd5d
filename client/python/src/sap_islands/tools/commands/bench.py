"""Measures the time to solve problem files from Python."""

from __future__ import annotations

import argparse
import queue
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from tqdm import tqdm

from sap_islands._remote import messages
from sap_islands._remote.address import EMBEDDED, EMBEDDED_PROCESS
from sap_islands._remote.remote_solver import RemoteSolver
from sap_islands.arrays import FloatArray
from sap_islands.client import Client
from sap_islands.options import Options
from sap_islands.problem import Problem
from sap_islands.problem_files import load_problem
from sap_islands.tools.commands.shared_arguments import (
    add_server_arguments,
    add_solver_arguments,
    connect_to,
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
        "--overhead", action="store_true", help="compare with bare calls of gRPC, same bytes"
    )
    parser.add_argument("--plot", metavar="FILE", help="plot the times, as .png, .svg or .pdf")
    add_solver_arguments(parser)
    add_server_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Prints per file the median and 90th percentile of the call, and the median of the solve.

    With --overhead it also prints the ratios of calls and session steps to bare gRPC calls and
    streams with the same bytes.
    """
    if arguments.plot:
        require_plot(arguments.plot)
    if arguments.overhead and arguments.server == EMBEDDED:
        arguments.server = EMBEDDED_PROCESS
    options = options_of(arguments)
    print(f"{'median [ms]':>11} {'p90 [ms]':>9} {'solve [ms]':>10}  file")
    medians = {}
    with connect_to(arguments) as client:
        for path in tqdm(arguments.files, disable=None, leave=False):
            call, solve = measure(client, load_problem(path), options, arguments.repeat)
            medians[Path(path).name] = float(np.median(call))
            if arguments.overhead:
                ratio = overhead(client, load_problem(path), options, arguments.repeat)
                tqdm.write(f"call {ratio[0]:.3f}, step {ratio[1]:.3f} of bare gRPC: {path}")
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


def overhead(
    client: Client, problem: Problem, options: Options, repeat: int
) -> tuple[float, float]:
    """Ratios [-] of a call and of a session step to bare gRPC with the same bytes.

    Both are medians over `repeat` pairs, measured alternately.
    """
    assert isinstance(client._solver, RemoteSolver)
    stub = client._solver._stub()
    request = messages.solve_request(problem, options)
    call = _ratio(lambda: client.solve(problem, options), lambda: stub.solve(request), repeat)

    requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    requests.put(messages.open_request(options, low_latency=False))
    stream = stub.solve_session(iter(requests.get, None))
    next(stream)
    ready = (messages.step_request(i + 1, problem, None) for i in range(2 * repeat))
    prepared = iter(list(ready))

    def bare_step() -> None:
        requests.put(next(prepared))
        next(stream)

    with client.session(options) as session:
        step = _ratio(lambda: session.step(problem), bare_step, repeat)
    requests.put(None)
    next(stream, None)
    return call, step


def _ratio(mine: Callable[[], object], bare: Callable[[], object], repeat: int) -> float:
    ratios = []
    for i in range(repeat):
        taken = [0.0, 0.0]
        for which in (0, 1) if i % 2 else (1, 0):
            started = time.perf_counter()
            (mine, bare)[which]()
            taken[which] = time.perf_counter() - started
        ratios.append(taken[0] / taken[1])
    return float(np.median(ratios))


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
