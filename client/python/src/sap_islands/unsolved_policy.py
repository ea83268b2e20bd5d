"""Policy of adapters for a step with an unsolved island: raise, warn or go on."""

from __future__ import annotations

import warnings
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sap_islands.derivatives import AdjointStatus, Derivatives
from sap_islands.errors import InvalidArgument, SapError
from sap_islands.solution import Islands, IslandStatus, Solution

OnUnsolved: TypeAlias = Literal["raise", "warn", "ignore"]

_CHOICES = ("raise", "warn", "ignore")
_SOLVED = (IslandStatus.CONVERGED, IslandStatus.STALLED_AT_ROUNDOFF)


class Unsolved(SapError, ArithmeticError):
    """An island of a step was not solved."""


class UnsolvedWarning(RuntimeWarning):
    """An island of a step was not solved, and the step was taken with its best iterate."""


def check_on_unsolved(on_unsolved: str) -> None:
    """Raises InvalidArgument if `on_unsolved` is not "raise", "warn" or "ignore"."""
    if on_unsolved not in _CHOICES:
        message = f"on_unsolved is {on_unsolved!r}; it must be 'raise', 'warn' or 'ignore'"
        raise InvalidArgument(message, "on_unsolved")


def find_unsolved(islands: Islands) -> NDArray[np.intp]:
    """The numbers of the islands that were not solved to the tolerance."""
    return np.flatnonzero(~np.isin(islands.status, _SOLVED))


def report_unsolved(solution: Solution, on_unsolved: OnUnsolved, time: float | None = None) -> None:
    """Raises or warns if an island of a solution was not solved.

    Args:
        solution: The solution.
        on_unsolved: What to do.
        time: Simulated time at the beginning of the step [s]; None: the solution is of no step.

    Raises:
        Unsolved: An island was not solved, and `on_unsolved` is "raise".
    """
    if on_unsolved == "ignore" or solution.solved:
        return
    islands = solution.islands
    unsolved = find_unsolved(islands)
    worst = islands[int(unsolved[np.argmax(islands.momentum_residual[unsolved])])]
    step = "" if time is None else f" in the step from {time:g} s"
    message = (
        f"{len(unsolved)} of {len(islands)} islands were not solved{step}; the worst is "
        f"{worst.status.name} with a momentum residual of {worst.momentum_residual:.1e} after "
        f"{worst.iterations} iterations"
    )
    if on_unsolved == "raise":
        raise Unsolved(message)
    warnings.warn(message, UnsolvedWarning, stacklevel=3)


def report_inaccurate(derivatives: Derivatives, on_unsolved: OnUnsolved) -> None:
    """Raises or warns if an island was not differentiated at a solution.

    Args:
        derivatives: The derivatives.
        on_unsolved: What to do.

    Raises:
        Unsolved: An island was not differentiated, and `on_unsolved` is "raise".
    """
    if on_unsolved == "ignore" or derivatives.accurate:
        return
    status = derivatives.adjoint_status
    failed = status[status != AdjointStatus.DIFFERENTIATED]
    message = (
        f"{len(failed)} of {len(status)} islands have no accurate derivatives; "
        f"the worst is {AdjointStatus(failed.max()).name}"
    )
    if on_unsolved == "raise":
        raise Unsolved(message)
    warnings.warn(message, UnsolvedWarning, stacklevel=3)
