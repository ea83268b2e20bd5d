"""Verdict of a referee: counts, errors, the worst states, and these as JSON and as tables."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sap_islands.arrays import FloatArray

# States of these causes differ from the exact step as the simulator was told to.
NO_FAULTS = ("reset", "noslip")
QUANTILES = {"median": 0.5, "q90": 0.9, "q99": 0.99, "q999": 0.999, "max": 1.0}


@dataclass
class WorstState:
    """A state above the tolerance.

    Attributes:
        state: Its number over all files.
        file: Name of its file.
        row: Its number in the file.
        error: Of the recorded velocity [-].
        bound: Upper bound of the error against the exact optimum [-].
        island_error: Largest error of an island [-].
        world: Its environment.
        time: Before the step [s]; None: not recorded.
        contacts: Contacts of the problem.
        found_contacts: Contacts that MuJoCo finds.
        lost_pairs: Pairs of geoms that overlap and were not recorded.
        bodies: Those of the worst island.
        cause: See `sap_islands.referee`.
        detail: What was changed, and by how much.
    """

    state: int
    file: str
    row: int
    error: float
    bound: float
    island_error: float
    world: int
    time: float | None
    contacts: int
    found_contacts: int
    lost_pairs: int
    bodies: list[str] = field(default_factory=list)
    cause: str = "undiagnosed"
    detail: str = ""

    def to_json(self) -> dict[str, Any]:
        """The attributes; numbers that are not finite are None."""
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in vars(self).items()
        }


@dataclass
class Verdict:
    """Findings about recorded steps.

    Attributes:
        states: Number of judged states.
        recorded: Number of states in the files.
        skipped: States left out since they have numbers that are not finite.
        exact: States whose error is at most the tolerance, certificate included.
        faults: States above it, without those whose cause is a reset or the noslip solver.
        tolerance: Of the error [-].
        worst: States above the tolerance, largest error first, up to a cap.
        above: Number of states above the tolerance.
        diagnosed: Number of those whose cause was looked for.
        causes: Number of states above the tolerance by cause.
        assumed: What was not recorded, and what was taken instead.
        unused: Arrays of the files that mean nothing here.
        number: [states] number of each state over all files.
        world: [states] environment of each.
        time: [states] time of each [s]; NaN: not recorded.
        error: [states] error of each [-].
        bound: [states] upper bound of it against the exact optimum [-].
        island_error: [states] largest error of an island of each [-].
        lost_pairs: [states] pairs of geoms that overlap and were not recorded.
        found_error: [states] error with the contacts that MuJoCo finds [-].
        asleep: States in which some trees sleep and were left out.
        has_contacts: Whether contacts were recorded.
    """

    states: int
    recorded: int
    skipped: int
    exact: int
    faults: int
    tolerance: float
    worst: list[WorstState]
    above: int
    diagnosed: int
    causes: dict[str, int]
    assumed: dict[str, str]
    unused: list[str]
    number: NDArray[np.int64]
    world: NDArray[np.int64]
    time: FloatArray
    error: FloatArray
    bound: FloatArray
    island_error: FloatArray
    lost_pairs: NDArray[np.int64]
    found_error: FloatArray
    asleep: int
    has_contacts: bool

    def to_json(self) -> dict[str, Any]:
        """The report."""
        other = int(np.count_nonzero(self.is_exact & (self.found_error > self.tolerance)))
        return {
            "states": self.states,
            "exact": self.exact,
            "tolerance": self.tolerance,
            "above": self.above,
            "faults": self.faults,
            "error": _quantiles(self.error),
            "island_error": _quantiles(self.island_error),
            "causes": self.causes,
            "diagnosed": self.diagnosed,
            "worst": [state.to_json() for state in self.worst],
            "assumed": self.assumed,
            "contacts": {
                "recorded": self.has_contacts,
                "states_exact_on_recorded_only": other if self.has_contacts else None,
                "states_with_lost_pairs": int(np.count_nonzero(self.lost_pairs)),
            },
            "worlds": self.worlds(),
            "recorded": self.recorded,
            "skipped": self.skipped,
            "asleep": self.asleep,
            "unused": self.unused,
        }

    @property
    def is_exact(self) -> NDArray[np.bool_]:
        """[states] whether the error of each is at most the tolerance, certificate included."""
        result: NDArray[np.bool_] = self.bound <= self.tolerance
        return result

    def worlds(self) -> list[dict[str, Any]]:
        """A row for each environment: states, exact ones, quantiles, lost pairs, main cause."""
        causes: dict[int, Counter[str]] = {}
        for state in self.worst:
            causes.setdefault(state.world, Counter())[state.cause] += 1
        rows = []
        order = np.argsort(self.world, kind="stable")
        numbers, first = np.unique(self.world[order], return_index=True)
        for world, members in zip(numbers.tolist(), np.split(order, first[1:]), strict=True):
            found = causes.get(world)
            rows.append(
                {
                    "world": world,
                    "states": len(members),
                    "exact": int(np.count_nonzero(self.is_exact[members])),
                    "error": _quantiles(self.error[members]),
                    "lost_pairs": int(self.lost_pairs[members].sum()),
                    "cause": found.most_common(1)[0][0] if found else "",
                }
            )
        return rows


def _quantiles(values: FloatArray) -> dict[str, float]:
    if not values.size:
        return {}
    found = np.quantile(values, list(QUANTILES.values()), method="higher")
    return dict(zip(QUANTILES, found.tolist(), strict=True))
