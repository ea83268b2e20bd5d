"""Constraints of a Drake plant: couplers, balls, welds, distances, tendons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from pydrake.math import RigidTransform
from pydrake.multibody.tree import BodyIndex, JointIndex


@dataclass(frozen=True)
class Coupler:
    """q_0 = gear_ratio q_1 + offset, as `MultibodyPlant.AddCouplerConstraint`.

    Attributes:
        joint0: Index of the joint with q_0.
        joint1: Index of the joint with q_1.
        gear_ratio: Ratio of the positions.
        offset: Offset of q_0 [m, rad].
    """

    joint0: JointIndex
    joint1: JointIndex
    gear_ratio: float
    offset: float = 0.0


@dataclass(frozen=True)
class Ball:
    """Point P of body A is at point Q of body B, as `MultibodyPlant.AddBallConstraint`.

    Attributes:
        body_A: Index of body A.
        p_AP: [3] P in the frame of A [m].
        body_B: Index of body B.
        p_BQ: [3] Q in the frame of B [m].
    """

    body_A: BodyIndex
    p_AP: ArrayLike
    body_B: BodyIndex
    p_BQ: ArrayLike


@dataclass(frozen=True)
class Weld:
    """Frame P of body A is at frame Q of body B, as `MultibodyPlant.AddWeldConstraint`.

    Attributes:
        body_A: Index of body A.
        X_AP: P in the frame of A.
        body_B: Index of body B.
        X_BQ: Q in the frame of B.
    """

    body_A: BodyIndex
    X_AP: RigidTransform
    body_B: BodyIndex
    X_BQ: RigidTransform


@dataclass(frozen=True)
class Tendon:
    """lower <= a'q + offset <= upper, as `<drake:tendon_constraint>`.

    Attributes:
        joints: Indices of the joints.
        coefficients: a of each joint [-, m].
        offset: Offset of the length [m].
        lower: Least length [m], or -inf.
        upper: Largest length [m], or inf.
        stiffness: k > 0 at the limits [N/m], or inf.
        damping: c >= 0 at the limits [N s/m].
    """

    joints: tuple[JointIndex, ...]
    coefficients: tuple[float, ...]
    offset: float = 0.0
    lower: float = -np.inf
    upper: float = np.inf
    stiffness: float = np.inf
    damping: float = 0.0


@dataclass(frozen=True)
class Distance:
    """Keeps its parameters in the context, `MultibodyPlant.GetDistanceConstraintParams`."""


Named: TypeAlias = Coupler | Ball | Weld | Tendon
Constraint: TypeAlias = Named | Distance
