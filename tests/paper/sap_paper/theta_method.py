"""The two-stage θ-method for systems whose non-contact forces are linear.

    M (v - v0) = dt k(q^θ, v^θ) + J(q0)' γ,      q = q0 + dt v^θvq
    q^θ = θ q + (1 - θ) q0,   v^θ = θ v + (1 - θ) v0,   v^θvq = θ_vq v + (1 - θ_vq) v0
    k(q, v) = f - K q - D v,                     A = M + dt² θ θ_vq K + dt θ D

[Castro et al. 2021, Sections II-C and II-D]. The first stage computes v*; the service solves the
second stage.
Explicit Euler is (0, 0), symplectic Euler (0, 1), implicit Euler (1, 1), midpoint (1/2, 1/2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sap_islands.arrays import FloatArray


@dataclass(frozen=True)
class Scheme:
    """A member of the family of schemes.

    Attributes:
        name: Common name.
        theta: θ [-].
        theta_vq: θ_vq [-].
    """

    name: str
    theta: float
    theta_vq: float


EXPLICIT = Scheme("explicit Euler", 0.0, 0.0)
SYMPLECTIC = Scheme("symplectic Euler", 0.0, 1.0)
IMPLICIT = Scheme("implicit Euler", 1.0, 1.0)
MIDPOINT = Scheme("midpoint", 0.5, 0.5)


@dataclass(frozen=True)
class LinearSystem:
    """M, K, D and f of k(q, v) = f - K q - D v, with velocities q' = v.

    Attributes:
        mass: [n, n] M [kg, kg m, kg m²].
        stiffness: [n, n] K [N/m].
        damping: [n, n] D [N s/m].
        force: [n] f [N].
    """

    mass: FloatArray
    stiffness: FloatArray
    damping: FloatArray
    force: FloatArray


class ThetaMethod:
    """The first stage and the update of positions, for one system, scheme and time step."""

    def __init__(self, system: LinearSystem, scheme: Scheme, dt: float) -> None:
        theta, theta_vq = scheme.theta, scheme.theta_vq
        self._system = system
        self._scheme = scheme
        self._dt = dt
        self.A: FloatArray = (
            system.mass + dt**2 * theta * theta_vq * system.stiffness + dt * theta * system.damping
        )
        self._inverse = np.linalg.inv(self.A)

    def free_motion(self, q0: FloatArray, v0: FloatArray) -> FloatArray:
        """v* with m(v*) = 0 [m/s, rad/s]; one linear solve is exact, since m is linear."""
        system, dt, scheme = self._system, self._dt, self._scheme
        q_theta = q0 + scheme.theta * dt * (1 - scheme.theta_vq) * v0
        force = system.force - system.stiffness @ q_theta
        force -= (1 - scheme.theta) * (system.damping @ v0)
        v_star: FloatArray = self._inverse @ (system.mass @ v0 + dt * force)
        return v_star

    def advance(self, q0: FloatArray, v0: FloatArray, v: FloatArray) -> FloatArray:
        """Positions at the end of the step [m, rad]."""
        theta_vq = self._scheme.theta_vq
        return q0 + self._dt * (theta_vq * v + (1 - theta_vq) * v0)
