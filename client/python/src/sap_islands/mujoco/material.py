"""Stiffness and relaxation time of a contact: given, or derived from MuJoCo's solref and solimp.

MuJoCo's constraint force is f = (a_ref - a) / R with a_ref = -b v - k r, where R = (1 - d) / d Â, d
is the impedance of solimp at the penetration r, and Â estimates J M^-1 J'. For the force of a body
at rest to be the same, and its time scale, the service is given

    stiffness         K   = k / R = k d / ((1 - d) Â)                                      [N/m]
    relaxation time   τ_d = b / k                                                          [s]

with k = d / (d_max ζ t_c)² and b = 2 / (d_max t_c) for solref = (t_c, ζ), and k = -solref[0] d /
d_max² and b = -solref[1] / d_max where both are negative. As MuJoCo does, t_c is taken for 2 δt at
least. With the defaults, solref = (0.02, 1) and d = 0.9, a body of 1 kg rests 0.4 mm deep.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from sap_islands.arrays import FloatArray

_LEAST_IMPEDANCE, _MOST_IMPEDANCE = 1e-4, 0.9999
_LEAST_WEIGHT = 1e-15  # of the inverse weight of what cannot move


@dataclass(frozen=True)
class Material:
    """How contacts behave; what is None is derived from the model.

    Attributes:
        stiffness: K of every contact [N/m].
        relaxation_time: τ_d of every contact [s].
        friction: μ of every contact [-]; None: that of MuJoCo's contact, 0 where condim is 1.
        beta: Near-rigid parameter β; None: 1.
        sigma: Slip parameter σ; None: 1e-3. What is held creeps by at most σ μ g δt per step [m/s].
    """

    stiffness: float | None = None
    relaxation_time: float | None = None
    friction: float | None = None
    beta: float | None = None
    sigma: float | None = None


def impedance(solimp: FloatArray, violation: FloatArray) -> FloatArray:
    """D of each constraint, between 0 and 1.

    Args:
        solimp: [n, 5] d_0, d_max, width [m], midpoint, power.
        violation: [n] r, of any sign [m].
    """
    limits = np.clip(solimp[:, :2], _LEAST_IMPEDANCE, _MOST_IMPEDANCE)
    lowest, highest = limits[:, 0], limits[:, 1]
    width = np.maximum(solimp[:, 2], _LEAST_WEIGHT)
    middle = np.clip(solimp[:, 3], _LEAST_IMPEDANCE, _MOST_IMPEDANCE)
    power = np.maximum(solimp[:, 4], 1.0)
    x = np.minimum(np.abs(violation) / width, 1.0)
    below = x**power / middle ** (power - 1)
    above = 1 - (1 - x) ** power / (1 - middle) ** (power - 1)
    y = np.where(x <= middle, below, above)
    return lowest + np.where(power == 1, x, y) * (highest - lowest)


def stiffness_and_relaxation(
    model: mujoco.MjModel,
    solref: FloatArray,
    solimp: FloatArray,
    violation: FloatArray,
    inverse_weight: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """K [N/m] and τ_d [s] of constraints, by the rule above.

    Args:
        model: For its time step.
        solref: [n, 2] of each constraint.
        solimp: [n, 5] of each constraint.
        violation: [n] penetration, of any sign [m].
        inverse_weight: [n] Â [1/kg].
    """
    d = impedance(solimp, violation)
    d_max = np.clip(solimp[:, 1], _LEAST_IMPEDANCE, _MOST_IMPEDANCE)
    by_time = solref[:, 0] > 0
    time_constant = np.where(by_time, solref[:, 0], 1.0)
    if not model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_REFSAFE):
        time_constant = np.maximum(time_constant, 2 * model.opt.timestep)
    damping_ratio = np.where(by_time, solref[:, 1], 1.0)
    k_by_time = d / (d_max * time_constant * damping_ratio) ** 2
    k = np.where(by_time, k_by_time, -solref[:, 0] * d / d_max**2)
    b = np.where(by_time, 2 / (d_max * time_constant), -solref[:, 1] / d_max)
    k = np.maximum(k, _LEAST_WEIGHT)
    stiffness = k * d / ((1 - d) * np.maximum(inverse_weight, _LEAST_WEIGHT))
    return stiffness, b / k
