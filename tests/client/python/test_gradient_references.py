"""Gradients of the certified problems agree with their references, each within its tolerance."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sap_islands as sap
from sap_islands._gradients.input_arrays import get
from sap_islands.problem_files import problem_from_json

from conftest import ROOT, problem_files
from support.norms import a_norm, dynamics_blocks

DIRECTORY = Path(
    os.environ.get("SAP_PROBLEMS_GRADIENTS_DIR", ROOT / "tests" / "data" / "gradients")
)


def references() -> list[Path]:
    return sorted(path for path in DIRECTORY.iterdir() if ".json" in path.name)


def load(path: Path) -> Any:
    contents = path.read_bytes()
    return json.loads(gzip.decompress(contents) if path.suffix == ".gz" else contents)


def problem_of(reference: Any) -> sap.Problem:
    if not isinstance(reference["problem"], str):
        return problem_from_json(json.dumps(reference["problem"]))
    name = reference["problem"]
    (path,) = [path for path in problem_files() if path.name.split(".")[0] == name]
    return sap.load_problem(path)


def expected_array(gradient: Any, path: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    values = gradient if path in gradient else gradient["gradient"]
    for name in path.split("."):
        values = values[name]
    return np.atleast_1d(np.array(values, np.float64))


def excess(reference: Any, gradients: tuple[sap.Gradient, ...], expected: Any) -> dict[str, float]:
    """By input, the error where it exceeds the tolerance, as a multiple of the scale."""
    excesses: dict[str, float] = {}
    for path, scale in reference["scale"].items():
        if path in reference["ill_conditioned"]:
            continue
        for found, wanted in zip(gradients, expected, strict=True):
            array, exact = get(found, path).ravel(), expected_array(wanted, path)
            if not array.size and (path in reference["optional"] or not exact.any()):
                continue
            assert array.shape == exact.shape, path
            error = float(np.max(np.abs(array - exact), initial=0.0)) / scale
            if not error <= reference["tolerance"][path]:
                excesses[path] = max(error, excesses.get(path, 0.0))
    return excesses


def is_bounded(reference: Any, problem: sap.Problem, gradients: tuple[sap.Gradient, ...]) -> bool:
    """Whether lambda' A lambda is within the bound that holds at the tip of a cone."""
    bounds = reference.get("kink", {}).get("energy_bound", [])
    blocks = dynamics_blocks(problem)
    return len(bounds) == len(gradients) and all(
        a_norm(blocks, gradient.applied_impulse) ** 2 <= bound * (1 + 1e-6)
        for gradient, bound in zip(gradients, bounds, strict=True)
    )


@pytest.mark.parametrize("path", references(), ids=lambda path: path.name.split(".")[0])
def test_gradients_agree_with_the_certified_ones(client: sap.Client, path: Path) -> None:
    reference = load(path)
    problem = problem_of(reference)
    result = client.differentiate(
        problem,
        [sap.Cotangent(**cotangent) for cotangent in reference["cotangents"]],
        wanted=reference["wanted"],
        hold_delassus=reference["hold_delassus"],
    )
    assert result.accurate
    answers = reference["expected"]
    branches = answers.get("alternatives") or [answers["gradients"]]
    excesses = [excess(reference, result.gradients, branch) for branch in branches]
    assert {} in excesses or is_bounded(reference, problem, result.gradients), excesses
