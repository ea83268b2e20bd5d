"""Momentum A v of problems with coupled trees, of which the whole A is the oracle."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sap_islands import Problem, RigidBodies, Trees
from sap_islands._gradients import momentum
from sap_islands.arrays import FloatArray

DOFS = (2, 3, 1)
PAIRS = ((1, 0), (2, 1))


def _random_problem(seed: int) -> tuple[Problem, FloatArray]:
    """Three trees, the second coupled with both others, and a body; and the whole matrix."""
    random = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(DOFS)])
    place = [slice(a, b) for a, b in itertools.pairwise(starts)]
    A = np.zeros((12, 12))
    for tree in place:
        block = random.normal(size=(tree.stop - tree.start,) * 2)
        A[tree, tree] = block @ block.T + 9 * np.eye(len(block))
    couplings = []
    for a, b in PAIRS:
        block = random.normal(size=(DOFS[a], DOFS[b]))
        A[place[a], place[b]], A[place[b], place[a]] = block, block.T
        couplings.append(block.ravel())
    A[6:9, 6:9] = 2 * np.eye(3)
    A[9:, 9:] = np.diag([1.0, 2.0, 3.0])
    trees = Trees(
        dofs=np.array(DOFS, np.uint32),
        dynamics_matrix=np.concatenate([A[tree, tree].ravel() for tree in place]),
        free_motion_velocity=np.zeros(6),
        coupled_a=np.array([a for a, _ in PAIRS], np.int32),
        coupled_b=np.array([b for _, b in PAIRS], np.int32),
        coupling_block=np.concatenate(couplings),
    )
    bodies = RigidBodies(
        mass=[2.0],
        inertia=[[1.0, 2.0, 3.0, 0.0, 0.0, 0.0]],
        center_of_mass=np.zeros((1, 3)),
        free_motion_velocity=np.zeros((1, 6)),
    )
    return Problem(0.01, trees=trees, bodies=bodies), A


@pytest.mark.parametrize("seed", range(3))
def test_an_impulse_changes_velocities_by_the_inverse_of_the_whole_matrix(seed: int) -> None:
    problem, A = _random_problem(seed)
    impulse = np.random.default_rng(seed + 9).normal(size=12)
    change = momentum.velocity_change(problem, impulse)
    assert A @ change == pytest.approx(impulse, abs=1e-12)


@pytest.mark.parametrize("path", ["trees.coupling_block", "trees.dynamics_matrix"])
def test_changes_and_gradients_of_momentum_are_transposes(path: str) -> None:
    problem, _ = _random_problem(0)
    random = np.random.default_rng(1)
    size = {"trees.coupling_block": 9, "trees.dynamics_matrix": 14}[path]
    direction = random.normal(size=size)
    left, right = random.normal(size=(2, 12))
    forward = left @ momentum.momentum_change(problem, {path: direction}, right)
    reverse = direction @ momentum.gradient_of_momentum(problem, path, left, right)
    assert forward == pytest.approx(reverse, rel=1e-12)


def test_a_change_of_a_coupling_is_one_of_two_blocks_of_the_whole_matrix() -> None:
    problem, A = _random_problem(0)
    moved, A_moved = _random_problem(0)
    moved.trees.coupling_block = moved.trees.coupling_block + 0.1
    A_moved[2:5, 0:2] += 0.1
    A_moved[0:2, 2:5] += 0.1
    A_moved[5:6, 2:5] += 0.1
    A_moved[2:5, 5:6] += 0.1
    v = np.random.default_rng(2).normal(size=12)
    change = momentum.momentum_change(problem, {"trees.coupling_block": np.full(9, 0.1)}, v)
    assert change == pytest.approx((A_moved - A) @ v, abs=1e-12)
    impulse = momentum.velocity_change(moved, A_moved @ v)
    assert impulse == pytest.approx(v, abs=1e-12)
