"""`sap-islands run --engine dart`: an unchanged program of DART, where DART is."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from sap_islands import binaries
from sap_islands.binaries import find_server
from sap_islands.errors import Unavailable
from sap_islands.replacement import Replacement

PROGRAM = Path(find_server()).with_name("dart_plain_program")
pytestmark = pytest.mark.skipif(
    not PROGRAM.exists(), reason="built without DART (deploy/install_packages.sh dart)"
)
CONE = 2**2 / (2 * 0.4 * 9.81)  # how far the program's box slides under Coulomb's law [m]


def test_a_program_has_the_cone_in_the_place_of_the_pyramid(tmp_path: Path) -> None:
    own = subprocess.run([PROGRAM], check=True, capture_output=True, text=True)
    assert float(own.stdout) == pytest.approx(CONE / math.sqrt(2), abs=2e-3)
    report = tmp_path / "report.json"
    run = [sys.executable, "-m", "sap_islands", "run", "--engine", "dart", "--report", str(report)]
    replaced = subprocess.run([*run, "--", PROGRAM], check=True, capture_output=True, text=True)
    assert float(replaced.stdout) == pytest.approx(CONE, abs=2e-3)
    assert replaced.stderr == ""
    counts = json.loads(report.read_text())
    assert counts["engine"] == "dart"
    assert counts["version"].startswith("6.")
    assert counts["solved"] == counts["steps"] > 1000
    assert counts["passed_on"] == {}


def test_the_library_of_a_debian_package_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    library = Path("/usr/lib/aarch64-linux-gnu/sap_islands/libsap_islands_dart_preload.so")
    monkeypatch.delenv("SAP_LIBRARY", raising=False)
    monkeypatch.setattr(binaries, "_in_clone", lambda _: None)
    monkeypatch.setattr("sysconfig.get_config_var", lambda _: "aarch64-linux-gnu")
    with pytest.raises(Unavailable, match=f"{library.name} was not found"):
        binaries.find_replacement("dart")
    monkeypatch.setattr(Path, "is_file", lambda path: path == library)
    assert binaries.find_replacement("dart") == str(library)


def test_a_process_that_runs_keeps_its_solver() -> None:
    with Replacement("dart") as replacement, pytest.raises(Unavailable, match="dart"):
        replacement.start("always")
