"""A program in a process of its own: what forks, or loads libraries in an order of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run_program(program: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a program of Python, which finds this package of the tests."""
    here = Path(__file__).parents[1]
    path = os.pathsep.join([str(here), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=cwd or here,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
