"""How a problem is to be solved and answered."""

from __future__ import annotations

import enum
import functools
from dataclasses import dataclass
from typing import Any

from sap_islands.v1 import solver_service_pb2

_NANOSECONDS = 1_000_000_000


class NewtonMethod(enum.IntEnum):
    """Newton methods; all stop by the same test on the same problem."""

    UNSPECIFIED = solver_service_pb2.NEWTON_METHOD_UNSPECIFIED
    PLAIN = solver_service_pb2.NEWTON_METHOD_PLAIN
    ACCELERATED = solver_service_pb2.NEWTON_METHOD_ACCELERATED
    GAUSS_SEIDEL = solver_service_pb2.NEWTON_METHOD_GAUSS_SEIDEL


class Priority(enum.IntEnum):
    """Who goes first when problems wait for a thread; unspecified: normal."""

    UNSPECIFIED = solver_service_pb2.PRIORITY_UNSPECIFIED
    NORMAL = solver_service_pb2.PRIORITY_NORMAL
    HIGH = solver_service_pb2.PRIORITY_HIGH


@dataclass(frozen=True)
class Options:
    """What None leaves to the server is said in parentheses.

    Attributes:
        relative_tolerance: ε_r of |D ∇l| <= ε_a + ε_r max(|D A v|, |D J'γ|), which every island
            meets by itself [-]. In [0, 1) (1e-6).
        absolute_speed_tolerance: Speed that counts as nothing, ε_a = this sqrt(trace A) [m/s]
            (1e-14).
        max_iterations: Newton iterations of an island (500); 0 returns the guess with its
            certificate.
        time_budget: Time for the solve, after which islands return their best iterate [s] (none).
            In a session for each step, of a batch for all of it.
        islands: Whether to solve islands by themselves (True).
        newton: Which Newton method (accelerated).
        response_mask: Names of the fields of the solution to return; empty: all.
        priority: Who goes first: high is for control loops and users that wait.
    """

    relative_tolerance: float | None = None
    absolute_speed_tolerance: float | None = None
    max_iterations: int | None = None
    time_budget: float | None = None
    islands: bool | None = None
    newton: NewtonMethod = NewtonMethod.UNSPECIFIED
    response_mask: tuple[str, ...] = ()
    priority: Priority = Priority.UNSPECIFIED

    def __post_init__(self) -> None:
        # Lists are welcome; a tuple keeps the options hashable.
        object.__setattr__(self, "response_mask", tuple(self.response_mask))


def to_message(options: Options) -> solver_service_pb2.SolveOptions:
    """The options as sap.v1.SolveOptions."""
    message = solver_service_pb2.SolveOptions(
        relative_tolerance=options.relative_tolerance,
        absolute_speed_tolerance=options.absolute_speed_tolerance,
        max_iterations=options.max_iterations,
    )
    if options.islands is not None:
        message.islands = options.islands
    message.newton = int(options.newton)  # type: ignore[assignment]  # an enumeration is an int
    message.priority = int(options.priority)  # type: ignore[assignment]  # as above
    if options.time_budget is not None:
        message.time_budget.FromNanoseconds(round(options.time_budget * _NANOSECONDS))
    message.response_mask.paths.extend(options.response_mask)
    return message


def from_message(message: solver_service_pb2.SolveOptions) -> Options:
    """The options of a sap.v1.SolveOptions, as a recording keeps them."""
    return Options(
        relative_tolerance=_present(message, "relative_tolerance"),
        absolute_speed_tolerance=_present(message, "absolute_speed_tolerance"),
        max_iterations=_present(message, "max_iterations"),
        time_budget=message.time_budget.ToNanoseconds() / _NANOSECONDS
        if message.HasField("time_budget")
        else None,
        islands=_present(message, "islands"),
        newton=NewtonMethod(message.newton),
        response_mask=tuple(message.response_mask.paths),
        priority=Priority(message.priority),
    )


@functools.lru_cache(maxsize=256)
def serialize(options: Options) -> bytes:
    """The serialized options; most calls use the same ones again and again."""
    return to_message(options).SerializeToString()


def _present(message: solver_service_pb2.SolveOptions, name: Any) -> Any:
    return getattr(message, name) if message.HasField(name) else None
