"""Solution of one contact problem, in SI units.

Velocities, impulses, and for every island the status of its solve with a certificate: a bound on
its cost above the minimum. Arrays are read-only, since most are views of the received message;
copy an array to change it.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sap_islands._arrays import wire_format
from sap_islands.arrays import FloatArray, IntArray, UIntArray
from sap_islands.v1 import solution_pb2


class IslandStatus(enum.IntEnum):
    """Status of the solve of an island; in every case the best iterate is returned."""

    UNSPECIFIED = solution_pb2.ISLAND_STATUS_UNSPECIFIED
    CONVERGED = solution_pb2.ISLAND_STATUS_CONVERGED
    STALLED_AT_ROUNDOFF = solution_pb2.ISLAND_STATUS_STALLED_AT_ROUNDOFF
    ITERATION_LIMIT = solution_pb2.ISLAND_STATUS_ITERATION_LIMIT
    DEADLINE = solution_pb2.ISLAND_STATUS_DEADLINE
    CANCELLED = solution_pb2.ISLAND_STATUS_CANCELLED
    NUMERICAL_FAILURE = solution_pb2.ISLAND_STATUS_NUMERICAL_FAILURE


class Island(NamedTuple):
    """One island; the fields are those of `Islands`."""

    status: IslandStatus
    iterations: int
    factorizations: int
    momentum_residual: float
    optimality_gap_bound: float
    dofs: int
    contacts: int
    solve_time_s: float
    rows: int
    cost: float


@dataclass(frozen=True, eq=False)
class Islands:
    """The I islands of a solution; `islands[i]` is an `Island`.

    Attributes:
        status: [I] values of `IslandStatus`.
        iterations: [I] Newton iterations, or sweeps of the islands in `swept`; 0 if the guess met
            the tolerance.
        factorizations: [I] factorizations of the Hessian.
        momentum_residual: [I] |D ∇l| / max(|D A v|, |D J'γ|), compared with the tolerance [-].
        optimality_gap_bound: [I] upper bound of l(v) - min l [J].
        dofs: [I] degrees of freedom.
        contacts: [I] number of contacts.
        solve_time_s: [I] wall-clock time of the solve [s].
        swept: Numbers of the islands solved by Gauss-Seidel sweeps alone, ascending.
        rows: [I] number of constraint rows; 0 from a server that does not send it.
        cost: [I] cost l(v) [J]; NaN from a server that does not send it.
    """

    status: IntArray
    iterations: UIntArray
    factorizations: UIntArray
    momentum_residual: FloatArray
    optimality_gap_bound: FloatArray
    dofs: UIntArray
    contacts: UIntArray
    solve_time_s: FloatArray
    swept: UIntArray
    rows: UIntArray
    cost: FloatArray

    def __post_init__(self) -> None:
        # A server that is older than the last two fields does not send them.
        if not self.rows.size:
            object.__setattr__(self, "rows", np.zeros(len(self.status), np.uint32))
        if not self.cost.size:
            object.__setattr__(self, "cost", np.full(len(self.status), np.nan))

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
            int(self.rows[index]),
            float(self.cost[index]),
        )


@dataclass(frozen=True)
class Timings:
    """Wall-clock time of each phase of the call on the server [s]."""

    decode_s: float = 0.0
    queue_s: float = 0.0
    islands_s: float = 0.0
    solve_s: float = 0.0
    encode_s: float = 0.0


_FIELDS = solution_pb2.ContactSolution.DESCRIPTOR.fields_by_name
_ISLANDS = wire_format.ArrayDecoder(solution_pb2.IslandReports.DESCRIPTOR)
_TIMINGS = wire_format.ArrayDecoder(solution_pb2.PhaseTimings.DESCRIPTOR)


def encode_solution(values: Mapping[str, Any]) -> bytes:
    """A serialized sap.v1.ContactSolution.

    Args:
        values: By name, arrays with the data types of the wire, `cost` as a number, and a mapping
            of the fields of each message.
    """
    parts: wire_format.Parts = []
    message = solution_pb2.ContactSolution()
    for name, value in values.items():
        if name == "cost":
            message.cost = value
        elif name == "timings":
            for phase, time in value.items():
                setattr(message.timings, phase, time)
        elif name == "islands":
            reports: wire_format.Parts = []
            for report, array in value.items():
                reports += _packed(solution_pb2.IslandReports, report, array)
            parts += wire_format.wrap(
                wire_format.length_tag(solution_pb2.ContactSolution.DESCRIPTOR, name),
                reports,
                sum(len(part) for part in reports),
            )[0]
        else:
            parts += _packed(solution_pb2.ContactSolution, name, value)
    return b"".join([message.SerializeToString(), *parts])


def _packed(kind: Any, name: str, array: NDArray[Any]) -> wire_format.Parts:
    """A packed array as a field; an enumeration, below 128, has a byte per value."""
    is_enumeration = kind.DESCRIPTOR.fields_by_name[name].enum_type is not None
    data = array.astype(np.uint8).tobytes() if is_enumeration else array.tobytes()
    tag = wire_format.length_tag(kind.DESCRIPTOR, name)
    return wire_format.wrap(tag, [data], len(data))[0] if data else []


class Solution:
    """Velocities, impulses and islands; fields that the response mask excluded are empty.

    Fields are decoded when they are first read. Solutions can be pickled.
    """

    def __init__(self, data: bytes, start: int = 0, end: int | None = None) -> None:
        """Wraps the serialized sap.v1.ContactSolution in data[start:end]."""
        self._data = data
        self._start = start
        self._end = len(data) if end is None else end
        # The server writes each field once, so that one span per field is enough.
        self._spans = {
            field[0]: (field[2], field[3]) for field in wire_format.scan(data, start, self._end)
        }

    @functools.cached_property
    def velocity(self) -> FloatArray:
        """[nv] v at the end of the step: trees, then six per body [m/s, rad/s]."""
        return self._array("velocity", np.float64)

    @functools.cached_property
    def impulse(self) -> FloatArray:
        """[C + C', 3] γ of each contact in its frame (t1, t2, n) [N s]."""
        return self._array("impulse", np.float64).reshape(-1, 3)

    @functools.cached_property
    def contact_velocity(self) -> FloatArray:
        """[C + C', 3] v_c of each contact in its frame [m/s]."""
        return self._array("contact_velocity", np.float64).reshape(-1, 3)

    @functools.cached_property
    def row_impulse(self) -> FloatArray:
        """[R] γ of each constraint row [N s, N m s]."""
        return self._array("row_impulse", np.float64)

    @functools.cached_property
    def row_velocity(self) -> FloatArray:
        """[R] v_c = J v + b of each constraint row [m/s, rad/s]."""
        return self._array("row_velocity", np.float64)

    @functools.cached_property
    def angular_impulse(self) -> FloatArray:
        """[K, 3] angular impulse about (t1, t2, n) [N m s].

        Contacts, then body contacts, with a torsional or rolling coefficient > 0.
        """
        return self._array("angular_impulse", np.float64).reshape(-1, 3)

    @functools.cached_property
    def delassus_estimate(self) -> FloatArray:
        """[C + C'] w of each contact, given or by the rule; 0 where its law does not use it [1/kg].

        Empty from a server that does not send it.
        """
        return self._array("delassus_estimate", np.float64)

    @functools.cached_property
    def cost(self) -> float:
        """Cost l(v) [J]; rows and contacts of Hunt & Crossley can make it negative."""
        value = self._array("cost", np.float64)
        return float(value[0]) if value.size else 0.0

    @functools.cached_property
    def island_of_tree(self) -> IntArray:
        """[T + B] island of each tree, then of each body; -1: it has no constraint."""
        return self._array("island_of_tree", np.int32)

    @functools.cached_property
    def islands(self) -> Islands:
        """Status, certificate and cost of the solve of each island."""
        return Islands(**self._values("islands", _ISLANDS))

    @functools.cached_property
    def timings(self) -> Timings:
        """Time of each phase of the call on the server [s]."""
        values = self._values("timings", _TIMINGS)
        return Timings(**{name: float(value) for name, value in values.items()})

    @property
    def solved(self) -> bool:
        """Whether the status of every island is CONVERGED or STALLED_AT_ROUNDOFF."""
        status: NDArray[Any] = self.islands.status
        return bool(
            np.all(
                (status == IslandStatus.CONVERGED) | (status == IslandStatus.STALLED_AT_ROUNDOFF)
            )
        )

    def __repr__(self) -> str:
        return (
            f"Solution(velocity[{self.velocity.size}], impulse[{len(self.impulse)}, 3], "
            f"row_impulse[{self.row_impulse.size}], islands[{len(self.islands)}], "
            f"solved={self.solved})"
        )

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        return Solution, (self.to_bytes(),)

    def to_bytes(self) -> bytes:
        """The serialized sap.v1.ContactSolution."""
        return self._data[self._start : self._end]

    def without(self, names: Collection[str]) -> Solution:
        """A copy without these fields, as if the response mask excluded them."""
        numbers = {_FIELDS[name].number for name in names}
        return Solution(wire_format.without_fields(self._data, self._start, self._end, numbers))

    def _array(self, name: str, scalar: type[Any]) -> NDArray[Any]:
        start, end = self._spans.get(_FIELDS[name].number, (0, 0))
        return wire_format.array_view(self._data, np.dtype(scalar).newbyteorder("<"), start, end)

    def _values(self, name: str, decoder: wire_format.ArrayDecoder) -> dict[str, Any]:
        return decoder.decode(self._data, *self._spans.get(_FIELDS[name].number, (0, 0)))
