"""The constrained motion of one time step, in SI units: contacts and constraint rows.

    min_v  1/2 |v - v*|_A^2 + sum_i f_i(v_c,i),   v_c,i = J_i v + b_i
    γ_i = -∂f_i / ∂v_c,i = P_C(y_i) in the R_i norm,   y_i = R_i^-1 (v̂_i - v_c,i)

[Castro, Permenter, Han 2021, "An Unconstrained Convex Formulation of Compliant Contact"]. The
classes mirror the messages of proto/sap/v1/problem.proto with NumPy arrays. Only data types are
checked here; the server checks lengths and values, and its errors name the field.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

from sap_islands._arrays.array_field import concatenate
from sap_islands._arrays.bodies import RigidBodies, Trees
from sap_islands._arrays.constraint_rows import ConstraintRows
from sap_islands._arrays.contacts import WORLD, BodyContacts, ContactLaw, Contacts, HuntCrossley
from sap_islands._arrays.description import describe
from sap_islands._library import formats

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

    UNSPECIFIED = 0
    FULL = 1
    DIAGONAL = 2
    LOAD_PATH = 3


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
        reference_time_step: h [s]: contacts and rows are the dashpots and near-rigid springs that
            they are in a step of h, so that creep and sag do not depend on δt: R_t = σ w h / δt.
            What is given as R is taken as it is; None: δt.
    """

    beta: float | None = None
    sigma: float | None = None
    rule: RegularizationRule = RegularizationRule.UNSPECIFIED
    row_beta: float | None = None
    stiction_speed: float | None = None
    load_reference_speed: float | None = None
    reference_time_step: float | None = None

    @classmethod
    def rigid(cls) -> Regularization:
        """Numbers with which there is hardly any sag and creep: β 0.01, σ 1e-6, β of rows 1e-3.

        Scenes that move take some three times the iterations of the defaults, each of them dearer.
        """
        return cls(beta=0.01, sigma=1e-6, row_beta=1e-3)

    @classmethod
    def of_values(cls, values: dict[str, Any]) -> Regularization:
        """Makes it of attributes by name, with the number of the rule."""
        return cls(**values | {"rule": RegularizationRule(values.get("rule", 0))})


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

    def describe(self) -> str:
        """A few lines in SI units: counts, masses, speeds, overlap of contacts, stiffness.

        A time step in ms, a mass in g or a length in mm is seen here at once, where the solver
        cannot know what was meant.
        """
        return describe(
            self.time_step,
            self.trees,
            self.bodies,
            self.contacts,
            self.body_contacts,
            self.rows,
        )

    def to_bytes(self) -> bytes:
        """The serialized sap.v1.ContactProblem."""
        return formats.problem_to_bytes(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> Problem:
        """Parses a serialized sap.v1.ContactProblem; the arrays are read-only.

        Raises:
            InvalidArgument: The message is malformed or truncated.
        """
        return cls.of_values(formats.problem_from_bytes(data))

    @classmethod
    def of_values(cls, values: dict[str, Any]) -> Problem:
        """Makes it of attributes by name, those of the regularization by name."""
        return cls(
            **values | {"regularization": Regularization.of_values(values["regularization"])}
        )
