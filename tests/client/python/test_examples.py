"""The examples run with the expected results, and the README shows them unchanged."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import sap_islands as sap

from conftest import ROOT

PACKAGE = ROOT / "client" / "python"
EXAMPLES = PACKAGE / "examples"


def run(name: str, *arguments: str, timeout: float = 120) -> str:
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_readme_shows_the_first_example_and_what_it_prints() -> None:
    readme = (PACKAGE / "README.md").read_text()
    assert (EXAMPLES / "first_solve.py").read_text() in blocks(readme, "python")
    assert run("first_solve.py") in blocks(readme, "text")


def test_python_in_the_readme_compiles() -> None:
    for block in blocks((PACKAGE / "README.md").read_text(), "python"):
        compile(block, "README.md", "exec")


def test_links_of_the_readme_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", (PACKAGE / "README.md").read_text()):
        assert (PACKAGE / target).exists(), target


def test_humanoid_falls_among_boxes(client: sap.Client) -> None:
    printed = run("humanoid_among_boxes.py", "--server", client.address, "--time", "3")
    head = float(re.findall(r"head at ([\d.]+) m", printed)[-1])
    assert 0.05 < head < 0.6


def test_arm_lifts_and_holds_the_cube(client: sap.Client) -> None:
    printed = run("arm_grasping.py", "--server", client.address)
    height = float(re.findall(r"cube at ([\d.]+) m", printed)[0])
    slip = float(re.findall(r"slips with ([\d.]+) um/s", printed)[0])
    assert height > 0.2
    # sigma mu dt g, the bound of the slip of a held body.
    assert slip <= 1e6 * 1e-3 * 0.8 * 0.005 * 9.81


def test_bodies_pile_up_in_the_bin(client: sap.Client) -> None:
    arguments = ("--bodies", "60", "--time", "1", "--server", client.address)
    printed = run("thousand_bodies.py", *arguments)
    assert "60 bodies" in printed
    lowest = float(re.findall(r"lowest body at ([\d.]+) m", printed)[0])
    assert lowest > 0.045


@pytest.mark.full
def test_a_thousand_bodies_pile_up_in_the_bin(client: sap.Client) -> None:
    printed = run("thousand_bodies.py", "--server", client.address, timeout=900)
    lowest = float(re.findall(r"lowest body at ([\d.]+) m", printed)[0])
    assert lowest > 0.04


def test_every_example_is_tested() -> None:
    here = Path(__file__).read_text()
    for example in EXAMPLES.glob("*.py"):
        assert example.name in here
