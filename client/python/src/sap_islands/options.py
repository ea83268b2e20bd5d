"""Options of a solve: tolerance, limits, method, priority, and the fields to return."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace


class NewtonMethod(enum.IntEnum):
    """Newton method. All methods solve the same problem and have the same stopping criterion."""

    UNSPECIFIED = 0
    PLAIN = 1
    ACCELERATED = 2
    GAUSS_SEIDEL = 3


class Priority(enum.IntEnum):
    """Scheduling priority of problems that wait for a thread; unspecified: normal."""

    UNSPECIFIED = 0
    NORMAL = 1
    HIGH = 2


@dataclass(frozen=True)
class CoulombFriction:
    """Exact Coulomb friction in place of the convex model. None means the default in parentheses.

    Attributes:
        max_rounds: Limit of convex solves after the first, per island (100); 0: the convex answer,
            judged by the exact law.
        tolerance: ε_r of the exact momentum balance; in [0, 1) [-] (relative_tolerance).
    """

    max_rounds: int | None = None
    tolerance: float | None = None


@dataclass(frozen=True)
class Options:
    """Options of a solve. None means the server's default, given in parentheses.

    Attributes:
        relative_tolerance: ε_r in |D ∇l| <= ε_a + ε_r max(|D A v|, |D J'γ|), the stopping
            criterion of each island; in [0, 1) [-] (1e-6).
        absolute_speed_tolerance: Negligible speed; ε_a is this times sqrt(trace A) [m/s] (1e-14).
        max_iterations: Limit of Newton iterations per island (500); 0 returns the guess with its
            certificate.
        time_budget: Time after which islands return their best iterate [s] (none). In a session it
            applies to each step, in a batch to the whole batch.
        islands: Whether to solve the islands separately (True).
        newton: Newton method (accelerated).
        response_mask: Names of the attributes of `Solution` to return, for example "velocity" and
            "row_impulse"; empty: all.
        priority: Scheduling priority; high is for control loops and interactive use.
        coulomb: Exact Coulomb friction (the convex model).
    """

    relative_tolerance: float | None = None
    absolute_speed_tolerance: float | None = None
    max_iterations: int | None = None
    time_budget: float | None = None
    islands: bool | None = None
    newton: NewtonMethod = NewtonMethod.UNSPECIFIED
    response_mask: tuple[str, ...] = ()
    priority: Priority = Priority.UNSPECIFIED
    coulomb: CoulombFriction | None = None

    def __post_init__(self) -> None:
        # The tuple keeps the options hashable if a list was given; structs are cached by them.
        object.__setattr__(self, "response_mask", tuple(self.response_mask))


def with_coulomb(options: Options | None) -> Options:
    """The options with exact Coulomb friction, as they give it or with its defaults."""
    options = options or Options()
    return options if options.coulomb else replace(options, coulomb=CoulombFriction())
