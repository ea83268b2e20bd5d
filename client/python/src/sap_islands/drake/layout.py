"""Kinematic trees of a Drake model, and what its geometries are made of."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from pydrake.geometry import GeometryId, SceneGraphInspector
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import BodyIndex, Joint, JointIndex

from sap_islands.arrays import IntArray, UIntArray

IndexArray = NDArray[np.int64]

_DEFAULT_RELAXATION_TIME_S = 0.1  # of a geometry that has none, as in Drake
_FREE_JOINTS = ("quaternion_floating", "rpy_floating")


@dataclass(frozen=True)
class Material:
    """What a geometry is made of.

    Attributes:
        body: Number of its body.
        stiffness: k of point contact, infinite if rigid [N/m].
        relaxation_time: τ_d [s].
        friction: Dynamic coefficient μ [-].
    """

    body: int
    stiffness: float
    relaxation_time: float
    friction: float


@dataclass(frozen=True)
class EqualTrees:
    """Trees of n degrees of freedom.

    Attributes:
        n: Their size.
        velocities: [g, n] numbers in the problem's v.
        block: [g, n²] where their matrices are, one after the other in the order of trees.
    """

    n: int
    velocities: IndexArray
    block: IndexArray


@dataclass(frozen=True)
class Layout:
    """What of a plant does not change.

    Attributes:
        dofs: [T] degrees of freedom of each tree.
        sizes: [T + 1] the same, and 0 for what is fixed to the world.
        distinct_sizes: What these are, but 0.
        velocities: [nv] number in Drake's v of each velocity of the problem, tree by tree.
        first: [T + 1] where the velocities of each tree start in the problem.
        groups: Trees of equal size together.
        tree_of_body: [bodies], -1: fixed to the world.
        is_free: [bodies] whether it is a tree by itself, with velocities (ω, v of its origin) in
            world axes.
        damped: joints that may be damped, with the places of their velocities in Drake's v.
        limited: joints with a limit.
        default_stiffness: k of a geometry that has none [N/m].
        materials: Of geometries, as far as they have been asked for.
    """

    dofs: UIntArray
    sizes: IndexArray
    distinct_sizes: list[int]
    velocities: IndexArray
    first: IndexArray
    groups: list[EqualTrees]
    tree_of_body: IntArray
    is_free: NDArray[np.bool_]
    damped: list[tuple[JointIndex, slice]]
    limited: list[JointIndex]
    default_stiffness: float
    materials: dict[GeometryId, Material] = field(default_factory=dict)

    def material(
        self, plant: MultibodyPlant, inspector: SceneGraphInspector, geometry: GeometryId
    ) -> Material:
        """The material of a geometry, which is looked up once."""
        found = self.materials.get(geometry)
        if found is None:
            found = _read_material(plant, inspector, geometry, self.default_stiffness)
            self.materials[geometry] = found
        return found


_layouts: weakref.WeakKeyDictionary[MultibodyPlant, Layout] = weakref.WeakKeyDictionary()


def layout_of(plant: MultibodyPlant) -> Layout:
    """The layout of a plant, which is found out once."""
    layout = _layouts.get(plant)
    if layout is None:
        layout = _layouts[plant] = _make_layout(plant)
    return layout


def _make_layout(plant: MultibodyPlant) -> Layout:
    joints = [plant.get_joint(index) for index in plant.GetJointIndices()]
    root = _roots(plant)
    # Trees in the order of their first velocity, as Drake has them.
    members: dict[int, list[int]] = {}
    for joint in sorted(joints, key=lambda joint: joint.velocity_start()):
        if joint.num_velocities():
            span = range(joint.velocity_start(), joint.velocity_start() + joint.num_velocities())
            members.setdefault(root[int(joint.child_body().index())], []).extend(span)
    number = {body: tree for tree, body in enumerate(members)}
    dofs = np.array([len(v) for v in members.values()], np.uint32)
    tree_of_body = np.array([number.get(root[b], -1) for b in range(plant.num_bodies())], np.int32)
    first = np.concatenate(([0], np.cumsum(dofs))).astype(np.int64)
    return Layout(
        dofs=dofs,
        sizes=np.append(dofs, 0).astype(np.int64),
        distinct_sizes=np.unique(dofs).tolist(),
        velocities=np.array([v for span in members.values() for v in span], np.int64),
        first=first,
        groups=_equal_trees(dofs, first),
        tree_of_body=tree_of_body,
        is_free=_free_bodies(plant, tree_of_body),
        damped=[
            (j.index(), slice(j.velocity_start(), j.velocity_start() + j.num_velocities()))
            for j in joints
            if j.num_velocities()
        ],
        limited=[joint.index() for joint in joints if _is_limited(joint)],
        default_stiffness=_default_stiffness(plant),
    )


def _equal_trees(dofs: UIntArray, first: IndexArray) -> list[EqualTrees]:
    square = dofs.astype(np.int64) ** 2
    start = np.cumsum(square) - square
    groups = []
    for n in np.unique(dofs).tolist():
        trees = np.flatnonzero(dofs == n)
        span = np.arange(n * n)
        velocities = first[trees][:, None] + span[:n]
        groups.append(EqualTrees(n, velocities, start[trees][:, None] + span))
    return groups


def _is_limited(joint: Joint) -> bool:
    if not joint.num_velocities() == joint.num_positions() == 1:
        return False
    ends = (joint.position_lower_limits()[0], joint.position_upper_limits()[0])
    return bool(np.isfinite(ends).any())


def _roots(plant: MultibodyPlant) -> list[int]:
    """For each body the first moving body of its tree; 0, the world, if it cannot move."""
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


def _free_bodies(plant: MultibodyPlant, tree_of_body: IntArray) -> NDArray[np.bool_]:
    is_free = np.zeros(plant.num_bodies(), bool)
    size = np.bincount(tree_of_body[tree_of_body >= 0])
    for index in plant.GetJointIndices():
        joint = plant.get_joint(index)
        body = joint.child_body()
        if joint.type_name() not in _FREE_JOINTS or size[tree_of_body[int(body.index())]] != 1:
            continue
        frames = (joint.frame_on_parent().index(), joint.frame_on_child().index())
        ordinary = (plant.world_frame().index(), body.body_frame().index())
        is_free[int(body.index())] = frames == ordinary
    return is_free


def _default_stiffness(plant: MultibodyPlant) -> float:
    """Two geometries in series that bear the heaviest body at Drake's penetration allowance."""
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
) -> Material:
    properties = inspector.GetProximityProperties(geometry)
    friction = properties.GetProperty("material", "coulomb_friction")
    body = plant.GetBodyFromFrameId(inspector.GetFrameId(geometry))
    return Material(
        body=int(body.index()),
        stiffness=properties.GetPropertyOrDefault(
            "material", "point_contact_stiffness", default_stiffness
        ),
        relaxation_time=properties.GetPropertyOrDefault(
            "material", "relaxation_time", _DEFAULT_RELAXATION_TIME_S
        ),
        friction=friction.dynamic_friction(),
    )
