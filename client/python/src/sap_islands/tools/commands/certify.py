"""Judges recorded steps of a simulator against the exact ones; finds why they differ."""

from __future__ import annotations

import argparse
import json
from contextlib import nullcontext
from pathlib import Path

from sap_islands._library.native_client import EMBEDDED
from sap_islands.tools.commands.shared_arguments import (
    add_server_arguments,
    connect_to,
    new_file,
    require_extra,
    require_plot,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    parser.add_argument("runs", nargs="+", metavar="RUN.npz", help="recorded steps")
    parser.add_argument(
        "--model", required=True, metavar="FILE", help="the model: MJCF, URDF or MJB"
    )
    parser.add_argument(
        "--tolerance", type=float, default=1e-3, metavar="EPS", help="of an exact state (1e-3)"
    )
    parser.add_argument("--sample", type=int, metavar="N", help="judge N states (all)")
    parser.add_argument(
        "--diagnose", type=int, default=200, metavar="N", help="look for causes of N states (200)"
    )
    parser.add_argument(
        "--skip-invalid", action="store_true", help="leave out states with NaN, and count them"
    )
    parser.add_argument("--report", type=new_file, metavar="FILE", help="write the report as JSON")
    parser.add_argument(
        "--worst", metavar="DIR", help="save the worst states, as runs and as problem files"
    )
    parser.add_argument(
        "--plot", type=new_file, metavar="FILE", help="plot errors, as .png, .svg or .pdf"
    )
    parser.add_argument("--threads", type=int, metavar="N", help="that judge in this process (all)")
    add_server_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns 0 if all states are exact, except resets, and 1 otherwise."""
    require_extra("mujoco", "mujoco")
    if arguments.plot:
        require_plot(arguments.plot)
    from sap_islands.referee import certify
    from sap_islands.referee.tables import text

    is_here = arguments.server == EMBEDDED
    with nullcontext() if is_here else connect_to(arguments) as client:
        verdict = certify(
            arguments.model,
            arguments.runs,
            tolerance=arguments.tolerance,
            sample=arguments.sample,
            skip_invalid=arguments.skip_invalid,
            diagnose=arguments.diagnose,
            worst=arguments.worst,
            threads=arguments.threads,
            client=client,
            progress=True,
        )
    if arguments.report:
        Path(arguments.report).write_text(json.dumps(verdict.to_json(), indent=1) + "\n")
    if arguments.plot:
        from sap_islands.referee.plots import plot

        plot(verdict, Path(arguments.plot))
    print(text(verdict))
    return 1 if verdict.faults else 0
