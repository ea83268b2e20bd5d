"""The command line: python -m sap_islands run|solve|simulate|certify|view|bench."""

from __future__ import annotations

import argparse
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

    An interrupt gives that of a shell.

    Args:
        arguments: The command line without the program name; None: `sys.argv[1:]`.
    """
    parser = argparse.ArgumentParser(
        prog="sap-islands", description="Client of sap-server, which solves frictional contact."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, module in _COMMANDS.items():
        summary = (module.__doc__ or "").strip()
        command = commands.add_parser(name, help=summary, description=summary)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    chosen = parser.parse_args(arguments)
    try:
        return int(chosen.run(chosen))
    except (SapError, OSError) as error:
        print(f"sap-islands: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
