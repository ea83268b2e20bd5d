"""The answer to one contact problem, in SI units.

Velocities, impulses, and for every island how its solve ended, with a certificate of how far from
the exact answer it can be. Arrays are read-only, since they are views of the message where that is
possible; copy what is to be changed.
"""

from __future__ import annotations

import enum
import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sap_islands import wire
from sap_islands.arrays import FloatArray, IntArray, UIntArray
from sap_islands.v1 import solution_pb2


class IslandStatus(enum.IntEnum):
    """How the solve of one island ended; the best iterate is returned in every case."""

    UNSPECIFIED = solution_pb2.ISLAND_STATUS_UNSPECIFIED
    CONVERGED = solution_pb2.ISLAND_STATUS_CONVERGED
    STALLED_AT_ROUNDOFF = solution_pb2.ISLAND_STATUS_STALLED_AT_ROUNDOFF
    ITERATION_LIMIT = solution_pb2.ISLAND_STATUS_ITERATION_LIMIT
    DEADLINE = solution_pb2.ISLAND_STATUS_DEADLINE
    CANCELLED = solution_pb2.ISLAND_STATUS_CANCELLED
    NUMERICAL_FAILURE = solution_pb2.ISLAND_STATUS_NUMERICAL_FAILURE


class Island(NamedTuple):
    """One island; meanings as in `Islands`."""

    status: IslandStatus
    iterations: int
    factorizations: int
    momentum_residual: float
    optimality_gap_bound: float
    dofs: int
    contacts: int
    solve_time_s: float


@dataclass(frozen=True, eq=False)
class Islands:
    """I islands in the order of their numbers; `islands[i]` is one of them.

    Attributes:
        status: [I] how the solve ended, as numbers of `IslandStatus`.
        iterations: [I] Newton iterations; 0 if the guess met the tolerance.
        factorizations: [I] of the Hessian.
        momentum_residual: [I] what the tolerance is compared with [-].
        optimality_gap_bound: [I] l(v) - min l is at most this [J].
        dofs: [I] degrees of freedom.
        contacts: [I] contacts.
        solve_time_s: [I] time that the solve took [s].
    """

    status: IntArray
    iterations: UIntArray
    factorizations: UIntArray
    momentum_residual: FloatArray
    optimality_gap_bound: FloatArray
    dofs: UIntArray
    contacts: UIntArray
    solve_time_s: FloatArray

    def __len__(self) -> int:
        return len(self.status)

    def __getitem__(self, index: int) -> Island:
        return Island(
            IslandStatus(self.status[index]),
            int(self.iterations[index]),
            int(self.factorizations[index]),
            float(self.momentum_residual[index]),
            float(self.optimality_gap_bound[index]),
            int(self.dofs[index]),
            int(self.contacts[index]),
            float(self.solve_time_s[index]),
        )


@dataclass(frozen=True)
class Timings:
    """Wall-clock time of each phase of the call on the server [s]."""

    decode_s: float = 0.0
    queue_s: float = 0.0
    islands_s: float = 0.0
    solve_s: float = 0.0
    encode_s: float = 0.0


_SOLUTION = wire.ArrayDecoder(solution_pb2.ContactSolution.DESCRIPTOR)
_ISLANDS = wire.ArrayDecoder(solution_pb2.IslandReports.DESCRIPTOR)
_TIMINGS = wire.ArrayDecoder(solution_pb2.PhaseTimings.DESCRIPTOR)
_ISLANDS_NUMBER = solution_pb2.ContactSolution.DESCRIPTOR.fields_by_name["islands"].number
_TIMINGS_NUMBER = solution_pb2.ContactSolution.DESCRIPTOR.fields_by_name["timings"].number


@dataclass(frozen=True, eq=False)
class Solution:
    """Velocities, impulses and islands; what the response mask left out is empty.

    Attributes:
        velocity: [nv] v at the end of the step, trees first, then six for each body [m/s, rad/s].
        impulse: [C + C', 3] γ of each contact in its frame (t1, t2, n) [N s].
        contact_velocity: [C + C', 3] v_c of each contact in its frame [m/s].
        cost: l(v) [J].
        island_of_tree: [T + B] number of the island of each tree, then body; -1: touches nothing.
    """

    velocity: FloatArray
    impulse: FloatArray
    contact_velocity: FloatArray
    cost: float
    island_of_tree: IntArray
    _message: tuple[bytes, int, int]  # where the serialized solution is within a response

    @functools.cached_property
    def islands(self) -> Islands:
        """How the solve of each island ended."""
        return Islands(**_values_of(self._message, _ISLANDS_NUMBER, _ISLANDS))

    @functools.cached_property
    def timings(self) -> Timings:
        """Where the time went on the server."""
        values = _values_of(self._message, _TIMINGS_NUMBER, _TIMINGS)
        return Timings(**{name: float(value) for name, value in values.items()})

    @property
    def solved(self) -> bool:
        """Whether every island converged, or came as close as rounding errors allow."""
        status: NDArray[Any] = self.islands.status
        return bool(
            np.all(
                (status == IslandStatus.CONVERGED) | (status == IslandStatus.STALLED_AT_ROUNDOFF)
            )
        )

    def __repr__(self) -> str:
        return (
            f"Solution(velocity[{self.velocity.size}], impulse[{len(self.impulse)}, 3], "
            f"islands[{len(self.islands)}], solved={self.solved})"
        )

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        return Solution.from_bytes, (self.to_bytes(),)

    def to_bytes(self) -> bytes:
        """The serialized sap.v1.ContactSolution."""
        data, start, end = self._message
        return data[start:end]

    @classmethod
    def from_bytes(cls, data: bytes, start: int = 0, end: int | None = None) -> Solution:
        """The solution of the sap.v1.ContactSolution in data[start:end]."""
        end = len(data) if end is None else end
        values = _SOLUTION.decode(data, start, end)
        return cls(
            velocity=values["velocity"],
            impulse=values["impulse"].reshape(-1, 3),
            contact_velocity=values["contact_velocity"].reshape(-1, 3),
            cost=float(values.get("cost", 0.0)),
            island_of_tree=values["island_of_tree"],
            _message=(data, start, end),
        )


def _values_of(
    message: tuple[bytes, int, int], number: int, decoder: wire.ArrayDecoder
) -> dict[str, Any]:
    """The values of a message within the solution."""
    data, start, end = message
    for found, wire_type, first, last in wire.scan(data, start, end):
        if found == number and wire_type == wire.LENGTH:
            return decoder.decode(data, first, last)
    return decoder.decode(data, 0, 0)
