"""Unchanged programs whose rollouts go to servers keep their results, errors and startup."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.server_process import ServerProcess
from support.worlds import library

RUN = [sys.executable, "-m", "sap_islands", "run"]
PROGRAM = Path(__file__).with_name("support") / "rollout_program.py"
SERVED, SMALL = "at servers", "too small to pay"


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    """A server of worlds."""
    with ServerProcess("127.0.0.1:0", "--mujoco-library", str(library()), "--threads=2") as process:
        yield process


def run(task: str, folder: Path, *options: str, **environment: str) -> tuple[Any, Any, str]:
    """The arrays of the program, what became of its rollouts, and what it printed."""
    output, report = folder / f"{task}.npz", folder / f"{task}.json"
    command = [*RUN, *options, "--report", str(report), "--"]
    command += [sys.executable, str(PROGRAM), task, str(output)]
    printed = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | environment
    ).stdout
    with np.load(output) as file:
        found = dict(file)
    return found, json.loads(report.read_text()).get("rollouts"), printed


def assert_same(found: Any, expected: Any) -> None:
    assert found.keys() == expected.keys()
    for name in expected:
        assert np.array_equal(found[name], expected[name]), name


def test_rollouts_go_to_servers_with_the_bits_of_the_program(
    server: ServerProcess, tmp_path: Path
) -> None:
    expected, none, _ = run("large", tmp_path)
    found, rollouts, _ = run("large", tmp_path, "--server", server.address)
    assert none is None
    assert_same(found, expected)
    assert rollouts[SERVED]["calls"] >= 1  # of the others a busy machine may say: too small to pay
    assert rollouts.keys() <= {SERVED, SMALL}
    assert sum(count["calls"] for count in rollouts.values()) == 3
    assert sum(count["steps"] for count in rollouts.values()) == 3600


@pytest.mark.parametrize(("task", "reason"), [("small", SMALL), ("callback", "callbacks")])
def test_rollouts_that_servers_should_not_take_stay(
    server: ServerProcess, tmp_path: Path, task: str, reason: str
) -> None:
    expected, _, _ = run(task, tmp_path)
    found, rollouts, _ = run(task, tmp_path, "--server", server.address)
    assert_same(found, expected)
    assert list(rollouts) == [reason]


@pytest.mark.skipif(not find_spec("mujoco.batch"), reason="new in MuJoCo 4")
@pytest.mark.parametrize("task", ["batch", "bound"])
def test_batches_have_the_bits_of_the_program(
    server: ServerProcess, tmp_path: Path, task: str
) -> None:
    expected, _, _ = run(task, tmp_path)
    found, rollouts, _ = run(task, tmp_path, "--server", server.address)
    assert_same(found, expected)
    assert rollouts["models of the simulations"]["calls"] == 1
    if task == "batch":
        assert rollouts[SERVED]["calls"] >= 1
        assert rollouts.keys() <= {SERVED, SMALL, "models of the simulations"}
    else:
        assert rollouts["derived fields that are bound"]["calls"] == 4


def test_a_forked_process_steps_its_own(server: ServerProcess, tmp_path: Path) -> None:
    expected, _, _ = run("fork", tmp_path)
    found, rollouts, _ = run("fork", tmp_path, "--server", server.address)
    assert_same(found, expected)
    assert rollouts["a process forked from one that has called servers"]["calls"] == 1


def test_errors_are_those_of_the_program(server: ServerProcess, tmp_path: Path) -> None:
    expected, _, _ = run("error", tmp_path)
    found, rollouts, _ = run("error", tmp_path, "--server", server.address)
    assert_same(found, expected)
    assert SERVED not in rollouts


def test_servers_that_refuse_or_are_gone_change_nothing(tmp_path: Path) -> None:
    expected, _, _ = run("large", tmp_path)
    with ServerProcess("127.0.0.1:0") as without_worlds:
        found, rollouts, _ = run("large", tmp_path, "--server", without_worlds.address)
    assert_same(found, expected)
    assert rollouts == {"servers: UNIMPLEMENTED": {"calls": 3, "steps": 3600}}
    found, rollouts, _ = run("large", tmp_path, "--server", without_worlds.address)
    assert_same(found, expected)
    assert SERVED not in rollouts


def test_the_programs_own_startup_runs_too(server: ServerProcess, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import sys\nsys.startup_ran = 'its own'\n")
    path = os.pathsep.join([str(own), os.environ.get("PYTHONPATH", "")])
    _, rollouts, printed = run("large", tmp_path, "--server", server.address, PYTHONPATH=path)
    assert printed.strip() == "its own"
    assert SERVED in rollouts


def test_servers_are_for_programs_of_mujoco(tmp_path: Path) -> None:
    command = [*RUN, "--engine", "dart", "--server", "127.0.0.1:1", "--", "true"]
    ended = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode != 0
    assert "--server is for programs of MuJoCo" in ended.stderr
