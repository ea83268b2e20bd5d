"""The command line: python -m sap_islands run|solve|simulate|certify|view|bench."""

from __future__ import annotations

import argparse
import difflib
import importlib.metadata
import os
import signal
import sys
from collections.abc import Sequence

from sap_islands.errors import SapError
from sap_islands.tools.commands import bench, certify, run, simulate, solve, view
from sap_islands.tools.commands.shared_arguments import INTERRUPTED

_COMMANDS = {
    "run": run,
    "solve": solve,
    "simulate": simulate,
    "certify": certify,
    "view": view,
    "bench": bench,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns its exit code: 2 for bad input or a failed call, as argparse does.

    An interrupt, and a reader of the output that has gone, give that of a shell.

    Args:
        arguments: The command line without the program name; None: `sys.argv[1:]`.
    """
    parser = argparse.ArgumentParser(
        prog="sap-islands", description="Client of sap-server, which solves frictional contact."
    )
    version = importlib.metadata.version("sap-islands")
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, module in _COMMANDS.items():
        summary = (module.__doc__ or "").strip()
        command = commands.add_parser(name, help=summary, description=summary)
        module.add_arguments(command)
        command.set_defaults(run=module.run, command=command)
    chosen, unknown = parser.parse_known_args(arguments)
    if unknown:
        chosen.command.error(_unknown_argument(unknown[0], chosen.command))
    try:
        code = int(chosen.run(chosen))
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The interpreter would flush the rest at its end, and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except (SapError, OSError) as error:
        print(f"sap-islands: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED


def _unknown_argument(argument: str, command: argparse.ArgumentParser) -> str:
    """Message about an unknown flag, with the nearest flag of the command."""
    name = argument.partition("=")[0]
    flags = [flag for flag in command._option_string_actions if flag.startswith("--")]
    near = difflib.get_close_matches(name, flags, n=1, cutoff=0.75)
    return f"unrecognized argument: {argument}" + (f"; did you mean {near[0]}?" if near else "")


if __name__ == "__main__":
    sys.exit(main())
