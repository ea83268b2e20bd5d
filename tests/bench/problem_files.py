"""The certified problems: those of tests/data, and of a larger set where there is one."""

from __future__ import annotations

import os
from pathlib import Path

DATA = Path(__file__).resolve().parents[1] / "data"


def problem_files() -> dict[str, Path]:
    """By name; of a problem in both sets that of the larger one, which the benchmarks read."""
    directories = [DATA, Path(os.environ.get("SAP_PROBLEMS_DIR", DATA))]
    paths = [path for directory in directories for path in sorted(directory.glob("*.json*"))]
    return {path.name.split(".json")[0]: path for path in paths}
