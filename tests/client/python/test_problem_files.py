"""Problem files: JSON and binary, gzipped or not, and errors for malformed ones."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sap_islands as sap
from sap_islands.problem_files import problem_from_json, problem_to_json

from support.scenes import balls_on_floor, linked_balls


@pytest.mark.parametrize("name", ["p.json", "p.json.gz", "p.binpb", "p.binpb.gz"])
def test_problem_is_read_as_it_was_written(tmp_path: Path, name: str) -> None:
    problem = balls_on_floor([0.1, -0.0])
    problem.bodies.center_of_mass = [[1 / 3, 1e-300, -0.0], [5e-324, 0.1, 2**53]]
    problem.regularization = sap.Regularization(sigma=1e-4, rule=sap.RegularizationRule.DIAGONAL)
    path = tmp_path / name
    sap.save_problem(problem, path)
    assert (path.read_bytes()[:2] == b"\x1f\x8b") == name.endswith(".gz")
    again = sap.load_problem(path)
    assert again.to_bytes() == problem.to_bytes()
    assert again.regularization == problem.regularization


@pytest.mark.parametrize(
    "call",
    [
        "sap.Problem(0.01).to_bytes()",
        "sap.Problem.from_bytes(b'')",
        "sap.Solution.from_bytes(b'').to_bytes()",
        "sap.save_problem(sap.Problem(0.01), '/dev/full')",
    ],
)
def test_a_message_may_be_the_first_thing_that_a_program_makes(call: str) -> None:
    program = f"import sap_islands as sap\ntry:\n    {call}\nexcept sap.InvalidArgument: pass"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("seed", range(5))
def test_problem_is_read_from_json_as_it_was_written(seed: int) -> None:
    problem = linked_balls(seed)
    assert problem_from_json(problem_to_json(problem)).to_bytes() == problem.to_bytes()


def test_infinities_are_strings_in_json() -> None:
    rows = sap.ConstraintRows.from_dense([[1.0, 0.0]], stiffness=np.inf, force_lower=-np.inf)
    text = problem_to_json(sap.Problem(0.01, rows=rows))
    values = json.loads(text)["rows"]
    assert values["stiffness"] == ["Infinity"]
    assert values["force_lower"] == ["-Infinity"]
    assert problem_from_json(text).rows.stiffness.tolist() == [np.inf]


def test_negative_zero_keeps_its_sign() -> None:
    problem = problem_from_json('{"bodies": {"mass": [-0, 0, -0.0]}}')
    assert np.signbit(problem.bodies.mass).tolist() == [True, False, True]


def test_known_extra_keys_are_ignored_and_others_refused() -> None:
    values = json.loads(problem_to_json(balls_on_floor([0.0])))
    for key in ("name", "source", "reference", "drake_velocity"):
        values[key] = {"anything": [1]}
    assert problem_from_json(json.dumps(values)).bodies.count == 1
    values["frictoin"] = 1
    with pytest.raises(sap.InvalidArgument, match="frictoin"):
        problem_from_json(json.dumps(values))


@pytest.mark.parametrize(
    ("contents", "reason"),
    [
        (b"", "neither JSON nor"),
        (b"[]", "JSON object"),
        (b'{"time_step": 1, "time_step": 2}', "'time_step' appears twice"),
        (b'{"bodies": {"mass": [1], "mass": [2]}}', "'mass' appears twice"),
        (b'{"time_step": }', "Unexpected token"),
        (b'{"time_step": "fast"}', "time_step"),
        (b"\xff\xff\xff", "neither JSON nor"),
        (gzip.compress(b"{}" * 100)[:-9], "unexpected end of file"),
    ],
)
def test_malformed_file_is_refused_by_name(tmp_path: Path, contents: bytes, reason: str) -> None:
    path = tmp_path / "broken"
    path.write_bytes(contents)
    with pytest.raises(sap.InvalidArgument, match=reason) as caught:
        sap.load_problem(path)
    assert str(path) in str(caught.value)
    with pytest.raises(sap.InvalidArgument, match="No such file"):
        sap.load_problem(tmp_path / "nowhere")
