"""The constant part of a Drake plant: kinematic trees, actuators, contact materials.

Determined once per plant and set of locked joints, and cached. A locked joint has no velocities in
the problem, as a weld: the bodies behind it belong to the tree before it, or are fixed.
"""

from __future__ import annotations

import math
import weakref
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

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
from pydrake.systems.framework import Context

from sap_islands._library.declarations import struct_type
from sap_islands.arrays import FloatArray, IndexArray, IntArray, UIntArray
from sap_islands.drake.native_calls import columns_of

_DEFAULT_RELAXATION_TIME_S = 0.1  # of a geometry without a value, as in Drake
_FREE_JOINTS = ("quaternion_floating", "rpy_floating")
_STANDARD_GRAVITY = 9.81  # m/s², in the default dissipation of a plant without gravity


class Mobilized(NamedTuple):
    """How a body is connected to the body before it, on the way from the world.

    Attributes:
        joint: The joint between both.
        inboard: Index of the body before it.
        is_child: Whether it is the child of the joint. Otherwise the joint is reversed.
    """

    joint: JointIndex
    inboard: int
    is_child: bool


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
        time_step: δt [s].
        dofs: [T] degrees of freedom of each tree.
        names: [T] `tree_id` of each tree, the index of its first body.
        velocities: [n] index in Drake's v of each velocity of the problem, tree by tree. Velocities
            of locked joints are left out.
        velocity_numbers: The same with 32-bit integers, for `BuiltProblem`.
        problem_index: [nv] index in the problem of each of Drake's v; -1: locked.
        first: [T + 1] index in the problem of the first velocity of each tree.
        tree_of_body: [bodies] tree of each body; -1: fixed to the world.
        position_of_free: [bodies] for a free body, a tree by itself with velocities (ω, v of its
            origin) in world axes: index of its origin in Drake's q; otherwise -1.
        joints: Joints with velocities, and the slices of their velocities in Drake's v.
        mobilized: For each body but the world, from the world outwards: the joint that carries it,
            the body on the joint's other side, and whether it is the joint's child.
        actuators: All actuators.
        limited: [L, 3] for joints that may have limits, their indices in Drake's q and v and among
            the joints.
        default_stiffness: Stiffness of a geometry without a value [N/m].
        default_dissipation: Dissipation d of a geometry without a value [s/m].
        number_of: Row in `materials` of each geometry that has been looked up, by its identifier.
        materials: [n, 6] `sap_drake_material` of these geometries.
        as_struct: The same for the loops; it points to these arrays.
    """

    time_step: float
    dofs: UIntArray
    names: UIntArray
    velocities: IndexArray
    velocity_numbers: IntArray
    problem_index: IndexArray
    first: IndexArray
    tree_of_body: IntArray
    position_of_free: IndexArray
    joints: list[tuple[JointIndex, slice]]
    mobilized: dict[int, Mobilized]
    actuators: list[Actuator]
    limited: IndexArray
    default_stiffness: float
    default_dissipation: float
    number_of: dict[int, int] = field(default_factory=dict)
    materials: FloatArray = field(init=False)
    as_struct: Any = field(init=False)

    def __post_init__(self) -> None:
        self.materials = np.empty((0, columns_of("sap_drake_material")))
        self.as_struct = struct_type("sap_drake_plant")(
            time_step=self.time_step,
            trees=len(self.dofs),
            velocities=len(self.problem_index),
            first=self.first.ctypes.data,
            order=self.velocities.ctypes.data,
            tree_of_body=self.tree_of_body.ctypes.data,
            position_of_free=self.position_of_free.ctypes.data,
        )

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
                    rows.append(_read_material(plant, inspector, geometry, self))
            self.materials = np.concatenate((self.materials, rows))
            numbers = list(map(self.number_of.get, values))
        return np.array(numbers, np.int64)


_layouts: weakref.WeakKeyDictionary[MultibodyPlant, dict[tuple[int, ...], Layout]] = (
    weakref.WeakKeyDictionary()
)


def layout_of(plant: MultibodyPlant, context: Context) -> Layout:
    """The layout of a plant with the joints locked that are so in its context.

    It is made at the first call with these joints locked.
    """
    layouts = _layouts.setdefault(plant, {})
    if not layouts:
        layouts[()] = _make_layout(plant, ())
    indices = [index for index, _ in layouts[()].joints]
    locked = tuple(int(index) for index in indices if plant.get_joint(index).is_locked(context))
    if locked not in layouts:
        layouts[locked] = _make_layout(plant, locked)
    return layouts[locked]


def _make_layout(plant: MultibodyPlant, locked: tuple[int, ...]) -> Layout:
    mobilized = _mobilized(plant)
    root = _roots(plant, mobilized, locked)
    moving = {int(m.joint): body for body, m in mobilized.items() if int(m.joint) not in locked}
    joints = [plant.get_joint(index) for index in plant.GetJointIndices()]
    # Trees are ordered by their first velocity, as in Drake.
    members: dict[int, list[int]] = {}
    for joint in sorted(joints, key=lambda joint: joint.velocity_start()):
        if joint.num_velocities() and int(joint.index()) in moving:
            span = range(joint.velocity_start(), joint.velocity_start() + joint.num_velocities())
            members.setdefault(root[moving[int(joint.index())]], []).extend(span)
    number = {body: tree for tree, body in enumerate(members)}
    dofs = np.array([len(v) for v in members.values()], np.uint32)
    tree_of_body = np.array([number.get(root[b], -1) for b in range(plant.num_bodies())], np.int32)
    velocities = np.array([v for span in members.values() for v in span], np.int64)
    problem_index = np.full(plant.num_velocities(), -1)
    problem_index[velocities] = np.arange(len(velocities))
    limited = [
        (j.position_start(), j.velocity_start(), int(j.index()))
        for j in joints
        if _has_range(j) and problem_index[j.velocity_start()] >= 0
    ]
    return Layout(
        time_step=plant.time_step(),
        dofs=dofs,
        names=np.array(list(members), np.uint32),
        velocities=velocities,
        velocity_numbers=velocities.astype(np.int32),
        problem_index=problem_index,
        first=np.concatenate(([0], np.cumsum(dofs))).astype(np.int64),
        tree_of_body=tree_of_body,
        position_of_free=_positions_of_free(plant, tree_of_body),
        joints=[
            (j.index(), slice(j.velocity_start(), j.velocity_start() + j.num_velocities()))
            for j in joints
            if j.num_velocities()
        ],
        mobilized=mobilized,
        actuators=_actuators(plant),
        limited=np.array(limited, np.int64).reshape(-1, 3),
        default_stiffness=_default_stiffness(plant),
        default_dissipation=_default_dissipation(plant),
    )


def _mobilized(plant: MultibodyPlant) -> dict[int, Mobilized]:
    """How each body but the world is connected to it, from the world outwards."""
    neighbors: dict[int, list[tuple[JointIndex, int, bool]]] = {}
    for index in plant.GetJointIndices():
        joint = plant.get_joint(index)
        parent, child = int(joint.parent_body().index()), int(joint.child_body().index())
        neighbors.setdefault(parent, []).append((index, child, True))
        neighbors.setdefault(child, []).append((index, parent, False))
    mobilized: dict[int, Mobilized] = {}
    bodies = [0]
    for inboard in bodies:  # grows while it is read
        for joint_index, body, is_child in neighbors.get(inboard, []):
            if body != 0 and body not in mobilized:
                mobilized[body] = Mobilized(joint_index, inboard, is_child)
                bodies.append(body)
    return mobilized


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


def _roots(
    plant: MultibodyPlant, mobilized: dict[int, Mobilized], locked: tuple[int, ...]
) -> dict[int, int]:
    """For each body, the first body of its tree that moves; 0, the world, if it is fixed."""
    roots = {0: 0}
    for body, (joint, inboard, _) in mobilized.items():
        moves = plant.get_joint(joint).num_velocities() and int(joint) not in locked
        roots[body] = body if roots[inboard] == 0 and moves else roots[inboard]
    return roots


def _positions_of_free(plant: MultibodyPlant, tree_of_body: IntArray) -> IndexArray:
    place = np.full(plant.num_bodies(), -1, np.int64)
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


def _default_dissipation(plant: MultibodyPlant) -> float:
    """Drake's default [s/m]: critical damping at the allowed penetration, time scale² times g."""
    if plant.num_collision_geometries() == 0:
        return 0.0
    gravity = float(np.linalg.norm(plant.gravity_field().gravity_vector()))
    scale = float(plant.get_contact_penalty_method_time_scale())
    return 1.0 / ((gravity or _STANDARD_GRAVITY) * scale)


def _read_material(
    plant: MultibodyPlant, inspector: SceneGraphInspector, geometry: GeometryId, layout: Layout
) -> tuple[int, float, float, float, float, float]:
    properties = inspector.GetProximityProperties(geometry)
    friction = properties.GetProperty("material", "coulomb_friction")
    body = plant.GetBodyFromFrameId(inspector.GetFrameId(geometry))

    def material(name: str, default: float) -> float:
        return float(properties.GetPropertyOrDefault("material", name, default))

    return (
        int(body.index()),
        material("point_contact_stiffness", layout.default_stiffness),
        material("relaxation_time", _DEFAULT_RELAXATION_TIME_S),
        friction.dynamic_friction(),
        material("hunt_crossley_dissipation", layout.default_dissipation),
        properties.GetPropertyOrDefault("hydroelastic", "hydroelastic_modulus", math.inf),
    )
