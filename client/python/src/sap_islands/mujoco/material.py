"""Stiffness and relaxation time of contacts: given, or derived from MuJoCo's solref and solimp.

MuJoCo's constraint force is f = (a_ref - a) / R with a_ref = -b v - k r and R = (1 - d) / d Â,
where d is the impedance of solimp at the penetration r and Â estimates J M^-1 J'. This is R of
frictionless contacts, joint limits and elliptic cones. The stiffness and relaxation time with the
same force at rest and the same time scale are

    stiffness         K   = k / R = k d / ((1 - d) Â)                                      [N/m]
    relaxation time   τ_d = b / k                                                          [s]

with k = d / (d_max ζ t_c)² and b = 2 / (d_max t_c) for solref = (t_c, ζ), and k = -solref[0] d /
d_max² and b = -solref[1] / d_max if both are negative. As in MuJoCo, t_c is at least 2 δt. With the
defaults, solref = (0.02, 1) and d = 0.9, a body of 1 kg rests 0.4 mm deep.

Limit: with MuJoCo's default pyramidal cone R depends on μ as well, and bodies rest equally deep
only if μ = 1. For impratio = 1, K is MuJoCo's normal stiffness times μ² (1 + μ²) / 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco

from sap_islands.arrays import FloatArray
from sap_islands.numba_kernels import compiled

_MIN_IMPEDANCE, _MAX_IMPEDANCE = 1e-4, 0.9999
_TINY = 1e-15  # lower bound of divisors
_ANY_TIME_CONSTANT = int(mujoco.mjtDisableBit.mjDSBL_REFSAFE)


@dataclass(frozen=True)
class Material:
    """Parameters of all contacts of a model; None means the value derived from the model.

    Attributes:
        stiffness: K of every contact [N/m].
        relaxation_time: τ_d of every contact [s].
        friction: μ of every contact [-]; None: that of MuJoCo's contact, 0 if condim is 1.
        beta: Near-rigid parameter β [-]; None: 1.
        sigma: Slip parameter σ [-]; None: 1e-3. A body at rest under gravity creeps by at most
            σ μ g δt [m/s].
    """

    stiffness: float | None = None
    relaxation_time: float | None = None
    friction: float | None = None
    beta: float | None = None
    sigma: float | None = None


@compiled
def stiffness_and_relaxation(
    solref: FloatArray,
    solimp: FloatArray,
    dt: float,
    disabled: int,
    violation: float,
    inverse_weight: float,
) -> tuple[float, float]:
    """K [N/m] and τ_d [s] of a constraint, by the formulas of this module.

    Args:
        solref: [2] of the constraint.
        solimp: [5] of the constraint: d_0, d_max, width [m], midpoint, power.
        dt: δt [s].
        disabled: `disableflags` of the model.
        violation: Penetration; only its magnitude counts [m].
        inverse_weight: Â [1/kg].
    """
    d = _impedance(solimp, violation)
    d_max = _clamp_impedance(solimp[1])
    if solref[0] > 0.0:
        time_constant = solref[0]
        if not disabled & _ANY_TIME_CONSTANT:
            time_constant = max(time_constant, 2.0 * dt)
        k = 1.0 / (d_max * time_constant * solref[1]) ** 2
        b = 2.0 / (d_max * time_constant)
    else:
        k = -solref[0] / d_max**2
        b = -solref[1] / d_max
    k = max(k * d, _TINY)
    return k * d / ((1.0 - d) * max(inverse_weight, _TINY)), b / k


@compiled
def _impedance(solimp: FloatArray, violation: float) -> float:
    """d: rises from d_0 to d_max over the width, along a sigmoid of two power functions."""
    lowest, middle = _clamp_impedance(solimp[0]), _clamp_impedance(solimp[3])
    power = max(solimp[4], 1.0)
    x = min(abs(violation) / max(solimp[2], _TINY), 1.0)
    if power == 1.0:  # a straight line, for which the midpoint does not matter
        y = x
    elif x <= middle:
        y = middle * _power(x / middle, power)
    else:
        y = 1.0 - (1.0 - middle) * _power((1.0 - x) / (1.0 - middle), power)
    return lowest + (_clamp_impedance(solimp[1]) - lowest) * y


@compiled
def _power(base: float, power: float) -> float:
    """base^power; 2, MuJoCo's default, takes a multiplication instead of pow."""
    return base * base if power == 2.0 else base**power


@compiled
def _clamp_impedance(impedance: float) -> float:
    return min(max(impedance, _MIN_IMPEDANCE), _MAX_IMPEDANCE)
