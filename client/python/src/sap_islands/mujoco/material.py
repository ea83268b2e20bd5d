"""Contact parameters that replace those of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sap_islands.problem import Regularization, RegularizationRule


@dataclass(frozen=True)
class Material:
    """Parameters of all contacts with friction under law="sap"; None means the model's.

    Attributes:
        stiffness: k of every contact [N/m]. Where it or the relaxation time is given, contacts have
            v̂_n = -φ0 / (δt + τ_d); the one that is None is that of MuJoCo's force at rest.
        relaxation_time: τ_d of every contact [s].
        friction: μ of every contact [-].
        beta: Near-rigid parameter β [-]; None: 1. It has an effect only on given stiffnesses.
        sigma: Slip parameter σ of contacts and of friction loss [-]; None: 1e-3. A body at rest
            under gravity creeps by at most σ μ g δt [m/s].
        rule: How w is estimated, from which σ, and β on given stiffnesses, make the regularization.
            `RegularizationRule.LOAD_PATH`: towers, and light bodies under heavy ones, rest as deep
            and creep as little as single bodies do.
        load_reference_speed: Of LOAD_PATH, speed that counts as that of a load [m/s], as g δt: with
            it the contacts of light fingers that motors drive count by force; None: they do not.
        reference_time_step: δt at which contacts and friction loss have this σ and β [s], so that
            creep does not depend on the model's time step; None: the model's.
    """

    stiffness: float | None = None
    relaxation_time: float | None = None
    friction: float | None = None
    beta: float | None = None
    sigma: float | None = None
    rule: RegularizationRule = RegularizationRule.UNSPECIFIED
    load_reference_speed: float | None = None
    reference_time_step: float | None = None

    @classmethod
    def rigid(cls, **given: Any) -> Material:
        """With σ and β of `sap_islands.Regularization.rigid`, and other attributes as given.

        Contacts and friction loss then creep by a thousandth of what they do by default.
        """
        rigid = Regularization.rigid()
        return cls(**{"beta": rigid.beta, "sigma": rigid.sigma} | given)
