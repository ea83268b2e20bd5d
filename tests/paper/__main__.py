"""The command line: python tests/paper --help."""

from __future__ import annotations

import importlib.util
import sys

_NEEDED = ("sap_islands", "matplotlib", "scipy", "clarabel", "gurobipy", "mujoco", "pydrake")


def main() -> int:
    """Runs the command; returns 1 if a package is missing."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        print(f"paper: not installed: {', '.join(missing)}; see README.md here", file=sys.stderr)
        return 1
    from sap_paper import runner

    return runner.main()


if __name__ == "__main__":
    sys.exit(main())
