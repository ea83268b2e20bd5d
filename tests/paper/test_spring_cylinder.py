"""Section VI-B: energies and orders of accuracy of the two-stage schemes."""

from __future__ import annotations

import numpy as np
import pytest
from sap_paper import spring_cylinder
from sap_paper.setting import Setting
from sap_paper.theta_method import (
    EXPLICIT,
    IMPLICIT,
    MIDPOINT,
    SYMPLECTIC,
    Scheme,
    ThetaMethod,
)


@pytest.mark.parametrize("scheme", [EXPLICIT, SYMPLECTIC, IMPLICIT, MIDPOINT])
def test_free_motion_velocity_satisfies_the_momentum_equation(scheme: Scheme) -> None:
    system, dt = spring_cylinder.system(damping=3.0), 0.02
    method = ThetaMethod(system, scheme, dt)
    rng = np.random.default_rng(1)
    q0, v0 = rng.normal(size=3), rng.normal(size=3)
    v = method.free_motion(q0, v0)
    q = method.advance(q0, v0, v)
    q_theta = scheme.theta * q + (1 - scheme.theta) * q0
    v_theta = scheme.theta * v + (1 - scheme.theta) * v0
    k = system.force - system.stiffness @ q_theta - system.damping @ v_theta
    assert np.allclose(system.mass @ (v - v0), dt * k, rtol=1e-12, atol=1e-14)


def test_damper_dissipates_as_the_exact_oscillator(setting: Setting) -> None:
    damping, dt, steps = 0.2, 1e-3, 1000
    q, v = spring_cylinder.simulate(setting.client, MIDPOINT, 0.0, steps, dt, damping)
    rate = damping / (2 * spring_cylinder.MASS)
    omega = np.sqrt(spring_cylinder.SPRING / spring_cylinder.MASS - rate**2)
    t = dt * np.arange(steps + 1)
    exact = np.cos(omega * t) + rate / omega * np.sin(omega * t)
    exact *= spring_cylinder.START * np.exp(-rate * t)
    # The midpoint rule is slow by the part (ω dt)² / 12 of the frequency.
    phase = (omega * dt) ** 2 / 12 * omega * t[-1]
    assert np.max(np.abs(q[:, 0] - exact)) <= phase * spring_cylinder.START
    assert spring_cylinder.energy(q, v)[-1] < spring_cylinder.ENERGY


def test_claims_of_the_paper_hold(setting: Setting) -> None:
    assert spring_cylinder.run(setting).unmet() == []
