"""Options of a solve: tolerance, limits, method, priority, and the fields to return."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, replace
from numbers import Integral, Real

from sap_islands.errors import InvalidArgument


class NewtonMethod(enum.IntEnum):
    """Newton method. All methods solve the same problem and have the same stopping criterion."""

    UNSPECIFIED = 0
    PLAIN = 1
    ACCELERATED = 2
    GAUSS_SEIDEL = 3


class InteriorPoint(enum.IntEnum):
    """Which islands the accelerated method hands over to the interior-point method.

    Its iterations hardly depend on the regularization. Auto: after 4 iterations where R / w of a
    contact is below 5e-4, after 2 there with a guess of impulses, otherwise after 12. Unspecified:
    auto.
    """

    UNSPECIFIED = 0
    AUTO = 1
    NEVER = 2
    ALWAYS = 3


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

    def __post_init__(self) -> None:
        _check_types(self, "options.coulomb")


@dataclass(frozen=True)
class Rest:
    """A bound on how far islands move if nothing around them changes (`Islands.rest_drift`).

    It needs `initial_velocity` of all trees and bodies that constraints touch.

    Attributes:
        horizon: Time within which the motion is bounded; finite, > 0 [s] (1).
    """

    horizon: float | None = None

    def __post_init__(self) -> None:
        _check_types(self, "options.rest")


@dataclass(frozen=True)
class Options:
    """Options of a solve. None means the server's default, given in parentheses.

    Attributes:
        relative_tolerance: ε_r in |D ∇l| <= ε_a + ε_r max(|D A v|, |D J'γ|), the stopping
            criterion of each island; islands of coupled trees also meet it in the norm of A; in
            [0, 1) [-] (1e-6).
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
        rest: Asks for `Islands.rest_drift` (none).
        interior_point: Islands that the accelerated method hands over (auto).
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
    rest: Rest | None = None
    interior_point: InteriorPoint = InteriorPoint.UNSPECIFIED

    def __post_init__(self) -> None:
        _check_types(self, "options")
        # Structs are cached by the options: a tuple keeps them hashable, and 0 equals False.
        mask = tuple_of_names(self.response_mask, "options.response_mask")
        object.__setattr__(self, "response_mask", mask)
        if self.islands is not None:
            object.__setattr__(self, "islands", bool(self.islands))


_NUMBER = (Real, "a number")
_INTEGER = (Integral, "an integer")
_TYPES: dict[str, tuple[type, str]] = {
    "relative_tolerance": _NUMBER,
    "absolute_speed_tolerance": _NUMBER,
    "max_iterations": _INTEGER,
    "time_budget": _NUMBER,
    "newton": (Integral, "NewtonMethod"),
    "priority": (Integral, "Priority"),
    "coulomb": (CoulombFriction, "CoulombFriction"),
    "max_rounds": _INTEGER,
    "tolerance": _NUMBER,
    "rest": (Rest, "Rest"),
    "horizon": _NUMBER,
    "interior_point": (Integral, "InteriorPoint"),
}


def _check_types(options: Options | CoulombFriction | Rest, field: str) -> None:
    for name, value in vars(options).items():
        kind, wanted = _TYPES.get(name, (object, ""))
        if value is not None and not isinstance(value, kind):
            message = f"{field}.{name} is {value!r}; {wanted} is needed"
            raise InvalidArgument(message, f"{field}.{name}")


def tuple_of_names(names: Iterable[str], field: str) -> tuple[str, ...]:
    """The names in a list.

    Raises:
        InvalidArgument: It is one name, or has something else.
    """
    given = tuple(names)
    if isinstance(names, str) or not all(isinstance(name, str) for name in given):
        raise InvalidArgument(f"{field} is {names!r}; a list of names is needed", field)
    return given


def with_coulomb(options: Options | None) -> Options:
    """The options with exact Coulomb friction, as they give it or with its defaults."""
    options = options or Options()
    return options if options.coulomb else replace(options, coulomb=CoulombFriction())
