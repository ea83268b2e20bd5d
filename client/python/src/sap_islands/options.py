"""Options of a solve: tolerance, limits, method, priority, and the fields to return."""

from __future__ import annotations

import enum
import functools
from dataclasses import dataclass
from typing import Any

from sap_islands.v1 import solver_service_pb2

_NANOSECONDS = 1_000_000_000


class NewtonMethod(enum.IntEnum):
    """Newton method. All methods solve the same problem and have the same stopping criterion."""

    UNSPECIFIED = solver_service_pb2.NEWTON_METHOD_UNSPECIFIED
    PLAIN = solver_service_pb2.NEWTON_METHOD_PLAIN
    ACCELERATED = solver_service_pb2.NEWTON_METHOD_ACCELERATED
    GAUSS_SEIDEL = solver_service_pb2.NEWTON_METHOD_GAUSS_SEIDEL


class Priority(enum.IntEnum):
    """Scheduling priority of problems that wait for a thread; unspecified: normal."""

    UNSPECIFIED = solver_service_pb2.PRIORITY_UNSPECIFIED
    NORMAL = solver_service_pb2.PRIORITY_NORMAL
    HIGH = solver_service_pb2.PRIORITY_HIGH


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
        # The tuple keeps the options hashable if a list was given; `serialize` caches by them.
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
    """The options of a sap.v1.SolveOptions."""
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
    """The serialized sap.v1.SolveOptions; cached, since most calls repeat the same options."""
    return to_message(options).SerializeToString()


def _present(message: solver_service_pb2.SolveOptions, name: Any) -> Any:
    return getattr(message, name) if message.HasField(name) else None
