"""Solution of one contact problem, in SI units.

Velocities, impulses, and for every island the status of its solve with a certificate: a bound on
its cost above the minimum. Arrays are read-only, since most are views of the memory of the answer;
copy an array to change it.
"""

from __future__ import annotations

import enum
import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sap_islands._library import formats
from sap_islands.arrays import FloatArray, IntArray, UIntArray


class IslandStatus(enum.IntEnum):
    """Status of the solve of an island; in every case the best iterate is returned."""

    UNSPECIFIED = 0
    CONVERGED = 1
    STALLED_AT_ROUNDOFF = 2
    ITERATION_LIMIT = 3
    DEADLINE = 4
    CANCELLED = 5
    NUMERICAL_FAILURE = 6
    COULOMB_LIMIT = 7


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
    coulomb_rounds: int
    coulomb_defect: float
    rest_drift: float | None
    sag: float
    creep: float


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
        rows: [I] number of constraint rows.
        cost: [I] cost l(v) [J]. Servers before 0.2 send neither: both are 0.
        coulomb_rounds: [I] convex solves after the first, with exact Coulomb friction; else 0.
        coulomb_defect: [I] |F|_{A⁻¹}, how far v* would have to move for v to be an exact answer,
            with exact Coulomb friction [kg^½ m/s]; else 0.
        rest_drift: [I] bound on the motion within the horizon of `Options.rest` if loads, contact
            frames, target velocities and the set of contacts stay as they are, by steps no longer
            than this one; infinite: no bound could be computed. Root mean square displacement of
            the mass of any rigid body [m]; of articulated trees the largest of the degrees of
            freedom, in its unit. Empty unless asked for; `Island.rest_drift` is then None.
        sag: [I] how far single contacts and rows give way beyond their stiffness: the largest
            (R_n - 1 / (δt k (δt + τ))) γ_n (δt + τ) [m, rad]. Lower `Regularization.beta` lowers
            that of contacts, `row_beta` that of rows.
        creep: [I] how fast single contacts and rows that hold by friction let go: the largest
            |R_t γ_t| of a contact, R |g| of a row with a slip parameter [m/s, rad/s]. Lower
            `Regularization.sigma` and `slip_parameter` lower it. Servers before these send
            neither: both are 0.
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
    coulomb_rounds: UIntArray
    coulomb_defect: FloatArray
    rest_drift: FloatArray
    sag: FloatArray
    creep: FloatArray

    def __post_init__(self) -> None:
        # Not sent without exact Coulomb friction.
        if not self.coulomb_rounds.size:
            object.__setattr__(self, "coulomb_rounds", np.zeros(len(self.status), np.uint32))
        if not self.coulomb_defect.size:
            object.__setattr__(self, "coulomb_defect", np.zeros(len(self.status)))
        if not self.sag.size:
            object.__setattr__(self, "sag", np.zeros(len(self.status)))
            object.__setattr__(self, "creep", np.zeros(len(self.status)))

    def __len__(self) -> int:
        return len(self.status)

    def __getitem__(self, index: int) -> Island:
        numbers: dict[str, Any] = {
            name: array[index].item() if array.size else None
            for name, array in vars(self).items()
            if name not in ("status", "swept")
        }
        return Island(IslandStatus(self.status[index]), **numbers)


@dataclass(frozen=True)
class Timings:
    """Wall-clock time of each phase of the call on the server [s]."""

    decode_s: float = 0.0
    queue_s: float = 0.0
    islands_s: float = 0.0
    solve_s: float = 0.0
    encode_s: float = 0.0


class Solution:
    """Velocities, impulses and islands; fields that the response mask excluded are empty.

    Solutions can be pickled.
    """

    @classmethod
    def from_bytes(cls, data: bytes) -> Solution:
        """Parses a serialized sap.v1.ContactSolution.

        Raises:
            InvalidArgument: It is malformed.
        """
        return _solution_of(formats.solution_from_bytes(data))

    @functools.cached_property
    def velocity(self) -> FloatArray:
        """[nv] v at the end of the step: trees, then six per body [m/s, rad/s]."""
        return self._array("velocity")

    @functools.cached_property
    def impulse(self) -> FloatArray:
        """[C + C', 3] γ of each contact in its frame (t1, t2, n) [N s]."""
        return self._array("impulse").reshape(-1, 3)

    @functools.cached_property
    def contact_velocity(self) -> FloatArray:
        """[C + C', 3] v_c of each contact in its frame [m/s]."""
        return self._array("contact_velocity").reshape(-1, 3)

    @functools.cached_property
    def row_impulse(self) -> FloatArray:
        """[R] γ of each constraint row [N s, N m s]."""
        return self._array("row_impulse")

    @functools.cached_property
    def row_velocity(self) -> FloatArray:
        """[R] v_c = J v + b of each constraint row [m/s, rad/s]."""
        return self._array("row_velocity")

    @functools.cached_property
    def angular_impulse(self) -> FloatArray:
        """[K, 3] angular impulse about (t1, t2, n) [N m s].

        Contacts, then body contacts, with a torsional or rolling coefficient > 0.
        """
        return self._array("angular_impulse").reshape(-1, 3)

    @functools.cached_property
    def delassus_estimate(self) -> FloatArray:
        """[C + C'] w of each contact, given or by the rule; 0 where its law does not use it [1/kg].

        Empty from a server that does not send it.
        """
        return self._array("delassus_estimate")

    @functools.cached_property
    def cost(self) -> float:
        """Cost l(v) [J]; rows and contacts of Hunt & Crossley can make it negative."""
        return self._cost()

    @functools.cached_property
    def island_of_tree(self) -> IntArray:
        """[T + B] island of each tree, then of each body; -1: it has no constraint."""
        return self._array("island_of_tree")

    @functools.cached_property
    def islands(self) -> Islands:
        """Status, certificate and cost of the solve of each island."""
        return _islands_of(self._values("islands"))

    @functools.cached_property
    def timings(self) -> Timings:
        """Time of each phase of the call on the server [s]."""
        return Timings(**self._values("timings"))

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

    def __reduce__(self) -> tuple[Any, tuple[dict[str, Any]]]:
        return _solution_of, (self.fields(),)

    def to_bytes(self) -> bytes:
        """The serialized sap.v1.ContactSolution."""
        return formats.solution_to_bytes(self.fields())

    def fields(self) -> dict[str, Any]:
        """All fields by name, with those of islands and timings by name."""
        values = {name: getattr(self, name) for name in (*_ARRAYS, "cost")}
        return values | {"islands": dict(vars(self.islands)), "timings": dict(vars(self.timings))}

    # How a field is decoded when it is first read.

    def _array(self, name: str) -> NDArray[Any]:
        raise NotImplementedError

    def _cost(self) -> float:
        raise NotImplementedError

    def _values(self, name: str) -> dict[str, Any]:
        raise NotImplementedError


_ARRAYS = {
    "velocity": (-1,),
    "impulse": (-1, 3),
    "contact_velocity": (-1, 3),
    "row_impulse": (-1,),
    "row_velocity": (-1,),
    "angular_impulse": (-1, 3),
    "delassus_estimate": (-1,),
    "island_of_tree": (-1,),
}


def _islands_of(arrays: dict[str, Any]) -> Islands:
    """Islands with arrays by name, without those that this version does not know."""
    return Islands(**{name: arrays[name] for name in Islands.__dataclass_fields__})


def _solution_of(values: dict[str, Any]) -> Solution:
    """A solution of the fields of another one, all of them decoded."""
    solution = Solution()
    fields = values | {name: values[name].reshape(shape) for name, shape in _ARRAYS.items()}
    fields["islands"] = _islands_of(values["islands"])
    fields["timings"] = Timings(**values["timings"])
    for array in (*(fields[name] for name in _ARRAYS), *values["islands"].values()):
        array.flags.writeable = False
    vars(solution).update(fields)
    return solution
