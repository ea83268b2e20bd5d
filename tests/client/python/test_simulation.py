"""Scenes, simulations, saved trajectories, the viewer and the commands."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sap_islands as sap
from sap_islands.__main__ import main
from sap_islands.scenes import SCENES, load_scene
from sap_islands.tools.simulation import Simulation
from sap_islands.tools.trajectory import Frame, Trajectory
from sap_islands.tools.viewer import Viewer, island_color

from support.scenes import balls_on_floor


@pytest.mark.parametrize("name", SCENES)
def test_scene_comes_to_rest_on_the_floor(client: sap.Client, name: str) -> None:
    model = load_scene(name, 12)
    with client.session() as session:
        simulation = Simulation(model, session)
        trajectory = simulation.new_trajectory()
        for _ in range(200):
            trajectory.frames.append(simulation.step())
    height = simulation.data.qpos.reshape(-1, 7)[:, 2]
    assert height.min() > 0.04
    assert np.median(np.abs(simulation.data.qvel)) < 0.05
    assert sum(frame.unsolved for frame in trajectory.frames) == 0
    # The floor carries the weight of all bodies.
    last = trajectory.frames[-1]
    on_floor = last.contact_point[:, 2] < 0.01
    weight = 9.81 * model.body_mass.sum()
    assert last.contact_force[on_floor, 2].sum() == pytest.approx(weight, rel=0.2)


def test_forces_of_frictionless_contacts_are_shown(client: sap.Client) -> None:
    model = load_scene("stacks", 2)
    model.geom_condim[:] = 1
    simulation = Simulation(model, client)
    for _ in range(50):
        frame = simulation.step()
    on_floor = frame.contact_point[:, 2] < 0.01
    weight = 9.81 * model.body_mass.sum()
    assert frame.contact_force[on_floor, 2].sum() == pytest.approx(weight, rel=0.01)


def make_trajectory(client: sap.Client) -> Trajectory:
    simulation = Simulation(load_scene("stacks", 4), client)
    trajectory = simulation.new_trajectory()
    trajectory.frames += [simulation.step() for _ in range(5)]
    return trajectory


def test_trajectory_is_read_as_it_was_written(client: sap.Client, tmp_path: Path) -> None:
    trajectory = make_trajectory(client)
    trajectory.save(tmp_path / "run.npz")
    again = Trajectory.load(tmp_path / "run.npz")
    assert [shape.kind for shape in again.shapes] == [shape.kind for shape in trajectory.shapes]
    for frame, wanted in zip(again.frames, trajectory.frames, strict=True):
        for name in Frame.__dataclass_fields__:
            assert np.array_equal(getattr(frame, name), getattr(wanted, name)), name
    (tmp_path / "broken.npz").write_bytes(b"no archive")
    with pytest.raises(sap.InvalidArgument, match="is not a saved run"):
        Trajectory.load(tmp_path / "broken.npz")


def test_trajectory_that_was_saved_without_rows_is_read(client: sap.Client, tmp_path: Path) -> None:
    trajectory = make_trajectory(client)
    trajectory.save(tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz") as saved:
        arrays = {name: saved[name] for name in saved if not name.startswith("rows")}
    np.savez(tmp_path / "old.npz", **arrays)
    again = Trajectory.load(tmp_path / "old.npz")
    for frame, wanted in zip(again.frames, trajectory.frames, strict=True):
        assert np.array_equal(frame.contacts, wanted.contacts)
        assert frame.rows.tolist() == [0] * len(wanted.contacts)


def test_bodies_in_contact_are_one_island(client: sap.Client) -> None:
    frame = make_trajectory(client).frames[-1]
    assert len(frame.iterations) == 1  # one stack
    assert frame.island[1:].tolist() == [0, 0, 0, 0]
    assert frame.island[0] == -1  # the floor
    assert frame.contacts.sum() == len(frame.contact_point)
    assert len({island_color(island) for island in range(20)}) == 20


def test_viewer_shows_a_trajectory(client: sap.Client) -> None:
    viewer = Viewer(make_trajectory(client), port=0)
    try:
        viewer.show(3)
        assert re.search(r"1 islands, 16 contacts", viewer._status.content)
        viewer._toggle()
        assert not viewer.playing
        assert viewer._button.label == "Play"
        viewer._toggle()
        viewer.play(duration_s=0.2)
        assert viewer._slider.max == 4
    finally:
        viewer.close()


def test_solve_prints_one_problem_as_json(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, client: sap.Client
) -> None:
    sap.save_problem(balls_on_floor([0.0, 0.3]), tmp_path / "p.json")
    assert main(["solve", str(tmp_path / "p.json"), "--server", client.address]) == 0
    printed = json.loads(capsys.readouterr().out)
    expected = client.solve(balls_on_floor([0.0, 0.3]))
    assert printed["velocity"] == expected.velocity.tolist()
    assert printed["islands"][1]["status"] == "CONVERGED"


def test_solve_prints_several_problems_as_a_table(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, client: sap.Client
) -> None:
    files = []
    for i in range(3):
        files.append(str(tmp_path / f"p{i}.binpb.gz"))
        sap.save_problem(balls_on_floor([0.1 * i] * (i + 1)), files[-1])
    arguments = ["--server", client.address, "--tolerance", "1e-9", "--newton"]
    for method in ("plain", "accelerated", "gauss-seidel"):
        assert main(["solve", *files, *arguments, method]) == 0
        assert capsys.readouterr().out.count("CONVERGED") == 3
    arguments.append("plain")
    assert main(["solve", *files, *arguments, "--max-iterations", "0"]) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        "simulate heaps --time nan",
        "simulate heaps --time inf",
        "simulate heaps --bodies 0",
        "simulate heaps --stiffness nan",
        "view heaps --time nan",
        "view heaps --port 65536",
        "bench nowhere.json --repeat 0",
        "certify nowhere.npz --model scene.xml --tolerance x",
        # What is written in the end, in a folder that does not exist.
        "simulate heaps --output nowhere/run.npz",
        "simulate heaps --plot nowhere/run.png",
        "simulate heaps --picture nowhere/run.png",
        "bench nowhere.json --plot nowhere/times.png",
        "certify nowhere.npz --model scene.xml --report nowhere/report.json",
        "run --report nowhere/report.json -- true",
    ],
)
def test_arguments_out_of_range_are_refused(
    arguments: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments.split())
    assert ended.value.code == 2
    assert "error: argument --" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", ["simulate heaps", "bench nowhere.json", "certify nowhere.npz --model scene.xml"]
)
def test_plots_in_unknown_formats_are_refused(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command.split(), "--plot", "figure.xyz"]) == 2
    assert "--plot is 'figure.xyz'" in capsys.readouterr().err


def test_errors_are_printed_in_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, client: sap.Client
) -> None:
    assert main(["solve", str(tmp_path / "nowhere.json"), "--server", client.address]) == 2
    assert "nowhere.json: cannot open" in capsys.readouterr().err
    assert main(["simulate", "nosuch", "--server", client.address]) == 2
    assert "there is no scene 'nosuch'" in capsys.readouterr().err
    problem = str(tmp_path / "problem.json")
    sap.save_problem(balls_on_floor([0.1]), problem)
    assert main(["solve", problem, "--tolerance", "-1", "--server", client.address]) == 2
    assert "relative_tolerance" in capsys.readouterr().err


def test_simulation_is_saved_plotted_and_shown_again(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, client: sap.Client
) -> None:
    run, picture = tmp_path / "run.npz", tmp_path / "run.png"
    server = ["--server", client.address]
    command = ["simulate", "heaps", "--bodies", "6", "--time", "0.2", *server]
    assert main([*command, "--output", str(run), "--plot", str(picture)]) == 0
    assert "20 steps" in capsys.readouterr().out
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert main(["view", str(run), "--time", "0.3", "--port", "8200"]) == 0
    assert main(["view", "heaps", "--bodies", "3", "--time", "0.3", "--port", "8300", *server]) == 0
    assert capsys.readouterr().out.count("Look at http://127.0.0.1:") == 2


def test_interrupted_simulation_is_saved(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step, run = Simulation.step, tmp_path / "run.npz"

    def step_until_interrupted(simulation: Simulation) -> Frame:
        if simulation.data.time > 0.045:
            raise KeyboardInterrupt
        return step(simulation)

    monkeypatch.setattr(Simulation, "step", step_until_interrupted)
    command = ["simulate", "heaps", "--bodies", "3", "--output", str(run)]
    assert main(command) == 130
    assert "5 steps" in capsys.readouterr().out
    assert len(Trajectory.load(run).frames) == 5


def test_interrupt_has_the_exit_code_of_a_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sap_islands.tools.commands.solve.connect_to", interrupt)
    assert main(["solve", "problem.json"]) == 130


def test_bench_prints_times(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, client: sap.Client
) -> None:
    problem, picture = tmp_path / "p.json", tmp_path / "bench.svg"
    sap.save_problem(balls_on_floor([0.0]), problem)
    arguments = ["--repeat", "3", "--plot", str(picture), "--server", client.address]
    assert main(["bench", str(problem), *arguments]) == 0
    assert "p.json" in capsys.readouterr().out
    assert picture.read_text().lstrip().startswith("<?xml")


def test_every_command_has_help() -> None:
    for arguments in ([], ["solve"], ["simulate"], ["view"], ["bench"]):
        command = [sys.executable, "-m", "sap_islands", *arguments, "--help"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=True)
        assert result.stdout.startswith("usage: sap-islands")
