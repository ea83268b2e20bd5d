"""The frictional-contact problem of one time step, in SI units.

    min_v  1/2 |v - v*|_A^2 + sum_i 1/2 γ_i' R_i γ_i
    γ_i = P_F(y_i) in the R_i norm,   y_i = -R_i^-1 (v_c,i - v̂_i)
    v_c,i = J_a v_a + J_b v_b + b_i

[Castro, Permenter, Han 2021, "An Unconstrained Convex Formulation of Compliant Contact"]. These are
the messages of proto/sap/v1/problem.proto with NumPy arrays for their arrays. Nothing is checked
here beyond what a type can hold: the server does that, and names what is wrong.
"""

from __future__ import annotations

import enum
import functools
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sap_islands import wire_format
from sap_islands.arrays import HAS_ARRAYS, ArrayField, Float64, FloatArray
from sap_islands.v1 import problem_pb2

WORLD = -1  # instead of the number of a second tree or body

GroupT = TypeVar("GroupT", bound="_Group")


class _Group:
    """Arrays that belong together, one entry for each tree, body or contact.

    Whatever has this as its base lists only `ArrayField`s, under the names of its message.
    """

    FIELD: ClassVar[str]
    _DESCRIPTOR: ClassVar[wire_format.Descriptor]
    _arrays: ClassVar[wire_format.PackedArrays]
    _columns: ClassVar[dict[str, int]]
    _none: ClassVar[dict[str, NDArray[Any]]]
    _decoder: ClassVar[wire_format.ArrayDecoder]

    def __init_subclass__(cls) -> None:
        columns = {name: f.columns for name, f in vars(cls).items() if isinstance(f, ArrayField)}
        cls._columns = columns
        cls._none = {f.name: f.empty for f in vars(cls).values() if isinstance(f, ArrayField)}
        cls._arrays = wire_format.PackedArrays(cls._DESCRIPTOR, columns)
        cls._decoder = wire_format.ArrayDecoder(cls._DESCRIPTOR)

    @classmethod
    def from_wire_arrays(cls: type[GroupT], **arrays: NDArray[Any]) -> GroupT:
        """From arrays that are as the wire has them: of its types, contiguous, not empty."""
        group = cls.__new__(cls)
        group.__dict__ = {**cls._none, **arrays, HAS_ARRAYS: True}
        return group

    @classmethod
    def none(cls: type[GroupT]) -> GroupT:
        """Without entries."""
        group = cls.__new__(cls)
        group.__dict__ = cls._none.copy()
        return group

    @property
    def count(self) -> int:
        """Number of entries."""
        raise NotImplementedError

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        arrays = ", ".join(f"{name}[{self.__dict__[name].size}]" for name in self._columns)
        return f"{type(self).__name__}({arrays})"

    @classmethod
    def _decode(cls, data: bytes, start: int, end: int) -> dict[str, Any]:
        values = cls._decoder.decode(data, start, end)
        for name, columns in cls._columns.items():
            if columns > 1 and len(values[name]) % columns == 0:
                values[name] = values[name].reshape(-1, columns)
        return values


@dataclass(eq=False, repr=False)
class Trees(_Group):
    """Articulated bodies: T kinematic trees, tree t with n_t degrees of freedom.

    Attributes:
        dofs: [T] n_t, each at least 1.
        dynamics_matrix: [sum n_t²] A_t of each tree, row-major, one after the other [kg, kg m,
            kg m²]. Symmetric and positive definite.
        free_motion_velocity: [sum n_t] v*, at the end of the step if there were no contact [m/s,
            rad/s].
        guess_velocity: [sum n_t] to start from, or empty: v* [m/s, rad/s].
        tree_id: [T] names that stay the same from step to step, or empty.
    """

    FIELD = "trees"
    _DESCRIPTOR = problem_pb2.Trees.DESCRIPTOR

    dofs: ArrayField[np.uint32] = ArrayField(np.uint32)
    dynamics_matrix: ArrayField[Float64] = ArrayField(Float64)
    free_motion_velocity: ArrayField[Float64] = ArrayField(Float64)
    guess_velocity: ArrayField[Float64] = ArrayField(Float64)
    tree_id: ArrayField[np.uint32] = ArrayField(np.uint32)

    @property
    def count(self) -> int:
        """T."""
        return self.dofs.size

    @classmethod
    def from_blocks(
        cls,
        matrices: Sequence[FloatArray],
        free_motion_velocity: ArrayLike,
        guess_velocity: ArrayLike = (),
        tree_id: ArrayLike = (),
    ) -> Trees:
        """Trees from their dynamics matrices, [n_t, n_t] each, in their order."""
        return cls(
            dofs=np.array([len(matrix) for matrix in matrices], np.uint32),
            dynamics_matrix=concatenate(matrices),
            free_motion_velocity=free_motion_velocity,
            guess_velocity=guess_velocity,
            tree_id=tree_id,
        )

    def blocks(self) -> list[FloatArray]:
        """A_t of each tree, [n_t, n_t]: views."""
        ends = np.cumsum(self.dofs.astype(np.int64) ** 2)
        pieces = np.split(self.dynamics_matrix.ravel(), ends[:-1]) if len(ends) else []
        return [piece.reshape(n, n) for piece, n in zip(pieces, self.dofs, strict=True)]


@dataclass(eq=False, repr=False)
class RigidBodies(_Group):
    """Free bodies: B of them, six velocities each, (v of the center of mass, angular velocity).

    Everything in world axes. They are numbered after the trees: body i is tree T + i.

    Attributes:
        mass: [B] > 0 [kg].
        inertia: [B, 6] about the center of mass as xx, yy, zz, xy, xz, yz [kg m²].
        center_of_mass: [B, 3] position [m].
        free_motion_velocity: [B, 6] v*, at the end of the step if there were no contact [m/s,
            rad/s].
        guess_velocity: [B, 6] to start from, or empty: v* [m/s, rad/s].
        body_id: [B] names that stay the same from step to step, or empty.
    """

    FIELD = "bodies"
    _DESCRIPTOR = problem_pb2.RigidBodies.DESCRIPTOR

    mass: ArrayField[Float64] = ArrayField(Float64)
    inertia: ArrayField[Float64] = ArrayField(Float64, 6)
    center_of_mass: ArrayField[Float64] = ArrayField(Float64, 3)
    free_motion_velocity: ArrayField[Float64] = ArrayField(Float64, 6)
    guess_velocity: ArrayField[Float64] = ArrayField(Float64, 6)
    body_id: ArrayField[np.uint32] = ArrayField(np.uint32)

    @property
    def count(self) -> int:
        """B."""
        return self.mass.size if self.mass.ndim else self.center_of_mass.size // 3


@dataclass(eq=False, repr=False)
class Contacts(_Group):
    """C contacts by their Jacobians, in frames (t1, t2, n); v_n > 0 separates.

    Attributes:
        tree_a: [C] first tree, or T + body.
        tree_b: [C] second tree, or T + body, or `WORLD`; both sides in one tree are folded into a.
        jacobian: for each contact J_a, [3, n_a] row-major, then J_b, [3, n_b], unless b is the
            world; one after the other [-, m]. See `concatenate`.
        signed_distance: [C] φ0, negative in penetration [m].
        stiffness: [C] k > 0 [N/m].
        relaxation_time: [C] τ_d >= 0 [s].
        friction: [C] μ >= 0 [-].
        regularization_t: [C] R_t instead of σ w, or empty [1/kg].
        regularization_n: [C] R_n instead of max(β² w / 4π², 1 / (δt k (δt + τ_d))), or empty
            [1/kg].
        delassus_estimate: [C] w instead of |J A^-1 J'| / 3, or empty [1/kg].
        surface_velocity: [C, 3] b in the frame of the contact, or empty [m/s].
    """

    FIELD = "contacts"
    _DESCRIPTOR = problem_pb2.Contacts.DESCRIPTOR

    tree_a: ArrayField[np.int32] = ArrayField(np.int32)
    tree_b: ArrayField[np.int32] = ArrayField(np.int32)
    jacobian: ArrayField[Float64] = ArrayField(Float64)
    signed_distance: ArrayField[Float64] = ArrayField(Float64)
    stiffness: ArrayField[Float64] = ArrayField(Float64)
    relaxation_time: ArrayField[Float64] = ArrayField(Float64)
    friction: ArrayField[Float64] = ArrayField(Float64)
    regularization_t: ArrayField[Float64] = ArrayField(Float64)
    regularization_n: ArrayField[Float64] = ArrayField(Float64)
    delassus_estimate: ArrayField[Float64] = ArrayField(Float64)
    surface_velocity: ArrayField[Float64] = ArrayField(Float64, 3)

    @property
    def count(self) -> int:
        """C."""
        return self.tree_a.size if self.tree_a.ndim else self.signed_distance.size


@dataclass(eq=False, repr=False)
class BodyContacts(_Group):
    """C' contacts between rigid bodies by point and normal; the server makes the Jacobians.

    Attributes:
        body_a: [C'] first body, 0 to B - 1.
        body_b: [C'] second body, or `WORLD`.
        point: [C', 3] in world axes [m].
        normal: [C', 3] unit vector in world axes from b to a, so that v_n > 0 separates [-].
        signed_distance: [C'] φ0, negative in penetration [m].
        stiffness: [C'] k > 0 [N/m].
        relaxation_time: [C'] τ_d >= 0 [s].
        friction: [C'] μ >= 0 [-].
        regularization_t: [C'] as `Contacts.regularization_t`.
        regularization_n: [C'] as `Contacts.regularization_n`.
        delassus_estimate: [C'] as `Contacts.delassus_estimate`.
        surface_velocity: [C', 3] added to the velocity of a relative to b, in world axes, or empty
            [m/s].
    """

    FIELD = "body_contacts"
    _DESCRIPTOR = problem_pb2.BodyContacts.DESCRIPTOR

    body_a: ArrayField[np.int32] = ArrayField(np.int32)
    body_b: ArrayField[np.int32] = ArrayField(np.int32)
    point: ArrayField[Float64] = ArrayField(Float64, 3)
    normal: ArrayField[Float64] = ArrayField(Float64, 3)
    signed_distance: ArrayField[Float64] = ArrayField(Float64)
    stiffness: ArrayField[Float64] = ArrayField(Float64)
    relaxation_time: ArrayField[Float64] = ArrayField(Float64)
    friction: ArrayField[Float64] = ArrayField(Float64)
    regularization_t: ArrayField[Float64] = ArrayField(Float64)
    regularization_n: ArrayField[Float64] = ArrayField(Float64)
    delassus_estimate: ArrayField[Float64] = ArrayField(Float64)
    surface_velocity: ArrayField[Float64] = ArrayField(Float64, 3)

    @property
    def count(self) -> int:
        """C'."""
        return self.body_a.size if self.body_a.ndim else self.signed_distance.size


class RegularizationRule(enum.IntEnum):
    """Which inverse of A enters the Delassus estimate w = |J A^-1 J'| / 3."""

    UNSPECIFIED = problem_pb2.REGULARIZATION_RULE_UNSPECIFIED
    FULL = problem_pb2.REGULARIZATION_RULE_FULL
    DIAGONAL = problem_pb2.REGULARIZATION_RULE_DIAGONAL


@dataclass
class Regularization:
    """Regularization of the contacts that bring none of their own.

    Attributes:
        beta: Near-rigid parameter β of R_n [-]; None: 1.
        sigma: Slip parameter σ, R_t = σ w [-]; None: 1e-3.
        rule: How w is estimated; unspecified: by the whole block A_t.
    """

    beta: float | None = None
    sigma: float | None = None
    rule: RegularizationRule = RegularizationRule.UNSPECIFIED

    @classmethod
    def _parse(cls, data: bytes) -> Regularization:
        message = problem_pb2.Regularization.FromString(data)
        return cls(
            message.beta if message.HasField("beta") else None,
            message.sigma if message.HasField("sigma") else None,
            RegularizationRule(message.rule),
        )


@functools.lru_cache(maxsize=256)  # the same in every step of a simulation
def _regularization_field(
    beta: float | None, sigma: float | None, rule: RegularizationRule
) -> bytes:
    """The field of a problem that has these, empty if they are what the server takes anyway."""
    if beta is None and sigma is None and not rule:
        return b""
    message = problem_pb2.Regularization(beta=beta, sigma=sigma)
    message.rule = int(rule)  # type: ignore[assignment]  # an enumeration is an int there
    serialized = message.SerializeToString()
    return _REGULARIZATION_TAG + wire_format.varint(len(serialized)) + serialized


_FIELDS = problem_pb2.ContactProblem.DESCRIPTOR.fields_by_name
_TIME_STEP_TAG = wire_format.varint(_FIELDS["time_step"].number << 3 | wire_format.FIXED64)
_GROUPS: tuple[tuple[str, type[_Group], bytes], ...] = tuple(
    (kind.FIELD, kind, wire_format.length_tag(problem_pb2.ContactProblem.DESCRIPTOR, kind.FIELD))
    for kind in (Trees, RigidBodies, Contacts, BodyContacts)
)
_GROUP_BY_NUMBER = {_FIELDS[name].number: (name, kind) for name, kind, _ in _GROUPS}
_REGULARIZATION_NUMBER = _FIELDS["regularization"].number
_REGULARIZATION_TAG = wire_format.length_tag(
    problem_pb2.ContactProblem.DESCRIPTOR, "regularization"
)


@dataclass(eq=False)
class Problem:
    """One contact problem; see the module for the equations.

    Velocities and islands are numbered trees first, then bodies; impulses, contacts first, then
    body contacts.

    Attributes:
        time_step: δt > 0 [s].
        trees: Articulated bodies.
        bodies: Free rigid bodies in compact form.
        contacts: Contacts by their Jacobians.
        body_contacts: Contacts between rigid bodies by points and normals.
        regularization: Parameters of the near-rigid regularization.
    """

    time_step: float
    trees: Trees = field(default_factory=Trees.none)
    bodies: RigidBodies = field(default_factory=RigidBodies.none)
    contacts: Contacts = field(default_factory=Contacts.none)
    body_contacts: BodyContacts = field(default_factory=BodyContacts.none)
    regularization: Regularization = field(default_factory=Regularization)

    @property
    def num_velocities(self) -> int:
        """Length of v: sum of n_t over trees, then 6 for each body."""
        return int(self.trees.dofs.sum()) + 6 * self.bodies.count

    @property
    def num_contacts(self) -> int:
        """Contacts and body contacts together."""
        return self.contacts.count + self.body_contacts.count

    def encode(self) -> tuple[wire_format.Parts, int]:
        """Parts and size of the serialized message; the arrays are among them, uncopied."""
        parts: wire_format.Parts = [_TIME_STEP_TAG, struct.pack("<d", self.time_step)]
        size = len(_TIME_STEP_TAG) + 8
        values = self.__dict__
        for name, kind, tag in _GROUPS:
            size += kind._arrays.append(values[name], tag, parts)
        given = self.regularization
        regularization = _regularization_field(given.beta, given.sigma, given.rule)
        parts.append(regularization)
        return parts, size + len(regularization)

    def to_bytes(self) -> bytes:
        """The serialized sap.v1.ContactProblem."""
        return b"".join(self.encode()[0])

    @classmethod
    def from_bytes(cls, data: bytes) -> Problem:
        """The problem of a serialized sap.v1.ContactProblem; arrays are read-only."""
        problem = cls(0.0)
        groups: dict[str, list[tuple[int, int]]] = {}
        for number, wire_type, start, end in wire_format.scan(data, 0, len(data)):
            if number in _GROUP_BY_NUMBER and wire_type == wire_format.LENGTH:
                groups.setdefault(_GROUP_BY_NUMBER[number][0], []).append((start, end))
            elif number == _FIELDS["time_step"].number and wire_type == wire_format.FIXED64:
                problem.time_step = float(np.frombuffer(data, "<f8", 1, start)[0])
            elif number == _REGULARIZATION_NUMBER and wire_type == wire_format.LENGTH:
                problem.regularization = Regularization._parse(data[start:end])
        for name, kind in _GROUP_BY_NUMBER.values():
            if name in groups:
                pieces = groups[name]
                if len(pieces) > 1:  # a message that comes in pieces is their concatenation
                    data_of_group = b"".join(data[start:end] for start, end in pieces)
                    values = kind._decode(data_of_group, 0, len(data_of_group))
                else:
                    values = kind._decode(data, *pieces[0])
                setattr(problem, name, kind(**values))
        return problem


def concatenate(blocks: Sequence[FloatArray]) -> FloatArray:
    """Matrices of any shapes, row-major, one after the other: how the wire has A and J."""
    if not len(blocks):
        return np.empty(0)
    return np.concatenate([np.asarray(block, np.float64).ravel() for block in blocks])
