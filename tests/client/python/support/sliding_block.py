"""A block that slides along x on a floor, with its solution and derivatives in closed form.

The contact is at the center of mass, so that the block does not turn. With S = R_n + μ² R_t and
D = S + (1 + μ²)/m, for v*_x and φ0 such that it slides,

    γ = (v̂_n - v*_z + μ v*_x) / D,   v_x = v*_x - μ γ/m,   v̂_n = -φ0 / (δt + τ)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import sap_islands as sap
from sap_islands.arrays import FloatArray

TIME_STEP = 0.01
RELAXATION_TIME = 0.02
R_T, R_N = 2e-3, 3e-2


@dataclass(frozen=True)
class SlidingBlock:
    """The inputs that the tests vary.

    Attributes:
        mass: m [kg].
        friction: μ [-].
        speed: v*_x [m/s].
        distance: φ0 [m].
    """

    mass: float = 2.0
    friction: float = 0.4
    speed: float = 1.5
    distance: float = -2e-4

    def problem(self) -> sap.Problem:
        """The contact problem."""
        return sap.Problem(
            TIME_STEP,
            bodies=sap.RigidBodies(
                mass=[self.mass],
                inertia=[[0.01, 0.02, 0.03, 0.001, 0.002, 0.003]],
                center_of_mass=[[0, 0, 0]],
                free_motion_velocity=[[self.speed, 0, -9.81 * TIME_STEP, 0, 0, 0]],
            ),
            body_contacts=sap.BodyContacts(
                body_a=[0],
                body_b=[sap.WORLD],
                point=[[0, 0, 0]],
                normal=[[0, 0, 1]],
                signed_distance=[self.distance],
                stiffness=[1e6],
                relaxation_time=[RELAXATION_TIME],
                friction=[self.friction],
                regularization_t=[R_T],
                regularization_n=[R_N],
            ),
        )

    @property
    def _denominator(self) -> float:
        mu_2 = self.friction**2
        return R_N + mu_2 * R_T + (1 + mu_2) / self.mass

    @property
    def impulse(self) -> float:
        """γ, the normal impulse [N s]."""
        target = -self.distance / (TIME_STEP + RELAXATION_TIME)
        return (target + 9.81 * TIME_STEP + self.friction * self.speed) / self._denominator

    @property
    def velocity(self) -> float:
        """v_x [m/s]."""
        return self.speed - self.friction * self.impulse / self.mass

    def slopes_of_velocity(self) -> dict[str, FloatArray]:
        """Derivatives of v_x by the path of the input."""
        m, mu, D, gamma = self.mass, self.friction, self._denominator, self.impulse
        by_friction = (self.speed - 2 * mu * gamma * (R_T + 1 / m)) / D
        by_mass = gamma * (1 + mu**2) / m**2 / D
        v_star = np.array([[1 - mu**2 / (m * D), 0, mu / (m * D), 0, 0, 0]])
        return {
            "body_contacts.friction": np.array([-(gamma + mu * by_friction) / m]),
            "bodies.mass": np.array([mu * gamma / m**2 - mu / m * by_mass]),
            "bodies.free_motion_velocity": v_star,
            "applied_impulse": v_star.ravel() / m,
            "body_contacts.signed_distance": np.array(
                [mu / (m * D) / (TIME_STEP + RELAXATION_TIME)]
            ),
        }

    def difference(self, name: str, step: float = 1e-6) -> float:
        """Central difference of v_x along one of the attributes."""
        value = getattr(self, name)
        above = replace(self, **{name: value + step})
        below = replace(self, **{name: value - step})
        return (above.velocity - below.velocity) / (2 * step)
