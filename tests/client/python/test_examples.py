"""The examples run with the expected results, and the pages show them unchanged."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sap_islands as sap
from sap_islands.scenes import SCENES

from conftest import ROOT

PACKAGE = ROOT / "client" / "python"
EXAMPLES = PACKAGE / "examples"
PAGES = ROOT / "deploy" / "docs"


def run(name: str, *arguments: str, timeout: float = 1200) -> str:
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


@pytest.mark.parametrize(
    "page", sorted([*PACKAGE.glob("*.md"), *PAGES.glob("*.md")]), ids=lambda page: page.name
)
def test_python_in_the_pages_compiles(page: Path) -> None:
    for block in blocks(page.read_text(), "python"):
        compile(block, page.name, "exec")


def test_a_soft_block_rests_as_its_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    page = (PAGES / "soft_bodies.md").read_text()
    (snippet,) = [block for block in blocks(page, "python") if "fem.grid(" in block]
    exec(snippet, {})
    assert capsys.readouterr().out in blocks(page, "text")


def test_pictures_of_soft_bodies_are_drawn(tmp_path: Path) -> None:
    assert "0 islands not solved" in run("soft_pictures.py", str(tmp_path), "cable")
    assert (tmp_path / "soft_cable.webp").read_bytes()[8:12] == b"WEBP"
    page = (PAGES / "soft_bodies.md").read_text()
    shown = set(re.findall(r"/(soft_\w+\.webp)\)", page))
    assert shown == {path.name for path in PACKAGE.glob("soft_*.webp")}


def test_recorded_rollouts_are_exact(tmp_path: Path) -> None:
    scene, recorded = str(EXAMPLES / "humanoid.xml"), str(tmp_path / "run.npz")
    run("record_rollout.py", scene, "--worlds", "3", "--steps", "30", "--output", recorded)
    verdict = sap.certify(scene, recorded)
    assert verdict.exact == verdict.states == 90
    assert set(verdict.world.tolist()) == {0, 1, 2}


@pytest.mark.full
def test_worlds_of_mujoco_warp_lose_pairs_to_a_full_buffer(tmp_path: Path) -> None:
    pytest.importorskip("mujoco_warp", reason="mujoco-warp needs Python 3.11")
    scene, recorded = tmp_path / "clutter.xml", str(tmp_path / "run.npz")
    scene.write_text(SCENES["clutter"](20))
    common = ("--skip", "30", "--steps", "20", "--njmax", "800", "--output", recorded)
    run("record_mujoco_warp.py", str(scene), "--nconmax", "200", *common)
    verdict = sap.certify(scene, recorded)
    assert verdict.exact == verdict.states == 80
    assert not verdict.lost_pairs.any()
    run("record_mujoco_warp.py", str(scene), "--nconmax", "24", *common)
    verdict = sap.certify(scene, recorded)
    assert verdict.faults > 0
    assert set(verdict.causes) == {"lost_pairs"}


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


def test_hand_turns_the_block(client: sap.Client) -> None:
    printed = run("hand_turning_block.py", "--server", client.address, "--time", "2")
    assert int(re.findall(r"turned by (\d+) degrees", printed)[-1]) > 90


def test_arm_places_the_cube_and_holds_it_meanwhile(client: sap.Client) -> None:
    printed = run("fetch_pick.py", "--server", client.address)
    heights = [float(z) for z in re.findall(r"cube at \[\S+ +\S+ +(\S+)\]", printed)]
    assert max(heights) > 0.3
    assert heights[-1] == pytest.approx(0.225, abs=2e-3)
    assert float(re.findall(r"slid by ([\d.]+) um", printed)[0]) < 100


def test_quadruped_stands_after_the_push(client: sap.Client) -> None:
    printed = run("quadruped.py", "--server", client.address)
    assert "4 feet on the ground" in printed
    assert float(re.findall(r"trunk at ([\d.]+) m", printed)[0]) > 0.25
    assert float(re.findall(r"moves (\d+) um", printed)[0]) < 1000


def test_loop_of_mujocos_linkage_stays_closed(client: sap.Client) -> None:
    printed = run("mujoco_four_bar.py", "--server", client.address)
    assert float(re.findall(r"([\d.]+) turns,", printed)[0]) > 2.5
    assert float(re.findall(r"torque of at most ([\d.]+)", printed)[0]) <= 2.0
    assert float(re.findall(r"open by at most ([\d.]+) mm", printed)[0]) < 1.0


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


def test_linkage_stays_closed_while_its_motor_turns_the_crank(client: sap.Client) -> None:
    printed = run("four_bar_linkage.py", "--server", client.address)
    angles = np.array(re.findall(r"-?\d+\.\d{5}", printed), float)
    length = np.array([0.1, 0.35, 0.25])
    # The three links in a row lead from one pin on the ground to the other, 0.4 m along x.
    gap = np.hypot(length @ np.cos(angles) - 0.4, length @ np.sin(angles))
    # Rows keep pins together to first order in the rotation of a step, which is at most 0.035 rad
    # for every link; half its square times both arms is left.
    bound = 0.035**2 / 2 * (0.1 + 0.35) / 2
    largest = float(re.findall(r"closure error ([\d.]+) mm", printed)[0]) / 1e3
    assert largest <= bound
    assert gap <= 4 * bound
    speed = float(re.findall(r"turns with ([\d.]+) rad/s", printed)[0])
    # A torque within the limit of 2 N m leaves at most 2 / 10 of the servo's gain.
    assert abs(speed - 2 * np.pi) <= 0.2
    assert 0 < int(re.findall(r"limit in (\d+) of 200", printed)[0]) < 100


def test_mass_and_friction_are_found_from_the_push(client: sap.Client, tmp_path: Path) -> None:
    picture = tmp_path / "push.png"
    printed = run("identify_push.py", "--server", client.address, "--plot", str(picture))
    # Noise of 0.2 mm in 600 numbers that change by 100 mm.
    assert max(float(off) for off in re.findall(r"off by ([\d.]+) %", printed)) < 1.0
    first, last = map(float, re.findall(r"([\d.]+) mm at", printed))
    assert first > 10
    assert last == pytest.approx(0.2, rel=0.1)
    assert picture.stat().st_size > 10_000


def test_planned_push_ends_at_the_goal(client: sap.Client, tmp_path: Path) -> None:
    picture = tmp_path / "plan.png"
    printed = run("slide_to_goal.py", "--server", client.address, "--plot", str(picture))
    costs = [float(cost) for cost in re.findall(r"cost ([\d.]+)", printed)]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] < 0.02 * costs[0]
    assert float(re.findall(r"([\d.]+) mm from the goal", printed)[0]) < 10
    assert float(re.findall(r"([\d.]+) degrees", printed)[0]) < 2
    assert float(re.findall(r"([\d.]+) mm/s", printed)[0]) < 50
    assert picture.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("path", "call"),
    [
        ("README.md", "ConstraintRows"),
        ("client/python/ROWS.md", "ConstraintRows"),
        ("client/python/ROWS.md", "sap.Joints(rod)"),
        ("deploy/docs/first_simulation.md", "problem.describe()"),
        ("deploy/docs/first_simulation.md", "planes = ["),
        ("deploy/docs/gradients.md", "client.differentiate("),
        ("proto/CONSTRAINTS.md", "ConstraintRows"),
        ("deploy/docs/soft_bodies.md", "coupled_a"),
    ],
)
def test_snippets_in_the_documents_print_what_is_shown(
    path: str, call: str, capsys: pytest.CaptureFixture[str]
) -> None:
    document = (ROOT / path).read_text()
    (snippet,) = [block for block in blocks(document, "python") if call in block]
    exec(compile(snippet, path, "exec"), {})
    assert capsys.readouterr().out in blocks(document, "text")


def test_gymnasium_in_its_page_runs_as_it_stands() -> None:
    page = (PACKAGE / "MUJOCO.md").read_text()
    (snippet,) = [block for block in blocks(page, "python") if "make_vec(" in block]
    names: dict[str, Any] = {}
    exec(compile(snippet, "MUJOCO.md", "exec"), names)
    assert names["observations"].shape == (16, 66)


def test_every_example_is_tested() -> None:
    here = Path(__file__).read_text()
    for example in EXAMPLES.glob("*.py"):
        assert example.name in here


def test_rope_whose_pull_turns_with_its_links_gains_no_energy_and_hardly_opens(
    client: sap.Client,
) -> None:
    printed = run(
        "swinging_rope.py", "--server", client.address, "--load", "10", "--ways", "0", "2"
    )
    found = re.findall(r"up to ([\d.]+) mm, energy gained at most ([\d.]+) %", printed)
    (open_gap, gained), (closed_gap, kept) = np.array(found, float)
    assert open_gap > 100  # as the page about ropes says
    assert gained > 100
    assert closed_gap < 10
    assert kept < 1
