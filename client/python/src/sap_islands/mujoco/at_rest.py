"""When environments of a rollout are at rest, and end."""

from __future__ import annotations

import math
from dataclasses import dataclass

import mujoco
import numpy as np

from sap_islands.errors import InvalidArgument

_ROUNDING = 1e-9  # of sums of time steps; as in client/mujoco/rollout.cc


@dataclass(frozen=True)
class AtRest:
    """Ends an environment whose largest `dof_length |qvel|` has been below a speed for some time.

    It is a threshold on speed, and proves nothing: a body that turns round at the top of its
    flight is slow, and so is one that creeps down a slope. `seconds` bridges the first; what is
    slower than `speed` for longer counts as at rest.

    Attributes:
        speed: Speed of every degree of freedom, for rotations times its length [m/s].
        seconds: How long it has been below it [s].
    """

    speed: float = 1e-3
    seconds: float = 0.1

    def __post_init__(self) -> None:
        if not 0 < self.speed < math.inf:
            raise InvalidArgument(f"until.speed is {self.speed}; it must be > 0", "until.speed")
        if not 0 <= self.seconds < math.inf:
            message = f"until.seconds is {self.seconds}; it must be >= 0"
            raise InvalidArgument(message, "until.seconds")


class RestClock:
    """How long a state has been slow."""

    def __init__(self, until: AtRest) -> None:
        self._until = until
        self._rested = 0.0

    def is_at_rest_after_step(self, model: mujoco.MjModel, data: mujoco.MjData) -> bool:
        """Whether the state, after one more step, has been slow for long enough."""
        speed = float((model.dof_length * np.abs(data.qvel)).max(initial=0.0))
        is_slow = speed < self._until.speed
        self._rested = self._rested + model.opt.timestep if is_slow else 0.0
        return 0.0 < self._rested >= self._until.seconds * (1.0 - _ROUNDING)
