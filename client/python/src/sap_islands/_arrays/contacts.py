"""Frictional contacts, given by Jacobians or by points and normals of rigid bodies."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np

from sap_islands._arrays.array_field import ArrayField, Float64
from sap_islands._arrays.array_group import ArrayGroup, GroupField

WORLD = -1  # as the second tree or body of a contact: the world


class ContactLaw(enum.IntEnum):
    """Which function gives the impulse of a contact from its velocity; unspecified: SAP."""

    UNSPECIFIED = 0
    SAP = 1
    HUNT_CROSSLEY_LAGGED = 2
    HUNT_CROSSLEY_SIMILAR = 3


@dataclass(eq=False, repr=False)
class HuntCrossley(ArrayGroup):
    """Parameters of the contacts with a law of Hunt & Crossley; the equations are in the schema.

    Each array has one entry per contact of the group, of whatever law; those of other laws are not
    read.

    Attributes:
        elastic_force: [C] f_e at the beginning of the step, -k φ0 for a point [N].
        dissipation: [C] d >= 0 [s/m].
        lagged_normal_impulse: [C] n_0 >= 0, which bounds friction [N s]. Usually
            δt max(0, f_e) max(0, 1 - d v_n) at the velocity before the step.
    """

    FIELD = "hunt_crossley"

    elastic_force: ArrayField[Float64] = ArrayField(Float64)
    dissipation: ArrayField[Float64] = ArrayField(Float64)
    lagged_normal_impulse: ArrayField[Float64] = ArrayField(Float64)

    @property
    def count(self) -> int:
        """C."""
        return self.elastic_force.size


@dataclass(eq=False, repr=False)
class Contacts(ArrayGroup):
    """C contacts given by Jacobians in their frames (t1, t2, n); v_n > 0 separates.

    Attributes:
        tree_a: [C] first tree: its number, or T + number of a body.
        tree_b: [C] second tree, likewise, or `WORLD`. For a contact within one tree add both sides
            to J_a and use `WORLD`.
        jacobian: For each contact J_a, [3, n_a] row-major, then J_b, [3, n_b], unless b is the
            world; concatenated [-, m]. See `concatenate`.
        signed_distance: [C] φ0, negative in penetration [m].
        stiffness: [C] k > 0 [N/m].
        relaxation_time: [C] τ_d >= 0 [s]; 0 before touch, where φ0 > 0, or the contact brakes
            bodies that do not touch within the step.
        friction: [C] μ >= 0 [-].
        regularization_t: [C] R_t, or empty: σ w [1/kg].
        regularization_n: [C] R_n, or empty: max(β² w / 4π², 1 / (δt k (δt + τ_d))) [1/kg].
        delassus_estimate: [C] w, or empty: |J A^-1 J'| / 3 [1/kg].
        surface_velocity: [C, 3] b in the frame of the contact, or empty: 0 [m/s].
        friction_2: [C] μ_2 along t2, or empty: `friction`, which is the one along t1 [-].
        torsional_friction: [C] about the normal, or empty: 0 [m].
        rolling_friction: [C, 2] about t1 and t2, or empty: 0 [m].
        angular_jacobian: As `jacobian`, of the relative angular velocity about t1, t2 and n, for
            each contact with a torsional or rolling coefficient > 0 only [-, 1/m].
        target_velocity: [C, 3] v̂ in the frame of the contact, or empty: from φ0, which is not
            read otherwise [m/s].
        target_angular_velocity: [K, 3] of the K contacts in `angular_jacobian`, or empty: 0
            [rad/s].
        adhesion: [C] force that holds the contact together, or empty: 0 [N].
        law: [C] values of `ContactLaw`, or empty: SAP.
        hunt_crossley: Of the contacts with such a law, or None.
        parts: [C] number of trees of each contact, in place of `tree_a` and `tree_b`; or empty.
        part_tree: [sum of parts] trees of each contact, numbered as in `tree_a`. `jacobian` and
            `angular_jacobian` then have a block for each of them in this order.
        guess_impulse: [C, 3] impulses that the interior-point method starts from, in the frame
            (t1, t2, n) as those of a solution, or empty: no guess [N s].
        guess_angular_impulse: [K, 3] likewise, of the K contacts in `angular_jacobian` [N m s].
    """

    FIELD = "contacts"

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
    friction_2: ArrayField[Float64] = ArrayField(Float64)
    torsional_friction: ArrayField[Float64] = ArrayField(Float64)
    rolling_friction: ArrayField[Float64] = ArrayField(Float64, 2)
    angular_jacobian: ArrayField[Float64] = ArrayField(Float64)
    target_velocity: ArrayField[Float64] = ArrayField(Float64, 3)
    target_angular_velocity: ArrayField[Float64] = ArrayField(Float64, 3, repeats=False)
    adhesion: ArrayField[Float64] = ArrayField(Float64)
    law: ArrayField[np.uint8] = ArrayField(np.uint8)
    hunt_crossley: GroupField[HuntCrossley] = GroupField(HuntCrossley)
    parts: ArrayField[np.uint32] = ArrayField(np.uint32, repeats=False)
    part_tree: ArrayField[np.int32] = ArrayField(np.int32, repeats=False)
    guess_impulse: ArrayField[Float64] = ArrayField(Float64, 3)
    guess_angular_impulse: ArrayField[Float64] = ArrayField(Float64, 3, repeats=False)

    @property
    def count(self) -> int:
        """C."""
        if self.parts.size:
            return self.parts.size
        if self.tree_a.ndim:
            return self.tree_a.size
        return self.signed_distance.size or self.target_velocity.size // 3


@dataclass(eq=False, repr=False)
class BodyContacts(ArrayGroup):
    """C' contacts between rigid bodies given by point and normal; the server makes the Jacobians.

    Attributes:
        body_a: [C'] first body, 0 to B - 1.
        body_b: [C'] second body, or `WORLD`.
        point: [C', 3] contact point in world axes [m].
        normal: [C', 3] unit vector in world axes from b to a, so that v_n > 0 separates [-].
        signed_distance: [C'] φ0, negative in penetration [m].
        stiffness: [C'] k > 0 [N/m].
        relaxation_time: [C'] as `Contacts.relaxation_time`.
        friction: [C'] μ >= 0 [-].
        regularization_t: [C'] as `Contacts.regularization_t`.
        regularization_n: [C'] as `Contacts.regularization_n`.
        delassus_estimate: [C'] as `Contacts.delassus_estimate`.
        surface_velocity: [C', 3] added to the velocity of a relative to b, in world axes, or
            empty: 0 [m/s].
        friction_2: [C'] as `Contacts.friction_2`.
        torsional_friction: [C'] as `Contacts.torsional_friction`.
        rolling_friction: [C', 2] as `Contacts.rolling_friction`.
        target_velocity: [C', 3] v̂ of a relative to b, in world axes, or empty: from φ0, which is
            not read otherwise [m/s].
        target_angular_velocity: [K, 3] in world axes, of the K contacts with a torsional or
            rolling coefficient > 0, or empty: 0 [rad/s].
        adhesion: [C'] as `Contacts.adhesion`.
        law: [C'] as `Contacts.law`.
        hunt_crossley: As `Contacts.hunt_crossley`.
        tangent: [C', 3] t1 in world axes, or empty: by the schema; t2 = n x t1 [-].
        guess_impulse: [C', 3] as `Contacts.guess_impulse`, in the frame (t1, t2, n) as well.
        guess_angular_impulse: [K, 3] as `Contacts.guess_angular_impulse`.
    """

    FIELD = "body_contacts"

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
    friction_2: ArrayField[Float64] = ArrayField(Float64)
    torsional_friction: ArrayField[Float64] = ArrayField(Float64)
    rolling_friction: ArrayField[Float64] = ArrayField(Float64, 2)
    target_velocity: ArrayField[Float64] = ArrayField(Float64, 3)
    target_angular_velocity: ArrayField[Float64] = ArrayField(Float64, 3, repeats=False)
    adhesion: ArrayField[Float64] = ArrayField(Float64)
    law: ArrayField[np.uint8] = ArrayField(np.uint8)
    hunt_crossley: GroupField[HuntCrossley] = GroupField(HuntCrossley)
    tangent: ArrayField[Float64] = ArrayField(Float64, 3)
    guess_impulse: ArrayField[Float64] = ArrayField(Float64, 3)
    guess_angular_impulse: ArrayField[Float64] = ArrayField(Float64, 3, repeats=False)

    @property
    def count(self) -> int:
        """C'."""
        if self.body_a.ndim:
            return self.body_a.size
        return self.signed_distance.size or self.target_velocity.size // 3
