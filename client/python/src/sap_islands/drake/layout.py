"""The constant part of a Drake plant: kinematic trees, actuators, contact materials.

Determined once per plant and cached.
"""

from __future__ import annotations

import weakref
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from pydrake.geometry import GeometryId, SceneGraphInspector
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import (
    BodyIndex,
    Joint,
    JointActuatorIndex,
    JointIndex,
    ModelInstanceIndex,
)

from sap_islands.arrays import FloatArray, IntArray, UIntArray
from sap_islands.numba_kernels import IndexArray

_DEFAULT_RELAXATION_TIME_S = 0.1  # of a geometry without a value, as in Drake
_FREE_JOINTS = ("quaternion_floating", "rpy_floating")


# Columns of Layout.materials: index of the body; stiffness of point contact, infinite if rigid
# [N/m]; relaxation time τ_d [s]; dynamic friction coefficient μ [-].
BODY, STIFFNESS, RELAXATION_TIME, FRICTION = range(4)


class Actuator(NamedTuple):
    """An actuator of a joint.

    Attributes:
        index: Index in the plant.
        instance: Model instance that it belongs to.
        index_in_instance: Position among the actuators of its model instance.
        input: Index in the plant's actuation input.
        velocity: Index of its joint in Drake's v.
        position: Index of its joint in Drake's q.
        has_controller: Whether it has a PD controller.
    """

    index: JointActuatorIndex
    instance: ModelInstanceIndex
    index_in_instance: int
    input: int
    velocity: int
    position: int
    has_controller: bool


@dataclass
class Layout:
    """Index arrays, actuators and contact materials of a plant.

    Attributes:
        dofs: [T] degrees of freedom of each tree.
        names: [T] `tree_id` of each tree.
        velocities: [nv] index in Drake's v of each velocity of the problem, tree by tree.
        velocity_numbers: The same with 32-bit integers, for `BuiltProblem`.
        problem_index: [nv] index in the problem of each of Drake's v.
        first: [T + 1] index in the problem of the first velocity of each tree.
        tree_of_body: [bodies] tree of each body; -1: fixed to the world.
        position_of_free: [bodies] for a free body, a tree by itself with velocities (ω, v of its
            origin) in world axes: index of its origin in Drake's q; otherwise -1.
        joints: Joints with velocities, and the slices of their velocities in Drake's v.
        actuators: All actuators.
        limited: [L, 2] for joints that may have limits, their indices in Drake's q and v.
        default_stiffness: Stiffness of a geometry without a value [N/m].
        number_of: Row in `materials` of each geometry that has been looked up, by its identifier.
        materials: [n, 4] bodies and contact parameters of these geometries.
        checked_for: `ignore` of the last successful check by `check_supported`; None: no check.
    """

    dofs: UIntArray
    names: UIntArray
    velocities: IndexArray
    velocity_numbers: IntArray
    problem_index: IndexArray
    first: IndexArray
    tree_of_body: IntArray
    position_of_free: IndexArray
    joints: list[tuple[JointIndex, slice]]
    actuators: list[Actuator]
    limited: IndexArray
    default_stiffness: float
    number_of: dict[int, int] = field(default_factory=dict)
    materials: FloatArray = field(default_factory=lambda: np.empty((0, 4)))
    checked_for: frozenset[str] | None = None

    def number_geometries(
        self, plant: MultibodyPlant, inspector: SceneGraphInspector, geometries: list[GeometryId]
    ) -> IndexArray:
        """Rows of `materials` of the geometries; new geometries are read and appended."""
        values = [geometry.get_value() for geometry in geometries]
        numbers = list(map(self.number_of.get, values))
        if None in numbers:
            rows = []
            for geometry, value in zip(geometries, values, strict=True):
                if value not in self.number_of:
                    self.number_of[value] = len(self.number_of)
                    rows.append(_read_material(plant, inspector, geometry, self.default_stiffness))
            self.materials = np.concatenate((self.materials, rows))
            numbers = list(map(self.number_of.get, values))
        return np.array(numbers, np.int64)


_layouts: weakref.WeakKeyDictionary[MultibodyPlant, Layout] = weakref.WeakKeyDictionary()


def layout_of(plant: MultibodyPlant) -> Layout:
    """The layout of a plant; made at the first call."""
    layout = _layouts.get(plant)
    if layout is None:
        layout = _layouts[plant] = _make_layout(plant)
    return layout


def _make_layout(plant: MultibodyPlant) -> Layout:
    joints = [plant.get_joint(index) for index in plant.GetJointIndices()]
    root = _roots(plant)
    # Trees are ordered by their first velocity, as in Drake.
    members: dict[int, list[int]] = {}
    for joint in sorted(joints, key=lambda joint: joint.velocity_start()):
        if joint.num_velocities():
            span = range(joint.velocity_start(), joint.velocity_start() + joint.num_velocities())
            members.setdefault(root[int(joint.child_body().index())], []).extend(span)
    number = {body: tree for tree, body in enumerate(members)}
    dofs = np.array([len(v) for v in members.values()], np.uint32)
    tree_of_body = np.array([number.get(root[b], -1) for b in range(plant.num_bodies())], np.int32)
    first = np.concatenate(([0], np.cumsum(dofs))).astype(np.int64)
    velocities = np.array([v for span in members.values() for v in span], np.int64)
    limited = [(j.position_start(), j.velocity_start()) for j in joints if _has_range(j)]
    return Layout(
        dofs=dofs,
        names=np.arange(len(dofs), dtype=np.uint32),
        velocities=velocities,
        velocity_numbers=velocities.astype(np.int32),
        problem_index=np.argsort(velocities),
        first=first,
        tree_of_body=tree_of_body,
        position_of_free=_positions_of_free(plant, tree_of_body),
        joints=[
            (j.index(), slice(j.velocity_start(), j.velocity_start() + j.num_velocities()))
            for j in joints
            if j.num_velocities()
        ],
        actuators=_actuators(plant),
        limited=np.array(limited, np.int64).reshape(-1, 2),
        default_stiffness=_default_stiffness(plant),
    )


def _actuators(plant: MultibodyPlant) -> list[Actuator]:
    actuators = []
    counts: Counter[int] = Counter()
    for index in plant.GetJointActuatorIndices():
        actuator = plant.get_joint_actuator(index)
        instance, joint = actuator.model_instance(), actuator.joint()
        actuators.append(
            Actuator(
                index,
                instance,
                counts[int(instance)],
                actuator.input_start(),
                joint.velocity_start(),
                joint.position_start(),
                actuator.has_controller(),
            )
        )
        counts[int(instance)] += 1
    return actuators


def _has_range(joint: Joint) -> bool:
    return bool(joint.num_velocities() == joint.num_positions() == 1)


def _roots(plant: MultibodyPlant) -> list[int]:
    """For each body, the first body of its tree that moves; 0, the world, if it is fixed."""
    inboard = {}
    for index in plant.GetJointIndices():
        joint = plant.get_joint(index)
        inboard[int(joint.child_body().index())] = joint
    roots: dict[int, int] = {0: 0}

    def root_of(body: int) -> int:
        if body not in roots:
            joint = inboard[body]
            parent = root_of(int(joint.parent_body().index()))
            roots[body] = body if parent == 0 and joint.num_velocities() else parent
        return roots[body]

    return [root_of(body) for body in range(plant.num_bodies())]


def _positions_of_free(plant: MultibodyPlant, tree_of_body: IntArray) -> IndexArray:
    place = np.full(plant.num_bodies(), -1)
    size = np.bincount(tree_of_body[tree_of_body >= 0])
    for index in plant.GetJointIndices():
        joint = plant.get_joint(index)
        body = joint.child_body()
        if joint.type_name() not in _FREE_JOINTS or size[tree_of_body[int(body.index())]] != 1:
            continue
        frames = (joint.frame_on_parent().index(), joint.frame_on_child().index())
        ordinary = (plant.world_frame().index(), body.body_frame().index())
        if frames == ordinary:
            # q of the joint is a quaternion or three angles, then the origin.
            place[int(body.index())] = joint.position_start() + joint.num_positions() - 3
    return place


def _default_stiffness(plant: MultibodyPlant) -> float:
    """Drake's default [N/m]: two in series carry the heaviest body at the allowed penetration."""
    if plant.num_collision_geometries() == 0:
        return 0.0
    bodies = (plant.get_body(BodyIndex(index)) for index in range(1, plant.num_bodies()))
    heaviest = max((body.default_mass() for body in bodies), default=0.0)
    return 2 * float(heaviest) / float(plant.get_contact_penalty_method_time_scale()) ** 2


def _read_material(
    plant: MultibodyPlant,
    inspector: SceneGraphInspector,
    geometry: GeometryId,
    default_stiffness: float,
) -> tuple[int, float, float, float]:
    properties = inspector.GetProximityProperties(geometry)
    friction = properties.GetProperty("material", "coulomb_friction")
    body = plant.GetBodyFromFrameId(inspector.GetFrameId(geometry))
    stiffness = properties.GetPropertyOrDefault(
        "material", "point_contact_stiffness", default_stiffness
    )
    relaxation_time = properties.GetPropertyOrDefault(
        "material", "relaxation_time", _DEFAULT_RELAXATION_TIME_S
    )
    return (int(body.index()), stiffness, relaxation_time, friction.dynamic_friction())
