"""The constrained motion of one time step, in SI units: contacts and constraint rows.

    min_v  1/2 |v - v*|_A^2 + sum_i f_i(v_c,i),   v_c,i = J_i v + b_i
    γ_i = -∂f_i / ∂v_c,i = P_C(y_i) in the R_i norm,   y_i = R_i^-1 (v̂_i - v_c,i)

[Castro, Permenter, Han 2021, "An Unconstrained Convex Formulation of Compliant Contact"]. The
classes mirror the messages of proto/sap/v1/problem.proto with NumPy arrays. Only data types are
checked here; the server checks lengths and values, and its errors name the field.
"""

from __future__ import annotations

import enum
import functools
import struct
from dataclasses import dataclass, field

import numpy as np

from sap_islands._arrays import wire_format
from sap_islands._arrays.array_field import concatenate
from sap_islands._arrays.array_group import ArrayGroup
from sap_islands._arrays.bodies import RigidBodies, Trees
from sap_islands._arrays.constraint_rows import ConstraintRows
from sap_islands._arrays.contacts import WORLD, BodyContacts, ContactLaw, Contacts, HuntCrossley
from sap_islands.v1 import problem_pb2

__all__ = [
    "WORLD",
    "BodyContacts",
    "ConstraintRows",
    "ContactLaw",
    "Contacts",
    "HuntCrossley",
    "Problem",
    "Regularization",
    "RegularizationRule",
    "RigidBodies",
    "Trees",
    "concatenate",
]


class RegularizationRule(enum.IntEnum):
    """How the Delassus estimate w of contacts is made.

    FULL: |J A^-1 J'| / 3. DIAGONAL: with the inverse of the diagonal of A. LOAD_PATH: as FULL, and
    no more than the load allows that passes through the contact, so that towers, and light bodies
    under heavy ones, rest as deep as a single mass does. It needs `initial_velocity` of trees and
    bodies.
    """

    UNSPECIFIED = problem_pb2.REGULARIZATION_RULE_UNSPECIFIED
    FULL = problem_pb2.REGULARIZATION_RULE_FULL
    DIAGONAL = problem_pb2.REGULARIZATION_RULE_DIAGONAL
    LOAD_PATH = problem_pb2.REGULARIZATION_RULE_LOAD_PATH


@dataclass
class Regularization:
    """Regularization of the contacts and rows that have none of their own.

    Attributes:
        beta: Near-rigid parameter β in R_n [-]; None: 1.
        sigma: Slip parameter σ in R_t = σ w [-]; None: 1e-3.
        rule: Estimate of w; unspecified: full.
        row_beta: β in R of constraint rows [-]; None: 0.1.
        stiction_speed: Slip below which friction of a contact of Hunt & Crossley is not full, at
            least [m/s]; None: 1e-4.
        load_reference_speed: Of LOAD_PATH: speed that forces give in a step to what is to count by
            its mass, such as g δt [m/s]. With it the contacts of light bodies that motors drive,
            as fingers, count by force; None: they do not.
    """

    beta: float | None = None
    sigma: float | None = None
    rule: RegularizationRule = RegularizationRule.UNSPECIFIED
    row_beta: float | None = None
    stiction_speed: float | None = None
    load_reference_speed: float | None = None

    @classmethod
    def _parse(cls, data: bytes) -> Regularization:
        message = problem_pb2.Regularization.FromString(data)
        given = {descriptor.name: value for descriptor, value in message.ListFields()}
        given["rule"] = RegularizationRule(message.rule)
        return cls(**given)


@functools.lru_cache(maxsize=256)  # the same in every step of a simulation
def _regularization_field(
    rule: RegularizationRule,
    beta: float | None,
    sigma: float | None,
    row_beta: float | None,
    stiction_speed: float | None,
    load_reference_speed: float | None,
) -> bytes:
    """The serialized field `regularization` with its tag; empty if all are the defaults."""
    message = problem_pb2.Regularization(
        beta=beta,
        sigma=sigma,
        row_beta=row_beta,
        stiction_speed=stiction_speed,
        load_reference_speed=load_reference_speed,
    )
    message.rule = int(rule)  # type: ignore[assignment]  # an enumeration is an int there
    serialized = message.SerializeToString()
    if not serialized:
        return b""
    return _REGULARIZATION_TAG + wire_format.varint(len(serialized)) + serialized


_FIELDS = problem_pb2.ContactProblem.DESCRIPTOR.fields_by_name
_TIME_STEP_TAG = wire_format.varint(_FIELDS["time_step"].number << 3 | wire_format.FIXED64)
_GROUPS: tuple[tuple[str, type[ArrayGroup], bytes], ...] = tuple(
    (kind.FIELD, kind, wire_format.length_tag(problem_pb2.ContactProblem.DESCRIPTOR, kind.FIELD))
    for kind in (Trees, RigidBodies, Contacts, BodyContacts, ConstraintRows)
)
_GROUP_BY_NUMBER = {_FIELDS[name].number: (name, kind) for name, kind, _ in _GROUPS}
_REGULARIZATION_NUMBER = _FIELDS["regularization"].number
_REGULARIZATION_TAG = wire_format.length_tag(
    problem_pb2.ContactProblem.DESCRIPTOR, "regularization"
)
_BEFORE_REGULARIZATION = sum(number < _REGULARIZATION_NUMBER for number in _GROUP_BY_NUMBER)


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
        rows: Constraint rows.
    """

    time_step: float
    trees: Trees = field(default_factory=Trees.none)
    bodies: RigidBodies = field(default_factory=RigidBodies.none)
    contacts: Contacts = field(default_factory=Contacts.none)
    body_contacts: BodyContacts = field(default_factory=BodyContacts.none)
    regularization: Regularization = field(default_factory=Regularization)
    rows: ConstraintRows = field(default_factory=ConstraintRows.none)

    @property
    def num_velocities(self) -> int:
        """nv: the sum of n_t over the trees, plus 6 per body."""
        return int(self.trees.dofs.sum()) + 6 * self.bodies.count

    @property
    def num_contacts(self) -> int:
        """Number of contacts and body contacts."""
        return self.contacts.count + self.body_contacts.count

    def encode(self, direction_of: Problem | None = None) -> tuple[wire_format.Parts, int]:
        """Parts and size [bytes] of the serialized message; its arrays are parts, not copied.

        Args:
            direction_of: Given for a direction d(input): the problem that is differentiated. A
                direction has no index arrays, so numbers and rows are repeated as often as there.
        """
        parts: wire_format.Parts = [_TIME_STEP_TAG, struct.pack("<d", self.time_step)]
        size = len(_TIME_STEP_TAG) + 8
        values = self.__dict__
        counts: dict[str, int] = {}
        if direction_of is not None:
            counts = {name: getattr(direction_of, name).count for name, _, _ in _GROUPS}
        for name, kind, tag in _GROUPS[:_BEFORE_REGULARIZATION]:
            size += kind.encoder.append(values[name], tag, parts, counts.get(name))
        given = self.regularization
        regularization = _regularization_field(
            given.rule,
            given.beta,
            given.sigma,
            given.row_beta,
            given.stiction_speed,
            given.load_reference_speed,
        )
        parts.append(regularization)
        for name, kind, tag in _GROUPS[_BEFORE_REGULARIZATION:]:
            size += kind.encoder.append(values[name], tag, parts, counts.get(name))
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
                    group = kind.decode(data_of_group, 0, len(data_of_group))
                else:
                    group = kind.decode(data, *pieces[0])
                setattr(problem, name, group)
        return problem
