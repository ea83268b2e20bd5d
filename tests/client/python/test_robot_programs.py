"""Unchanged programs of dm_control and robosuite under `sap-islands run`.

Each gets an environment of its own, with a MuJoCo that it works with: requirements-PACKAGE.txt.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import robot_program

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="the pins are for Python 3.11 and later"
)

FOLDER = Path(__file__).parent
PROGRAM = Path(robot_program.__file__)
CLIENT = FOLDER.parents[2] / "client" / "python"


def make_environment(package: str, folder: Path) -> str:
    """An interpreter with the package; the test is skipped where it cannot be installed."""
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    pins = CLIENT / f"requirements-{package}.txt"
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command = [python, *install, "--requirement", str(pins)]
    installed = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if installed.returncode:
        pytest.skip(f"{pins.name} cannot be installed: {installed.stderr[-300:]}")
    return python


def run(command: list[str], package: str, output: Path) -> Any:
    """States of a program that a command runs."""
    environment = {**os.environ, "PYTHONPATH": str(CLIENT / "src"), "MUJOCO_GL": "disable"}
    arguments = [str(PROGRAM), package, str(output)]
    subprocess.run([*command, *arguments], env=environment, check=True, cwd=output.parent)
    return np.load(output)["states"]


@pytest.mark.parametrize("package", ["dm_control", "robosuite"])
def test_states_agree_with_those_of_mujoco(package: str, tmp_path: Path) -> None:
    python = make_environment(package, tmp_path / "environment")
    report = tmp_path / "report.json"
    replaced = [python, "-m", "sap_islands", "run", "--when", "always", "--report", str(report)]
    own = run([python], package, tmp_path / "own.npz")
    found = run([*replaced, "--", python], package, tmp_path / "found.npz")
    counts = json.loads(report.read_text())
    assert counts["solved"] > robot_program.STEPS
    assert set(counts["passed_on"]) <= {"no constraint acts"}
    assert not np.array_equal(own, found)
    assert np.abs(own - found).max() < 1e-6 * np.abs(own).max()
