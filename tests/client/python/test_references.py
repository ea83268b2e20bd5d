"""Solutions of the certified problems agree with their reference velocities."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import sap_islands as sap

from conftest import problem_files, soft_problem_files
from support.cones import friction_and_bound
from support.norms import relative_error


@pytest.mark.parametrize(
    "path", problem_files() + soft_problem_files(), ids=lambda path: path.name.split(".")[0]
)
def test_solution_agrees_with_the_certified_one(client: sap.Client, path: Path) -> None:
    contents = path.read_bytes()
    text = gzip.decompress(contents) if path.suffix == ".gz" else contents
    reference = json.loads(text)["reference"]
    problem = sap.load_problem(path)
    solution = client.solve(problem, sap.Options(relative_tolerance=1e-8))
    assert solution.solved
    exact = np.array(reference["velocity"])
    assert relative_error(problem, solution.velocity, exact) <= 1e-5
    friction, bound = friction_and_bound(problem, solution)
    assert np.all(friction <= bound + 1e-12 * abs(solution.impulse).max(initial=0))
    rows, impulse = problem.rows, solution.row_impulse
    lower, upper = rows.force_lower, rows.force_upper
    assert np.all(impulse >= (problem.time_step * lower if lower.size else -np.inf))
    assert np.all(impulse <= (problem.time_step * upper if upper.size else np.inf))
