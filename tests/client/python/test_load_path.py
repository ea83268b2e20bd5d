"""RegularizationRule.LOAD_PATH: Delassus estimates by the load that contacts pass on."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import pytest
import sap_islands as sap
from sap_islands.arrays import FloatArray

Pair: TypeAlias = tuple[int, int]
Side: TypeAlias = tuple[Pair, int]

GRAVITY_STEP = 0.0981  # m/s that gravity gives in a step


def tower(masses: list[float], **regularization: float) -> sap.Problem:
    """Balls of 1 m on top of each other, on the floor, falling from rest."""
    count = len(masses)
    free = np.zeros((count, 6))
    free[:, 2] = -GRAVITY_STEP
    inertia = np.outer(masses, [0.1, 0.1, 0.1, 0.0, 0.0, 0.0])
    height = np.arange(count)
    zero = np.zeros(count)
    return sap.Problem(
        0.01,
        bodies=sap.RigidBodies(
            mass=masses,
            inertia=inertia,
            center_of_mass=np.column_stack((zero, zero, height + 0.5)),
            free_motion_velocity=free,
            initial_velocity=np.zeros((count, 6)),
        ),
        body_contacts=sap.BodyContacts(
            body_a=height,
            body_b=height - 1,
            point=np.column_stack((zero, zero, height)),
            normal=[0.0, 0.0, 1.0],
            signed_distance=0.0,
            stiffness=1e12,
            relaxation_time=0.01,
            friction=0.5,
        ),
        regularization=sap.Regularization(rule=sap.RegularizationRule.LOAD_PATH, **regularization),
    )


def test_every_level_of_a_tower_carries_what_is_on_it(client: sap.Client) -> None:
    masses = [1.0, 1000.0, 2.0, 0.5, 5000.0]
    carried = np.cumsum(masses[::-1])[::-1]
    w = client.solve(tower(masses)).delassus_estimate
    assert w * carried == pytest.approx(np.ones(5), rel=1e-12)


def test_estimates_of_the_full_rule_are_returned_too(client: sap.Client) -> None:
    problem = tower([1.0, 3.0])
    problem.regularization.rule = sap.RegularizationRule.FULL
    # Estimate for a ball of mass m: |diag(a, a, 1 / m)|_F / 3, a = 1 / m + r² / I, I = 0.1 m.
    alone = np.array([3.5, 3.5, 1.0])
    expected = [np.linalg.norm(alone), np.linalg.norm(alone * (1 + 1 / 3))]
    w = client.solve(problem).delassus_estimate
    assert 3 * w == pytest.approx(expected, rel=1e-12)


def test_a_mask_leaves_estimates_out(client: sap.Client) -> None:
    options = sap.Options(response_mask=("velocity",))
    assert client.solve(tower([1.0, 3.0]), options).delassus_estimate.size == 0


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("reference_speed", [None, 0.05])
def test_estimates_are_those_of_the_dense_formulas(
    client: sap.Client, seed: int, reference_speed: float | None
) -> None:
    problem = random_trees(np.random.default_rng(seed), reference_speed)
    w = client.solve(problem).delassus_estimate
    full, expected = dense_estimates(problem)
    assert w == pytest.approx(expected, rel=1e-10)
    assert np.sum(expected < 0.99 * full) > 3
    assert (w <= full * (1 + 1e-14)).all()


def test_initial_velocities_are_needed(client: sap.Client) -> None:
    problem = tower([1.0, 3.0])
    problem.bodies.initial_velocity = np.empty((0, 6))
    with pytest.raises(sap.InvalidArgument, match=r"bodies\.initial_velocity has 0 values"):
        client.solve(problem)


def test_derivatives_need_held_estimates(client: sap.Client) -> None:
    problem = tower([1.0, 3.0])
    cotangent = sap.Cotangent(velocity=np.ones(12))
    with pytest.raises(sap.InvalidArgument, match="hold_delassus is false; it must be true"):
        client.differentiate(problem, [cotangent])
    gradient = client.differentiate(problem, [cotangent], hold_delassus=True).gradients[0]
    given = tower([1.0, 3.0])
    given.body_contacts.delassus_estimate = client.solve(problem).delassus_estimate
    given.regularization.rule = sap.RegularizationRule.FULL
    expected = client.differentiate(given, [cotangent]).gradients[0]
    assert gradient.bodies.mass == pytest.approx(expected.bodies.mass, rel=1e-9)
    assert gradient.delassus_estimate == pytest.approx(expected.delassus_estimate, rel=1e-9)


def test_a_problem_survives_its_message() -> None:
    problem = tower([1.0, 3.0], load_reference_speed=0.25)
    again = sap.Problem.from_bytes(problem.to_bytes())
    assert again.regularization == problem.regularization
    assert (again.bodies.initial_velocity == problem.bodies.initial_velocity).all()


def random_trees(rng: np.random.Generator, reference_speed: float | None) -> sap.Problem:
    """Trees of 2 to 6 velocities with contacts among each other and with the world."""
    dofs = rng.integers(2, 7, 12)
    blocks = []
    for n in dofs:
        factor = rng.standard_normal((n, n))
        blocks.append((factor @ factor.T + np.eye(n)) * rng.uniform(0.1, 10))
    free = rng.standard_normal(dofs.sum())
    pairs: list[tuple[int, int]] = []
    for _ in range(18):
        a, b = rng.choice(12, 2, replace=False)
        pairs += [(a, -1 if rng.random() < 0.3 else b)] * int(rng.integers(1, 4))
    jacobian = [rng.standard_normal(3 * (dofs[a] + (dofs[b] if b >= 0 else 0))) for a, b in pairs]
    return sap.Problem(
        0.01,
        trees=sap.Trees.from_blocks(
            blocks,
            free,
            initial_velocity=free - rng.uniform(-0.2, 0.2, len(free)),
        ),
        contacts=sap.Contacts(
            tree_a=[a for a, _ in pairs],
            tree_b=[b for _, b in pairs],
            jacobian=np.concatenate(jacobian),
            signed_distance=-0.001,
            stiffness=1e6,
            relaxation_time=0.01,
            friction=0.5,
        ),
        regularization=sap.Regularization(
            rule=sap.RegularizationRule.LOAD_PATH, load_reference_speed=reference_speed
        ),
    )


def dense_estimates(problem: sap.Problem) -> tuple[FloatArray, FloatArray]:
    """Estimates of FULL and of LOAD_PATH for each contact, by the formulas, with dense arrays."""
    blocks = problem.trees.blocks()
    starts = np.concatenate(([0], np.cumsum(problem.trees.dofs))).astype(int)
    gain = problem.trees.free_motion_velocity - problem.trees.initial_velocity
    d = [gain[starts[t] : starts[t + 1]] for t in range(len(blocks))]
    trees = range(len(blocks))
    pairs: dict[Pair, list[int]] = {}
    J: list[dict[int, FloatArray]] = []
    at = 0
    for i, (a, b) in enumerate(
        zip(problem.contacts.tree_a.tolist(), problem.contacts.tree_b.tolist(), strict=True)
    ):
        sides = {}
        for tree in (a, b):
            if tree >= 0:
                n = len(blocks[tree])
                sides[tree] = problem.contacts.jacobian[at : at + 3 * n].reshape(3, n)
                at += 3 * n
        J.append(sides)
        pairs.setdefault((min(a, b), max(a, b)), []).append(i)

    def alone(i: int, tree: int) -> FloatArray:
        W: FloatArray = J[i][tree] @ np.linalg.solve(blocks[tree], J[i][tree].T)
        return W

    def speed(pair: Pair, tree: int) -> float:
        return max(float(np.linalg.norm(J[i][tree] @ d[tree])) for i in pairs[pair])

    U = {(pair, t): speed(pair, t) for pair in pairs for t in pair if t >= 0}
    largest = {pair: max(U[pair, t] for t in pair if t >= 0) for pair in pairs}
    f: dict[Side, float] = {}
    mass = np.zeros(len(blocks))
    for t in trees:
        mine = [pair for pair in pairs if t in pair]
        if not mine:
            continue
        squared = {}
        for pair in mine:
            press = np.mean([-(J[i][t] @ d[t])[2] for i in pairs[pair]])
            squareness = max(0.0, press) / U[pair, t]
            squared[pair] = (max(0.0, (squareness - 0.2) / 0.8) * U[pair, t]) ** 2
        total = sum(squared.values())
        for pair in mine:
            f[pair, t] = squared[pair] / total if total else 0.0
        mass[t] = d[t] @ blocks[t] @ d[t] / max(U[pair, t] for pair in mine) ** 2
    own = {
        (pair, t): float(d[t] @ blocks[t] @ d[t] / (U[pair, t] * largest[pair])) for pair, t in U
    }
    received, limit = _received(list(pairs), f, own, mass)
    full = np.array([np.linalg.norm(sum(alone(i, t) for t in J[i])) / 3 for i in range(len(J))])
    w = full.copy()
    for pair, contacts in pairs.items():
        touched = [t for t in pair if t >= 0]
        M = min(sum(f[pair, t] * (own[pair, t] + received[t]) for t in touched), limit[pair[1]])
        for i in contacts:
            if M <= 0:
                continue
            w[i] = min(w[i], len(contacts) / M)
            u_ref = problem.regularization.load_reference_speed
            if u_ref is not None and len(touched) == 2:
                heavier = min(np.linalg.norm(alone(i, t)) for t in touched) / 3
                w[i] = min(w[i], max(len(contacts) * u_ref / (M * largest[pair]), heavier))
    return full, w


def _received(
    pairs: list[Pair], f: dict[Side, float], own: dict[Side, float], mass: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """What each tree receives, and the mass of its component."""
    trees = range(len(mass))
    component = list(trees)
    for _ in trees:
        for a, b in pairs:
            if a >= 0:
                component[a] = component[b] = min(component[a], component[b])
    limit = np.array([mass[np.array(component) == component[t]].sum() for t in trees])
    received, active = np.zeros(len(mass)), np.ones(len(mass), bool)
    for _ in range(64):
        new = np.zeros(len(mass))
        for a, b in pairs:
            if a >= 0:
                new[a] += f[(a, b), b] * (own[(a, b), b] + received[b])
                new[b] += f[(a, b), a] * (own[(a, b), a] + received[a])
        new = np.where(active, np.minimum(new, limit), received)
        moved = np.abs(new - received) > 1e-3 * new
        received = new
        active &= np.array(
            [any(moved[s] for s in trees if component[s] == component[t]) for t in trees]
        )
    return received, limit
