"""Contact parameters that replace those of a model."""

from __future__ import annotations

from dataclasses import dataclass


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
    """

    stiffness: float | None = None
    relaxation_time: float | None = None
    friction: float | None = None
    beta: float | None = None
    sigma: float | None = None
