"""The friction of every contact of a solution, and what its cone allows."""

from __future__ import annotations

from typing import Any

import numpy as np
import sap_islands as sap
from sap_islands.arrays import FloatArray


def friction_and_bound(
    problem: sap.Problem, solution: sap.Solution
) -> tuple[FloatArray, FloatArray]:
    """Friction of each contact, axes scaled to the coefficient of the first, and bound [N s].

    An axis of coefficient 0 that carries an impulse gives infinite friction.
    """
    groups = [group for group in (problem.contacts, problem.body_contacts) if group.count]
    coefficients = np.concatenate([np.empty((0, 5)), *map(_coefficients, groups)])
    angular = np.zeros((len(coefficients), 3))
    angular[(coefficients[:, 2:] > 0).any(axis=1)] = solution.angular_impulse
    impulse = np.column_stack((solution.impulse[:, :2], angular))
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = np.where(impulse == 0, 0.0, impulse / coefficients)
    friction = coefficients[:, 0] * np.linalg.norm(scaled, axis=1)
    normal = np.concatenate([np.empty(0), *(_extra_normal(g, problem.time_step) for g in groups)])
    lagged = np.concatenate([np.empty(0), *map(_lagged_normal, groups)])
    allowed = np.where(np.isnan(lagged), solution.impulse[:, 2] + normal, lagged)
    return friction, coefficients[:, 0] * allowed


def _or_zero(array: Any, count: int) -> Any:
    return array if array.size else np.zeros(count)


def _coefficients(group: Any) -> FloatArray:
    """[C, 5] about t1, t2 linear, then t1, t2, n angular."""
    n = group.count
    rolling = _or_zero(group.rolling_friction.ravel(), 2 * n).reshape(n, 2)
    second = group.friction_2 if group.friction_2.size else group.friction
    return np.column_stack((group.friction, second, rolling, _or_zero(group.torsional_friction, n)))


def _extra_normal(group: Any, time_step: float) -> Any:
    return time_step * _or_zero(group.adhesion, group.count)


def _lagged_normal(group: Any) -> Any:
    """The normal impulse that bounds friction where it is an input, otherwise NaN."""
    if group.hunt_crossley is None:
        return np.full(group.count, np.nan)
    is_lagged = group.law == sap.ContactLaw.HUNT_CROSSLEY_LAGGED
    return np.where(is_lagged, group.hunt_crossley.lagged_normal_impulse, np.nan)
