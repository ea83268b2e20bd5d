"""The command line: python -m sap_islands.paper --help."""

from __future__ import annotations

import sys

from sap_islands.commands.shared_arguments import require_extra
from sap_islands.errors import SapError

_NEEDED = ("matplotlib", "scipy", "clarabel", "gurobipy", "mujoco", "pydrake")


def main() -> int:
    """Runs the command; returns 1 if a package of the extra "paper" is missing."""
    try:
        for module in _NEEDED:
            require_extra(module, "paper")
    except SapError as error:
        print(f"paper: {error}", file=sys.stderr)
        return 1
    from sap_islands.paper import runner

    return runner.main()


if __name__ == "__main__":
    sys.exit(main())
