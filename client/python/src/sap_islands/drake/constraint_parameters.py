"""Finds the parameters of a plant's constraints, which pydrake gives of distances only.

Couplers, balls and welds are found from `AddMultibodyPlantConstraints`, which gives functions of q
that are zero where a constraint holds. It rejects plants with tendons; their couplers and tendons
are found from Drake's own update (`identification`). What neither gives must be named by the
caller.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from pydrake.math import RigidTransform, RotationMatrix
from pydrake.multibody.inverse_kinematics import AddMultibodyPlantConstraints
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import BodyIndex, JointIndex, MultibodyConstraintId
from pydrake.solvers import MathematicalProgram
from pydrake.systems.framework import Context

from sap_islands.arrays import FloatArray
from sap_islands.drake.constraints import Ball, Constraint, Coupler, Distance, Named, Weld
from sap_islands.drake.identification import identify
from sap_islands.errors import InvalidArgument

_SAMPLES = 24  # configurations from which the orientation of a weld is found
_TOLERANCE = 1e-9  # of that orientation, -

_found: weakref.WeakKeyDictionary[MultibodyPlant, dict[MultibodyConstraintId, Constraint]] = (
    weakref.WeakKeyDictionary()
)


def find_constraints(
    plant: MultibodyPlant,
    context: Context,
    named: Mapping[MultibodyConstraintId, Named],
) -> dict[MultibodyConstraintId, Constraint]:
    """All constraints of a plant that are active in its context.

    The first call with a plant searches its parameters. Where it has tendons, other threads must
    not use the plant meanwhile, since its joint limits are removed for a while.

    Args:
        plant: The plant.
        context: Its context.
        named: Constraints that the caller knows. They are taken as they are.

    Raises:
        InvalidArgument: The parameters of a constraint cannot be found and are not in `named`, or
            `named` has an identifier that is none of the plant.
    """
    if not plant.num_constraints() and not named:
        return {}
    identifiers = plant.GetConstraintIds()
    for identifier in named:
        if identifier not in identifiers:
            message = f"constraints has {identifier}, which is no constraint of the plant"
            raise InvalidArgument(message, "constraints")
    found = _found.setdefault(plant, {})
    active = [i for i in identifiers if plant.GetConstraintActiveStatus(context, i)]
    missing = [i for i in active if i not in found and i not in named]
    if missing:
        found.update(_search(plant, missing))
    return {i: named.get(i) or found[i] for i in active}


def _search(
    plant: MultibodyPlant, wanted: list[MultibodyConstraintId]
) -> dict[MultibodyConstraintId, Constraint]:
    """The constraints `wanted`, and all distances."""
    context = plant.CreateDefaultContext()
    found: dict[MultibodyConstraintId, Constraint] = {
        identifier: Distance() for identifier in plant.GetDistanceConstraintParams(context)
    }
    others = [identifier for identifier in plant.GetConstraintIds() if identifier not in found]
    program = MathematicalProgram()
    q = program.NewContinuousVariables(plant.num_positions())
    try:
        bindings = AddMultibodyPlantConstraints(plant, q, program, context)
    except RuntimeError:  # there are tendons
        return found | {i: identify(plant, i) for i in others if i in wanted}
    readers = _readers(plant, context, program, bindings)
    if len(readers) != len(others):
        message = (
            f"the plant has {len(others)} constraints that are no distances, of which "
            f"{len(readers)} are couplers, balls and welds; name the others in constraints"
        )
        raise InvalidArgument(message, "constraints")
    # Both are ordered by kind: couplers, balls, welds.
    pairs = zip(others, readers, strict=True)
    return found | {identifier: read() for identifier, read in pairs if identifier in wanted}


def _readers(
    plant: MultibodyPlant, context: Context, program: MathematicalProgram, bindings: list[Any]
) -> list[Callable[[], Coupler | Ball | Weld]]:
    """A function for each coupler, ball and weld that returns it."""
    readers: list[Callable[[], Coupler | Ball | Weld]] = []
    position = None
    for binding in bindings:
        evaluator = binding.evaluator()
        kind, *numbers = _parse(evaluator.get_description())
        if kind == "Coupler":
            columns = program.FindDecisionVariableIndices(binding.variables())
            readers.append(partial(_coupler, plant, numbers, evaluator, columns))
        elif kind == "Ball":
            readers.append(partial(_ball, plant, context, numbers, evaluator))
        elif kind == "Weld position":
            position = evaluator
        elif kind == "Weld orientation":
            readers.append(partial(_weld, plant, context, numbers, position, evaluator))
    return readers


def _parse(description: str) -> tuple[Any, ...]:
    """Kind and the two indices of a constraint, from its description; ("",) if there are none."""
    match = re.fullmatch(r"(.*) constraint (?:for|between) \w+ (\d+) and \w+ (\d+)", description)
    return (match[1], int(match[2]), int(match[3])) if match else ("",)


def _coupler(
    plant: MultibodyPlant, joints: list[int], evaluator: Any, columns: list[int]
) -> Coupler:
    joint0, joint1 = (JointIndex(joint) for joint in joints)
    row = dict(zip(columns, evaluator.GetDenseA()[0], strict=True))
    scale = row[plant.get_joint(joint0).position_start()]
    ratio = -row.get(plant.get_joint(joint1).position_start(), 0.0) / scale
    return Coupler(joint0, joint1, float(ratio), float(evaluator.lower_bound()[0] / scale))


def _ball(plant: MultibodyPlant, context: Context, bodies: list[int], evaluator: Any) -> Ball:
    p_AP, p_BQ = _points(plant, context, bodies, evaluator)
    return Ball(BodyIndex(bodies[0]), p_AP, BodyIndex(bodies[1]), p_BQ)


def _points(
    plant: MultibodyPlant, context: Context, bodies: list[int], evaluator: Any
) -> tuple[FloatArray, FloatArray]:
    """p_AP and p_BQ of a PositionConstraint, whose value is p_AQ and whose bounds are p_AP."""
    body_a, body_b = (plant.get_body(BodyIndex(body)) for body in bodies)
    p_AQ = evaluator.Eval(plant.GetPositions(context))
    X_BA = plant.EvalBodyPoseInWorld(context, body_b).inverse() @ plant.EvalBodyPoseInWorld(
        context, body_a
    )
    return np.array(evaluator.lower_bound()), np.array(X_BA @ p_AQ)


def _weld(
    plant: MultibodyPlant, context: Context, bodies: list[int], position: Any, orientation: Any
) -> Weld:
    """A weld with R_AP = 1: what its rows depend on is R_BQ R_AP'.

    The value of an OrientationConstraint is the trace of R_AB R_BQ R_AP', linear in the unknown
    rotation. Its least-squares solution has the norm of a rotation only if it is the rotation.
    """
    body_a, body_b = (plant.get_body(BodyIndex(body)) for body in bodies)
    p_AP, p_BQ = _points(plant, context, bodies, position)
    random = np.random.default_rng(0)
    scratch = plant.CreateDefaultContext()
    rows, traces = [], []
    for _ in range(_SAMPLES):
        plant.SetPositions(scratch, _configuration(plant, random))
        R_WA = plant.EvalBodyPoseInWorld(scratch, body_a).rotation()
        R_WB = plant.EvalBodyPoseInWorld(scratch, body_b).rotation()
        rows.append((R_WA.inverse() @ R_WB).matrix().T.ravel())
        traces.append(orientation.Eval(plant.GetPositions(scratch))[0])
    R = np.linalg.lstsq(np.array(rows), np.array(traces), rcond=1e-9)[0].reshape(3, 3)
    if abs(np.sum(R * R) - 3.0) > _TOLERANCE:
        message = (
            f"the plant has a weld of bodies {body_a.name()!r} and {body_b.name()!r}, whose "
            "orientation pydrake does not give; name it in constraints"
        )
        raise InvalidArgument(message, "constraints")
    return Weld(
        BodyIndex(bodies[0]),
        RigidTransform(p_AP),
        BodyIndex(bodies[1]),
        RigidTransform(RotationMatrix.ProjectToRotationMatrix(R), p_BQ),
    )


def _configuration(plant: MultibodyPlant, random: np.random.Generator) -> FloatArray:
    """Random q with unit quaternions."""
    q: FloatArray = random.uniform(-3.0, 3.0, plant.num_positions())
    for index in plant.GetJointIndices():
        joint = plant.get_joint(index)
        if joint.num_positions() > joint.num_velocities():  # a quaternion comes first
            start = joint.position_start()
            q[start : start + 4] /= np.linalg.norm(q[start : start + 4])
    return q
