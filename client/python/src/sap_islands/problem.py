"""The frictional-contact problem of one time step, in SI units.

    min_v  1/2 |v - v*|_A^2 + sum_i 1/2 γ_i' R_i γ_i
    γ_i = P_F(y_i) in the R_i norm,   y_i = -R_i^-1 (v_c,i - v̂_i)
    v_c,i = J_a v_a + J_b v_b + b_i

[Castro, Permenter, Han 2021, "An Unconstrained Convex Formulation of Compliant Contact"]. The
classes mirror the messages of proto/sap/v1/problem.proto with NumPy arrays. Only data types are
checked here; the server checks lengths and values, and its errors name the field.
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

WORLD = -1  # as the second tree or body of a contact: the world

GroupT = TypeVar("GroupT", bound="_Group")


class _Group:
    """A message that consists of arrays with one entry per tree, body or contact.

    A subclass declares one `ArrayField` per field of its message, under the same name.
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
        """Makes a group without conversion: arrays are contiguous, of the wire's data types."""
        group = cls.__new__(cls)
        group.__dict__ = {**cls._none, **arrays, HAS_ARRAYS: True}
        return group

    @classmethod
    def none(cls: type[GroupT]) -> GroupT:
        """Makes a group without entries."""
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
        dynamics_matrix: [sum n_t²] A_t of each tree, row-major, concatenated [kg, kg m, kg m²].
            Symmetric and positive definite.
        free_motion_velocity: [sum n_t] v*, the velocity at the end of the step without contact
            [m/s, rad/s].
        guess_velocity: [sum n_t] initial guess, or empty: v* [m/s, rad/s].
        tree_id: [T] identifiers that a session matches from step to step, or empty.
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
        """Makes trees from their dynamics matrices A_t, [n_t, n_t] each."""
        return cls(
            dofs=np.array([len(matrix) for matrix in matrices], np.uint32),
            dynamics_matrix=concatenate(matrices),
            free_motion_velocity=free_motion_velocity,
            guess_velocity=guess_velocity,
            tree_id=tree_id,
        )

    def blocks(self) -> list[FloatArray]:
        """A_t of each tree as views, [n_t, n_t] each."""
        ends = np.cumsum(self.dofs.astype(np.int64) ** 2)
        pieces = np.split(self.dynamics_matrix.ravel(), ends[:-1]) if len(ends) else []
        return [piece.reshape(n, n) for piece, n in zip(pieces, self.dofs, strict=True)]


@dataclass(eq=False, repr=False)
class RigidBodies(_Group):
    """B free rigid bodies with six velocities each: that of the center of mass, then angular.

    All quantities are in world axes. Body i counts as tree T + i.

    Attributes:
        mass: [B] > 0 [kg].
        inertia: [B, 6] about the center of mass as xx, yy, zz, xy, xz, yz [kg m²].
        center_of_mass: [B, 3] position [m].
        free_motion_velocity: [B, 6] v*, the velocity at the end of the step without contact [m/s,
            rad/s].
        guess_velocity: [B, 6] initial guess, or empty: v* [m/s, rad/s].
        body_id: [B] identifiers that a session matches from step to step, or empty.
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
    """C contacts given by Jacobians in their frames (t1, t2, n); v_n > 0 separates.

    Attributes:
        tree_a: [C] first tree: its number, or T + number of a body.
        tree_b: [C] second tree, likewise, or `WORLD`. For a contact within one tree add both sides
            to J_a and use `WORLD`.
        jacobian: For each contact J_a, [3, n_a] row-major, then J_b, [3, n_b], unless b is the
            world; concatenated [-, m]. See `concatenate`.
        signed_distance: [C] φ0, negative in penetration [m].
        stiffness: [C] k > 0 [N/m].
        relaxation_time: [C] τ_d >= 0 [s].
        friction: [C] μ >= 0 [-].
        regularization_t: [C] R_t, or empty: σ w [1/kg].
        regularization_n: [C] R_n, or empty: max(β² w / 4π², 1 / (δt k (δt + τ_d))) [1/kg].
        delassus_estimate: [C] w, or empty: |J A^-1 J'| / 3 [1/kg].
        surface_velocity: [C, 3] b in the frame of the contact, or empty: 0 [m/s].
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
    """C' contacts between rigid bodies given by point and normal; the server makes the Jacobians.

    Attributes:
        body_a: [C'] first body, 0 to B - 1.
        body_b: [C'] second body, or `WORLD`.
        point: [C', 3] contact point in world axes [m].
        normal: [C', 3] unit vector in world axes from b to a, so that v_n > 0 separates [-].
        signed_distance: [C'] φ0, negative in penetration [m].
        stiffness: [C'] k > 0 [N/m].
        relaxation_time: [C'] τ_d >= 0 [s].
        friction: [C'] μ >= 0 [-].
        regularization_t: [C'] as `Contacts.regularization_t`.
        regularization_n: [C'] as `Contacts.regularization_n`.
        delassus_estimate: [C'] as `Contacts.delassus_estimate`.
        surface_velocity: [C', 3] added to the velocity of a relative to b, in world axes, or
            empty: 0 [m/s].
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
    """Inverse of A in the Delassus estimate w = |J A^-1 J'| / 3: full, or of the diagonal."""

    UNSPECIFIED = problem_pb2.REGULARIZATION_RULE_UNSPECIFIED
    FULL = problem_pb2.REGULARIZATION_RULE_FULL
    DIAGONAL = problem_pb2.REGULARIZATION_RULE_DIAGONAL


@dataclass
class Regularization:
    """Regularization of the contacts that have no regularization_t and _n of their own.

    Attributes:
        beta: Near-rigid parameter β in R_n [-]; None: 1.
        sigma: Slip parameter σ in R_t = σ w [-]; None: 1e-3.
        rule: Estimate of w; unspecified: full.
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
    """The serialized field `regularization` with its tag; empty if all are the defaults."""
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
    """One contact problem; the equations are in the docstring of this module.

    Velocities are ordered trees first, then bodies. Impulses are ordered contacts first, then body
    contacts.

    Attributes:
        time_step: δt > 0 [s].
        trees: Articulated bodies.
        bodies: Free rigid bodies, given by mass and inertia.
        contacts: Contacts given by Jacobians.
        body_contacts: Contacts between rigid bodies given by points and normals.
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
        """nv: the sum of n_t over the trees, plus 6 per body."""
        return int(self.trees.dofs.sum()) + 6 * self.bodies.count

    @property
    def num_contacts(self) -> int:
        """Number of contacts and body contacts."""
        return self.contacts.count + self.body_contacts.count

    def encode(self) -> tuple[wire_format.Parts, int]:
        """Parts and size [bytes] of the serialized message; its arrays are parts, not copied."""
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
        """Parses a serialized sap.v1.ContactProblem; the arrays are read-only.

        Raises:
            ValueError, IndexError: The message is malformed or truncated.
        """
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
                if len(pieces) > 1:  # protobuf merges repeated occurrences by concatenation
                    data_of_group = b"".join(data[start:end] for start, end in pieces)
                    values = kind._decode(data_of_group, 0, len(data_of_group))
                else:
                    values = kind._decode(data, *pieces[0])
                setattr(problem, name, kind(**values))
        return problem


def concatenate(blocks: Sequence[FloatArray]) -> FloatArray:
    """Flattens matrices row-major and concatenates them, as `dynamics_matrix` and `jacobian`."""
    if not len(blocks):
        return np.empty(0)
    return np.concatenate([np.asarray(block, np.float64).ravel() for block in blocks])
