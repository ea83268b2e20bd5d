"""Works around pydrake, which does not show the parameters of couplers and tendons.

They are found from Drake's own update. With one constraint alone, without contacts and joint
limits, Drake's velocities v solve

    A (v - v_off) = u γ,   γ = -((u'q + c) / (δt + τ) + u'v) / R,   γ >= 0 for a tendon

with v_off the update without it. So A (v - v_off) gives the direction u, and γ at several states
gives c, R and τ: scaled by |u| = 1, all that the update depends on. Where the constraint is near
rigid, R and τ do not depend on its stiffness k; masses are then raised until they do.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from pydrake.common.value import Value
from pydrake.geometry import QueryObject, SceneGraph
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import (
    BodyIndex,
    JointIndex,
    MultibodyConstraintId,
    SpatialInertia,
)

from sap_islands.arrays import FloatArray
from sap_islands.drake.constraints import Coupler, Tendon
from sap_islands.errors import InvalidArgument

_NEAR_RIGID = 0.1**2 / (4.0 * math.pi**2)  # R / w of Drake's near-rigid constraints
_TOLERANCE = 1e-7  # of fits, relative; Drake solves such a problem to round-off
_SCALES = 10.0 ** np.arange(-2, 5)  # of q, where violations are searched [m, rad]
_MASS_FACTORS = 100.0 ** np.arange(8)
_SAMPLES = 8


class _Sample(NamedTuple):
    """One state of the constraint: length u'q, impulse γ, velocity u'v after it, and w."""

    length: float
    impulse: float
    velocity: float
    weight: float


class _Side(NamedTuple):
    """The constraint u'q + c >= 0, or = 0, with stiffness k and relaxation time τ."""

    c: float
    stiffness: float
    relaxation_time: float


class _Probe:
    """Drake's update of a plant with one constraint, at chosen states."""

    def __init__(self, plant: MultibodyPlant, identifier: MultibodyConstraintId) -> None:
        self.plant = plant
        self.identifier = identifier
        self.random = np.random.default_rng(0)
        self.context = plant.CreateDefaultContext()
        if plant.num_collision_geometries():
            empty = SceneGraph()
            query = empty.get_query_output_port().Eval(empty.CreateDefaultContext())
            plant.get_geometry_query_input_port().FixValue(self.context, Value[QueryObject](query))
        for other in plant.GetConstraintIds():
            plant.SetConstraintActiveStatus(self.context, other, False)
        self.joints: dict[int, JointIndex] = {}  # by index in v, of one degree of freedom
        for index in plant.GetJointIndices():
            joint = plant.get_joint(index)
            if joint.num_positions() == joint.num_velocities() == 1:
                self.joints[joint.velocity_start()] = index
        self.velocities = np.array(sorted(self.joints), np.int64)
        ordered = [self.joints[v] for v in self.velocities.tolist()]
        self.positions = np.array([plant.get_joint(j).position_start() for j in ordered], np.int64)

    def scale_masses(self, factor: float) -> None:
        """Sets all masses to `factor` times their defaults."""
        for index in range(1, self.plant.num_bodies()):
            body = self.plant.get_body(BodyIndex(index))
            given = body.default_spatial_inertia()
            scaled = SpatialInertia(
                factor * given.get_mass(), given.get_com(), given.get_unit_inertia()
            )
            body.SetSpatialInertiaInBodyFrame(self.context, scaled)

    def impulse(self, q: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """A (v' - v'_off), v' and the diagonal of A; `q` and `v` are those of `joints`."""
        plant, context = self.plant, self.context
        position, velocity = plant.GetPositions(context), np.zeros(plant.num_velocities())
        position[self.positions], velocity[self.velocities] = q, v
        state = np.concatenate((position, velocity))
        plant.SetPositionsAndVelocities(context, state)
        A = plant.CalcMassMatrix(context)
        for index in plant.GetJointIndices():
            joint = plant.get_joint(index)
            span = np.arange(joint.num_velocities()) + joint.velocity_start()
            A[span, span] += plant.time_step() * joint.GetDampingVector(context)
        without, with_it = self._update(state, False), self._update(state, True)
        return A @ (with_it - without), with_it, A.diagonal()

    def _update(self, state: FloatArray, active: bool) -> FloatArray:
        plant, context = self.plant, self.context
        plant.SetConstraintActiveStatus(context, self.identifier, active)
        plant.SetPositionsAndVelocities(context, state)
        plant.ExecuteForcedEvents(context)
        velocity: FloatArray = plant.GetVelocities(context)
        return velocity

    def states(self, scale: float) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Random states of `joints`."""
        for _ in range(_SAMPLES):
            yield tuple(scale * self.random.normal(size=(2, len(self.positions))))


def identify(plant: MultibodyPlant, identifier: MultibodyConstraintId) -> Coupler | Tendon:
    """The coupler or tendon with this identifier.

    Raises:
        InvalidArgument: It is none, or its parameters cannot be found.
    """
    with _without_limits(plant):
        probe = _Probe(plant, identifier)
        u = _direction(probe)
        lower, upper = _side(probe, u), _side(probe, -u)
        joints = [probe.joints[v] for v in probe.velocities[u != 0.0].tolist()]
        a = u[u != 0.0].tolist()
        if lower and upper and len(a) == 2 and _is_bilateral(probe, u, lower.c):
            return Coupler(joints[0], joints[1], -a[1] / a[0], -lower.c / a[0])
    stiffness, relaxation_time = _common_law(probe, lower, upper)
    return Tendon(
        tuple(joints),
        tuple(a),
        lower=-lower.c if lower else -math.inf,
        upper=upper.c if upper else math.inf,
        stiffness=stiffness,
        damping=0.0 if math.isinf(stiffness) else stiffness * relaxation_time,
    )


def _not_found(probe: _Probe) -> InvalidArgument:
    message = (
        f"the parameters of constraint {probe.identifier.get_value()} cannot be found: pydrake "
        "gives none in a plant with tendons, and Drake's update is not that of a coupler or a "
        "tendon; name it in constraints"
    )
    return InvalidArgument(message, "constraints")


@contextlib.contextmanager
def _without_limits(plant: MultibodyPlant) -> Iterator[None]:
    """Removes the joint limits of a plant for a while: they are not in its context."""
    joints = [plant.get_mutable_joint(index) for index in plant.GetJointIndices()]
    limits = [(j.position_lower_limits(), j.position_upper_limits()) for j in joints]
    try:
        for joint in joints:
            unlimited = np.full(joint.num_positions(), np.inf)
            joint.set_position_limits(-unlimited, unlimited)
        yield
    finally:
        for joint, (lower, upper) in zip(joints, limits, strict=True):
            joint.set_position_limits(lower, upper)


def _direction(probe: _Probe) -> FloatArray:
    """The direction u over `probe.joints`."""
    found: list[FloatArray] = []
    for scale in _SCALES:
        for q, v in probe.states(scale):
            impulse, after, diagonal = probe.impulse(q, v)
            if np.abs(impulse).max() > _TOLERANCE * np.abs(diagonal * after).max():
                found.append(impulse / np.linalg.norm(impulse))
        if found:
            break
    if not found:
        raise _not_found(probe)
    u = found[0]
    outside = np.delete(u, probe.velocities)
    turned = [np.linalg.norm(other - u * (u @ other)) for other in found]
    if max(turned) > _TOLERANCE or np.abs(outside).max(initial=0.0) > _TOLERANCE:
        raise _not_found(probe)
    u = np.where(np.abs(u) > _TOLERANCE, u, 0.0)[probe.velocities]
    normalized: FloatArray = u / np.linalg.norm(u)
    return normalized


def _side(probe: _Probe, u: FloatArray) -> _Side | None:
    """The side that pushes along u; None: not reached within the largest of `_SCALES`."""
    dt = probe.plant.time_step()
    side = None
    for factor in _MASS_FACTORS:
        probe.scale_masses(factor)
        samples = _samples(probe, u)
        if not samples and factor > 1.0:
            raise _not_found(probe)
        if not samples:
            break
        length, impulse, velocity, weight = np.array(samples).T
        rigid = -2.0 * dt * (_NEAR_RIGID * weight * impulse + velocity) - length
        if np.ptp(rigid) <= _TOLERANCE * np.abs(length).max():
            side = _Side(float(rigid.mean()), math.inf, 0.0)
            continue
        columns = np.stack((-length, -np.ones(len(length)), -velocity), axis=1)
        (a, a_c, b), *_ = np.linalg.lstsq(columns / impulse[:, None], np.ones(len(length)))
        misfit = columns @ (a, a_c, b) - impulse
        if np.abs(misfit / impulse).max() <= _TOLERANCE:
            side = _Side(float(a_c / a), float(a / dt), max(float(b / a - dt), 0.0))
            break
        side = None  # some of the states are near rigid
    else:
        if side is None:
            raise _not_found(probe)
    probe.scale_masses(1.0)
    return side


def _samples(probe: _Probe, u: FloatArray) -> list[_Sample]:
    """States in which the side that pushes along u acts."""
    for scale in _SCALES:
        samples = []
        for q, v in probe.states(scale):
            at = q - u * (u @ q + scale * (1.0 + abs(probe.random.normal())))
            impulse, after, diagonal = probe.impulse(at, v)
            along = float(u @ impulse[probe.velocities])
            if along > _TOLERANCE * np.abs(diagonal * after).max():
                velocity = float(u @ after[probe.velocities])
                weight = float(np.sum(u * u / diagonal[probe.velocities]))
                samples.append(_Sample(float(u @ at), along, velocity, weight))
        if len(samples) > _SAMPLES // 2:
            return samples
    return []


def _common_law(probe: _Probe, lower: _Side | None, upper: _Side | None) -> tuple[float, float]:
    """Stiffness and relaxation time, which both sides share."""
    laws = [(side.stiffness, side.relaxation_time) for side in (lower, upper) if side]
    if not laws or not np.allclose(laws[0], laws[-1], rtol=1e-4, atol=1e-9):
        raise _not_found(probe)
    return laws[0]


def _is_bilateral(probe: _Probe, u: FloatArray, c: float) -> bool:
    """Whether the constraint also pulls, where it is violated but about to be left."""
    violation = 1e-2
    away = 10.0 * violation / probe.plant.time_step()
    impulse, *_ = probe.impulse(-u * (c + violation), u * away)
    return float(u @ impulse[probe.velocities]) < 0.0
