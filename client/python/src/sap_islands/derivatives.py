"""Derivatives of the solution of a problem, in SI units.

Reverse mode: a `Cotangent` holds dL/d(output) of a number L for the arrays of a solution; its
`Gradient` is dL/d(input) for the inputs of the problem. Forward mode: a direction is a `Problem`
whose numbers are d(input); its `Tangent` is d(output). Each input is differentiated with all others
held: v* does not follow A or δt.

Impulses are piecewise smooth functions of the inputs. At a kink the derivative is that of the
branch that the solver takes: a contact on the boundary of its cone sticks, a row at a bound is
saturated, of two equal values of R_n the compliant one counts, and a contact without slip has no
direction of slip. No derivative is infinite or NaN. `Derivatives.kink_margin` tells how near the
next branch is.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sap_islands._arrays.array_field import ArrayField, Float64
from sap_islands._arrays.bodies import RigidBodies, Trees
from sap_islands._arrays.constraint_rows import ConstraintRows
from sap_islands._arrays.contacts import BodyContacts, Contacts
from sap_islands.arrays import FloatArray, IntArray
from sap_islands.options import Options
from sap_islands.problem import Problem, Regularization
from sap_islands.solution import Solution


class AdjointStatus(enum.IntEnum):
    """How the derivatives of an island were computed.

    DIFFERENTIATED: at a solution within the tolerance. INACCURATE: at the best velocity, which does
    not meet it. DEADLINE, NUMERICAL_FAILURE: not at all; the derivatives of the island are 0.
    """

    UNSPECIFIED = 0
    DIFFERENTIATED = 1
    INACCURATE = 2
    DEADLINE = 3
    NUMERICAL_FAILURE = 4


@dataclass(eq=False)
class Cotangent:
    """dL/d(output) of a number L, in the shapes of a `Solution`; an empty array is 0.

    Attributes:
        velocity: [nv] dL/dv [1/(m/s), 1/(rad/s), times the unit of L].
        impulse: [C + C', 3] dL/dγ of the contacts [1/(N s)].
        contact_velocity: [C + C', 3] dL/dv_c of the contacts [1/(m/s)].
        row_impulse: [R] dL/dγ of the rows [1/(N s), 1/(N m s)].
        row_velocity: [R] dL/dv_c of the rows [1/(m/s), 1/(rad/s)].
        angular_impulse: [K, 3] dL/d(angular impulse) [1/(N m s)].
        cost: dL/dl of the cost l(v) [1/J].
    """

    FIELD = "cotangent"

    velocity: ArrayField[Float64] = ArrayField(Float64, repeats=False)
    impulse: ArrayField[Float64] = ArrayField(Float64, 3, repeats=False)
    contact_velocity: ArrayField[Float64] = ArrayField(Float64, 3, repeats=False)
    row_impulse: ArrayField[Float64] = ArrayField(Float64, repeats=False)
    row_velocity: ArrayField[Float64] = ArrayField(Float64, repeats=False)
    angular_impulse: ArrayField[Float64] = ArrayField(Float64, 3, repeats=False)
    cost: float = 0.0


@dataclass(eq=False)
class DifferentiateRequest:
    """A problem to differentiate, and in which directions.

    Attributes:
        problem: The problem.
        cotangents: Reverse mode: one gradient is computed for each.
        tangents: Forward mode: problems whose numbers are directions d(input), with time step 0
            unless it is varied. Index arrays, identifiers and laws are not read. A single number or
            row is repeated, as in `problem`.
        velocity: [nv] velocity of the solution if it is at hand, otherwise empty [m/s, rad/s]. An
            island where it meets the tolerance takes no iteration, any other is solved from there.
        wanted: Inputs to return in gradients, as "contacts.friction", "bodies" (all arrays that
            the problem has there), "applied_impulse", "delassus_estimate". Empty: all but
            dynamics_matrix, coupling_block, jacobian and angular_jacobian, which are as large as A
            and J.
        hold_delassus: Whether the estimates w are held. False: those not given are differentiated
            as functions of A and J, so that differences of solutions agree with the derivatives.
        options: How to solve. None: the server's defaults; `relative_tolerance` is 1e-10 here.
            `response_mask` applies to the solution.
    """

    problem: Problem
    cotangents: Sequence[Cotangent] = ()
    tangents: Sequence[Problem] = ()
    velocity: ArrayField[Float64] = ArrayField(Float64, repeats=False)
    wanted: Sequence[str] = ()
    hold_delassus: bool = False
    options: Options | None = None


@dataclass(frozen=True, eq=False)
class Gradient:
    """dL/d(input) of one cotangent for the inputs that were wanted [unit of L per unit of input].

    Its attributes are those of a `Problem`, their arrays named and shaped as the inputs, with all
    entries where the problem has a single number. Arrays that were not wanted, index arrays and
    guesses are empty. `gradient["contacts.friction"]` is `gradient.contacts.friction`.

    Attributes:
        time_step: dL/dδt; v* is held.
        trees: `dynamics_matrix` has symmetric blocks G: dL = Σ G_ij dA_ij for symmetric dA. Each
            entry of `coupling_block` stands for two of the matrix.
        bodies: In `inertia` xy, xz and yz each stand for two entries of the matrix.
        contacts: `stiffness` is 0 where R_n does not follow from it.
        body_contacts: `normal` and `tangent` are orthogonal to the vectors, which the problem
            normalizes.
        regularization: beta, sigma, row_beta, stiction_speed, reference_time_step; None where not
            wanted, the last also where the problem does not have it.
        rows: Constraint rows.
        applied_impulse: [nv] dL/d(impulse added to the momentum A v* at fixed A), such as the force
            of an actuator times δt.
        delassus_estimate: [C + C'] dL/dw, whether w was given, computed or held; 0 where no
            parameter of the contact follows from it.
    """

    time_step: float
    trees: Trees
    bodies: RigidBodies
    contacts: Contacts
    body_contacts: BodyContacts
    regularization: Regularization
    rows: ConstraintRows
    applied_impulse: FloatArray
    delassus_estimate: FloatArray

    def __getitem__(self, path: str) -> Any:
        try:
            return functools.reduce(getattr, path.split("."), self)
        except AttributeError:
            raise KeyError(path) from None


@dataclass(frozen=True, eq=False)
class Tangent:
    """d(output) along a direction of the inputs, in the shapes of a `Solution`.

    Attributes:
        velocity: [nv] dv [m/s, rad/s].
        impulse: [C + C', 3] dγ of the contacts [N s].
        contact_velocity: [C + C', 3] dv_c of the contacts [m/s].
        row_impulse: [R] dγ of the rows [N s, N m s].
        row_velocity: [R] dv_c of the rows [m/s, rad/s].
        angular_impulse: [K, 3] d(angular impulse) [N m s].
        cost: dl of the cost [J].
    """

    velocity: FloatArray
    impulse: FloatArray
    contact_velocity: FloatArray
    row_impulse: FloatArray
    row_velocity: FloatArray
    angular_impulse: FloatArray
    cost: float


@dataclass(frozen=True, eq=False)
class Derivatives:
    """Derivatives of the solution of one problem.

    Attributes:
        solution: The solution at which they were taken. `solution.islands.iterations` is 0 for
            islands where the velocity of the request met the tolerance.
        gradients: One per cotangent, in their order.
        tangents: One per tangent, in their order.
        kink_margin: [I] relative distance of each island to its nearest kink, in [0, 1]: the least
            over its constraints [-]. Below 1e-6 take the derivatives as those of one side.
        adjoint_status: [I] values of `AdjointStatus`.
    """

    solution: Solution
    gradients: tuple[Gradient, ...]
    tangents: tuple[Tangent, ...]
    kink_margin: FloatArray
    adjoint_status: IntArray

    @property
    def accurate(self) -> bool:
        """Whether every island was differentiated at a solution within the tolerance."""
        return bool(np.all(self.adjoint_status == AdjointStatus.DIFFERENTIATED))
