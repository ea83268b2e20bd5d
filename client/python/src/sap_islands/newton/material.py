"""How contacts of Newton become contacts of the problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sap_islands.problem import Regularization, RegularizationRule


@dataclass(frozen=True)
class Material:
    """Contact parameters other than friction and restitution, which are those of the shapes.

    Attributes:
        relaxation_time: Time in which a penetration decays [s]; None: 20 ms, but at least four
            steps.
        max_push_out_speed: Largest speed at which bodies that overlap are pushed apart [m/s].
        rule: Estimate of the Delassus operator. With `LOAD_PATH` light bodies under heavy ones rest
            as deep as a single body does.
        slip_parameter: σ in R_t = σ w: slip of contacts that stick [-].
        reference_time_step: Time step at which contacts have this σ [s], so that creep does not
            depend on the length of steps; None: that of each step.
    """

    relaxation_time: float | None = None
    max_push_out_speed: float = 0.1
    rule: RegularizationRule = RegularizationRule.LOAD_PATH
    slip_parameter: float = 1e-3
    reference_time_step: float | None = None

    @classmethod
    def rigid(cls, **given: Any) -> Material:
        """With σ of `sap_islands.Regularization.rigid`, and other attributes as given.

        Contacts then creep by a thousandth of what they do by default.
        """
        return cls(**{"slip_parameter": Regularization.rigid().sigma} | given)

    def relaxation_time_of(self, time_step: float) -> float:
        """The relaxation time at a time step [s]."""
        return self.relaxation_time or max(0.02, 4 * time_step)

    def slip_parameter_of(self, time_step: float) -> float:
        """R_t / w at a time step [-]."""
        return self.slip_parameter * (self.reference_time_step or time_step) / time_step
