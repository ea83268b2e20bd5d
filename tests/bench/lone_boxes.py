"""Boxes that touch only the floor, each an island of one body with four contacts."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from sap_library import WireArrays
from table import Table

if TYPE_CHECKING:
    from bench import Bench

TIME_STEP = 0.01
HALF = 0.05  # half an edge [m]
RUNS = 61


def _corner_jacobian(x: float, y: float) -> np.ndarray:
    """Jacobian of the velocity of a lower corner, by angular and linear velocity."""
    r = (x, y, -HALF)
    cross = np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])
    return np.hstack([-cross, np.eye(3)])


def problem(count: int, moving: bool) -> WireArrays:
    """Boxes of 1 kg, from rest; moving ones were pushed and spun at random."""
    random = np.random.default_rng(1)
    inertia = (2 * HALF) ** 2 / 6
    free_motion = np.zeros((count, 6))
    free_motion[:, 5] = -9.81 * TIME_STEP
    if moving:
        free_motion[:, :4] += random.uniform(-1, 1, (count, 4))
    corners = [_corner_jacobian(x, y) for x in (-HALF, HALF) for y in (-HALF, HALF)]
    contacts = 4 * count
    arrays = {
        "trees.dofs": np.full(count, 6),
        "trees.dynamics_matrix": np.tile(np.diag([inertia] * 3 + [1.0] * 3).ravel(), count),
        "trees.free_motion_velocity": free_motion.ravel(),
        "trees.guess_velocity": np.zeros(6 * count),
        "contacts.tree_a": np.repeat(np.arange(count), 4),
        "contacts.tree_b": np.full(contacts, -1),
        "contacts.jacobian": np.tile(np.concatenate(corners).ravel(), count),
        "contacts.signed_distance": np.full(contacts, -2e-5),
        "contacts.stiffness": np.full(contacts, 1e5),
        "contacts.relaxation_time": np.full(contacts, TIME_STEP),
        "contacts.friction": np.full(contacts, 0.5),
    }
    return WireArrays(TIME_STEP, arrays)


def boxes(bench: Bench) -> Iterator[Table]:
    """Boxes that touch only the floor, warm: what an island of one body takes."""
    table = Table(
        "boxes",
        "Boxes on a floor, one thread",
        "boxes;motion;iterations;min us per box;median us per box",
    )
    for count in (1, 4, 1000):
        if not bench.wants(f"boxes/{count}"):
            continue
        for motion in ("rest", "moving"):
            given = problem(count, motion == "moving")
            solver = bench.solver()
            runs = [solver.solve(given) for _ in range(RUNS)]
            us = [1e6 * run.first_s / count for run in runs[1:]]
            iterations = max(run.iterations for run in runs)
            table.add(count, motion, iterations, f"{min(us):.2f}", f"{statistics.median(us):.2f}")
    yield table
