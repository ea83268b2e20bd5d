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


def constants(
    time_step: float, disabled: int, solref: FloatArray, solimp: FloatArray
) -> FloatArray:
    """What of the rule does not depend on the penetration, [9, n]; for `stiffness_and_relaxation`.

    Args:
        time_step: δt [s].
        disabled: `disableflags` of the model.
        solref: [n, 2] of each constraint.
        solimp: [n, 5] of each constraint: d_0, d_max, width [m], midpoint, power.
    """
    lowest, d_max, middle = np.clip(solimp[:, [0, 1, 3]], _LEAST_IMPEDANCE, _MOST_IMPEDANCE).T
    width = np.maximum(solimp[:, 2], _LEAST_WEIGHT)
    power = np.maximum(solimp[:, 4], 1.0)
    # With a power of one the impedance is a straight line, wherever the midpoint is.
    middle = np.where(power == 1, 1.0, middle)
    by_time = solref[:, 0] > 0
    time_constant = np.where(by_time, solref[:, 0], 1.0)
    if not disabled & int(mujoco.mjtDisableBit.mjDSBL_REFSAFE):
        time_constant = np.maximum(time_constant, 2 * time_step)
    damping_ratio = np.where(by_time, solref[:, 1], 1.0)
    k_by_time = 1 / (d_max * time_constant * damping_ratio) ** 2
    k = np.where(by_time, k_by_time, -solref[:, 0] / d_max**2)
    b = np.where(by_time, 2 / (d_max * time_constant), -solref[:, 1] / d_max)
    below = middle ** (1 - power)
    above = np.where(middle < 1, (1 - np.minimum(middle, _MOST_IMPEDANCE)) ** (1 - power), 0.0)
    return np.stack((lowest, d_max - lowest, 1 / width, middle, power, below, above, k, b))


def stiffness_and_relaxation(
    constants: FloatArray, violation: FloatArray, inverse_weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """K [N/m] and τ_d [s] of constraints, by the rule above.

    Args:
        constants: [9, n] of each constraint.
        violation: [n] penetration, of any sign [m].
        inverse_weight: [n] Â [1/kg].
    """
    lowest, span, per_width, middle, power, below, above, k, b = constants
    x = np.minimum(np.abs(violation) * per_width, 1.0)
    y = np.where(x <= middle, below * x**power, 1 - above * (1 - x) ** power)
    d = lowest + span * y
    k = np.maximum(k * d, _LEAST_WEIGHT)
    stiffness = k * d / ((1 - d) * np.maximum(inverse_weight, _LEAST_WEIGHT))
    return stiffness, b / k
