"""Section V: parameters of the contact model; and the matrices with which the cases compute."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sap_paper import contact_model, gurobi, interior_point
from sap_paper.convex_problem import ConvexProblem, project
from sap_paper.setting import Setting

import sap_islands as sap

DATA = Path(__file__).resolve().parents[1] / "data"


@pytest.fixture(scope="module")
def problem() -> sap.Problem:
    return sap.load_problem(DATA / "clutter_bin_8_t2p00.json")


def test_claims_of_the_paper_hold(setting: Setting) -> None:
    assert contact_model.run(setting).unmet() == []


def test_gradient_of_the_cost_matches_central_differences(problem: sap.Problem) -> None:
    matrices = ConvexProblem.of(problem)
    rng = np.random.default_rng(1)
    v = matrices.v_star + 1e-2 * rng.normal(size=len(matrices.v_star))
    along = rng.normal(size=len(v))
    gamma = project(matrices.y(v), matrices.friction, matrices.R)
    gradient = matrices.A @ (v - matrices.v_star) - matrices.J.T @ gamma.ravel()
    h = 1e-6
    slope = (matrices.cost(v + h * along) - matrices.cost(v - h * along)) / (2 * h)
    assert slope == pytest.approx(gradient @ along, rel=1e-5)


def test_matrices_agree_with_the_service(client: sap.Client, problem: sap.Problem) -> None:
    matrices = ConvexProblem.of(problem)
    solution = client.solve(problem, sap.Options(relative_tolerance=1e-10))
    assert matrices.cost(solution.velocity) == pytest.approx(solution.cost, rel=1e-10)
    assert matrices.momentum_error(solution.velocity) <= 1e-9
    assert matrices.slackness(solution) <= 1e-12


def test_interior_point_finds_the_same_velocities(client: sap.Client, problem: sap.Problem) -> None:
    matrices = ConvexProblem.of(problem)
    solution = client.solve(problem, sap.Options(relative_tolerance=1e-10))
    answer = interior_point.solve(matrices, 1e-10)
    apart = answer.velocity - solution.velocity
    assert np.sqrt(apart @ matrices.A @ apart) <= 1e-4 * np.sqrt(2 * solution.cost)


def test_gurobi_finds_the_same_velocities_within_its_licence(
    client: sap.Client,
) -> None:
    small = sap.load_problem(DATA / "clutter_bin_4_t2p00.json")
    matrices = ConvexProblem.of(small)
    assert gurobi.fits(matrices)
    solution = client.solve(small, sap.Options(relative_tolerance=1e-10))
    apart = gurobi.solve(matrices).velocity - solution.velocity
    assert np.sqrt(apart @ matrices.A @ apart) <= 1e-3 * np.sqrt(2 * solution.cost)
    large = sap.load_problem(DATA / "clutter_bin_40_t1p00.json.gz")
    assert not gurobi.fits(ConvexProblem.of(large))
