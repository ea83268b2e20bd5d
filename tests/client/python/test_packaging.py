"""Wheel and source distribution can be built and are complete."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from conftest import ROOT

PACKAGE = ROOT / "client" / "python"


def build(directory: Path, kind: str, output: Path) -> Path:
    """Builds the package in `directory` with this environment's hatchling; returns the file."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", kind, "-d", str(output)]
    subprocess.run(command, cwd=directory, check=True, capture_output=True, timeout=1200)
    (artifact,) = output.iterdir()
    return artifact


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(PACKAGE, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(PACKAGE, "sdist", tmp_path_factory.mktemp("sdist"))


def test_wheel_works_by_itself(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
        names = archive.namelist()
    assert "sap_islands/py.typed" in names
    assert (tmp_path / "sap_islands" / "_origin.txt").read_text().strip() == str(ROOT)
    program = (
        "import sap_islands as sap; print(sap.__file__)\n"
        "with sap.connect('embedded:') as client: client.solve(sap.Problem(0.01))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    result = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert result.stdout.startswith(str(tmp_path))


def test_source_distribution_builds_the_same_wheel(
    wheel: Path, sdist: Path, tmp_path: Path
) -> None:
    unpacked = tmp_path / "source"
    unpacked.mkdir()
    subprocess.run(["tar", "-xf", str(sdist), "-C", str(unpacked)], check=True, timeout=1200)
    (source,) = unpacked.iterdir()
    again = build(source, "wheel", tmp_path / "wheel")
    with zipfile.ZipFile(wheel) as first, zipfile.ZipFile(again) as second:
        # _origin.txt is the path of a clone, which the source distribution does not have.
        expected = {name for name in first.namelist() if not name.endswith("_origin.txt")}
        assert expected == set(second.namelist())
        for name in expected:
            if not name.endswith("RECORD"):
                assert first.read(name) == second.read(name), name
