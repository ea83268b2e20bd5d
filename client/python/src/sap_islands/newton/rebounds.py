"""Rebounds: the step that closes a gap lands on the surface, and the next one leaves it.

    u² = v_n v*_n + 2 a φ                                   speed at the surface
    v̂_n = -a δt / 2 + sqrt((a δt / 2)² + (e u)² - 2 a φ)    a = (v_n - v*_n) / δt

A step ends at x + δt v with v of its end, so that its points lie on the parabola whose speed there
is sqrt(v_n v*_n). With v̂_n the way up is the parabola that has left the surface at e u: what falls
from h rises to e² h, with an error of second order in δt. A contact that is found within the
surface rebounds at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sap_islands.arrays import FloatArray
from sap_islands.newton.layout import Indices

LEAST_REBOUND = 0.1  # [m/s]
_TOUCHES = 0.1  # gap of what has landed, in steps at the speed of the landing [-]


@dataclass
class Landings:
    """Speeds at which pairs of shapes landed on each other in the last step.

    Attributes:
        speed: By pair of shapes [m/s].
        twist: [bodies, 6] at the end of that step. A body with another one was moved by the program
            since, and has not landed.
    """

    speed: dict[tuple[int, int], float] = field(default_factory=dict)
    twist: FloatArray = field(default_factory=lambda: np.zeros((0, 6)))

    def speeds(self, shape: Indices, body: Indices, twist: FloatArray) -> FloatArray:
        """[C] speeds at which the shapes of contacts landed; 0: they did not."""
        speed = np.zeros(len(shape))
        if self.speed and len(twist) == len(self.twist):
            kept = np.append(np.all(twist == self.twist, axis=1), [True])  # -1: the world
            for i in np.flatnonzero(kept[body].all(axis=1)):
                speed[i] = self.speed.get(_pair(shape[i]), 0.0)
        return speed

    def remember(
        self, shape: Indices, speed: FloatArray, landed: NDArray[np.bool_], twist: FloatArray
    ) -> None:
        """Keeps the speeds of the contacts that have landed in a step."""
        self.speed = {}
        for i in np.flatnonzero(landed):
            pair = _pair(shape[i])
            self.speed[pair] = max(self.speed.get(pair, 0.0), float(speed[i]))
        self.twist = twist


def _pair(shape: Indices) -> tuple[int, int]:
    first, second = sorted(shape.tolist())
    return first, second


def surface_speeds(
    v_n: FloatArray, free_v_n: FloatArray, gap: FloatArray, time_step: float
) -> FloatArray:
    """[C] u of contacts that approach freely; 0 of others."""
    a = np.maximum(v_n - free_v_n, 0) / time_step
    square = np.maximum(v_n * free_v_n, 0) + 2 * a * gap
    return np.where(free_v_n < 0, np.sqrt(np.maximum(square, 0)), 0)


def rebound_targets(
    v_n: FloatArray,
    free_v_n: FloatArray,
    gap: FloatArray,
    landing: FloatArray,
    restitution: FloatArray,
    time_step: float,
) -> FloatArray:
    """[C] v̂_n of contacts that rebound in this step; 0 of others.

    Args:
        v_n: Of the shapes at the beginning of the step [m/s].
        free_v_n: At its end without contacts [m/s].
        gap: At its beginning [m].
        landing: As `Landings.speeds` [m/s].
        restitution: e.
        time_step: δt [s].
    """
    found_within = np.where(gap < 0, surface_speeds(v_n, free_v_n, gap, time_step), 0)
    has_landed = (landing > 0) & (gap < _TOUCHES * time_step * landing)
    leaves = restitution * np.where(has_landed, landing, found_within)
    half = np.maximum(v_n - free_v_n, 0) / 2  # a δt / 2
    climb = half**2 + leaves**2 - 4 * half / time_step * gap
    return np.where(leaves > LEAST_REBOUND, np.sqrt(np.maximum(climb, 0)) - half, 0)
