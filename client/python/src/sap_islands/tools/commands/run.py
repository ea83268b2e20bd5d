"""Runs a program of MuJoCo or DART with this solver in place of the simulator's."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType

from sap_islands.errors import InvalidArgument
from sap_islands.replacement import ENGINES, Replacement, ServedRollouts, StepCounts
from sap_islands.tools.commands.shared_arguments import new_file

_NOT_FOUND, _NOT_EXECUTABLE, _BY_SIGNAL = 127, 126, 128  # exit codes of a shell
_PASSED_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the command."""
    parser.add_argument(
        "--engine", choices=ENGINES, default="mujoco", help="simulator of the program (%(default)s)"
    )
    parser.add_argument(
        "--law",
        choices=["mujoco"],
        default="mujoco",
        help="law of the contacts: that of the simulator (%(default)s)",
    )
    parser.add_argument(
        "--when",
        choices=["faster", "always"],
        default="faster",
        help="which steps are solved: those that are predicted to be faster than by the "
        "simulator's own solver, or all that can be (%(default)s); of DART always all",
    )
    parser.add_argument(
        "--report", type=new_file, metavar="FILE", help="write what became of the steps, as JSON"
    )
    parser.add_argument(
        "--server",
        metavar="ADDR",
        help="servers with --mujoco-library that take calls of mujoco.rollout and mujoco.batch, of "
        "programs in Python: HOST:PORT, a list of these, dns:///NAME:PORT or unix:PATH; a token is "
        "that of $SAP_TOKEN",
    )
    parser.add_argument("program", metavar="COMMAND", help="the program, after --")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    """Runs the command; returns the exit code of the program, as a shell does."""
    if arguments.server is not None and arguments.engine != "mujoco":
        raise InvalidArgument("--server is for programs of MuJoCo", "server")
    served = None if arguments.server is None else ServedRollouts(arguments.server)
    with Replacement(arguments.engine) as replacement:
        environment = os.environ | replacement.environment(arguments.when)
        if served is not None:
            environment |= served.environment()
        code = _run_program([arguments.program, *arguments.arguments], environment)
        counts = replacement.read()
    rollouts = {} if served is None else served.read()
    if served is not None:
        served.close()
    if arguments.report:
        report = {**counts._asdict(), "when": arguments.when, "exit_code": code}
        if served is not None:
            report["rollouts"] = rollouts
        Path(arguments.report).write_text(json.dumps(report, indent=2) + "\n")
    if not counts.steps and not rollouts and code not in (_NOT_FOUND, _NOT_EXECUTABLE):
        _say_that_nothing_was_seen(counts, code)
    return code


def _run_program(command: list[str], environment: dict[str, str]) -> int:
    """Waits for the program; signals of this process are passed on to it."""
    try:
        program = subprocess.Popen(command, env=environment)
    except FileNotFoundError:
        print(f"sap-islands: {command[0]}: not found", file=sys.stderr)
        return _NOT_FOUND
    except PermissionError:
        print(f"sap-islands: {command[0]}: not executable", file=sys.stderr)
        return _NOT_EXECUTABLE

    def pass_on(number: int, frame: FrameType | None) -> None:
        # A terminal sends its interrupts to the program as well.
        if number != signal.SIGINT or not sys.stdin.isatty():
            program.send_signal(number)

    for number in _PASSED_SIGNALS:
        signal.signal(number, pass_on)
    code = program.wait()
    return code if code >= 0 else _BY_SIGNAL - code


def _say_that_nothing_was_seen(counts: StepCounts, code: int) -> None:
    ended = f"the program ended with code {code}{_signal_of(code)}, and " if code else ""
    print(
        f"sap-islands: {ended}no step of {counts.engine} was seen; a program that does not use it, "
        "that contains it as an archive, or that runs with the rights of another user, keeps its "
        "own solver",
        file=sys.stderr,
    )


def _signal_of(code: int) -> str:
    try:
        return f" ({signal.Signals(code - _BY_SIGNAL).name})"
    except ValueError:
        return ""
