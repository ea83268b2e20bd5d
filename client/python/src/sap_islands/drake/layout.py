"""Kinematic trees of a Drake model, and what its geometries are made of."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from pydrake.geometry import GeometryId, SceneGraphInspector
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import BodyIndex, Joint, JointIndex

from sap_islands.arrays import FloatArray, IntArray, UIntArray

IndexArray = NDArray[np.int64]

_DEFAULT_RELAXATION_TIME_S = 0.1  # of a geometry that has none, as in Drake
_FREE_JOINTS = ("quaternion_floating", "rpy_floating")


# Columns of what a geometry is made of: the number of its body; k of point contact, infinite if
# rigid [N/m]; τ_d [s]; the dynamic coefficient μ [-].
BODY, STIFFNESS, RELAXATION_TIME, FRICTION = range(4)


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


@dataclass
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
        position_of_free: [bodies] of a body that is a tree by itself, with velocities (ω, v of its
            origin) in world axes: where its origin is in Drake's q; otherwise -1.
        damped: joints that may be damped, with the places of their velocities in Drake's v.
        limited: joints with a limit.
        default_stiffness: k of a geometry that has none [N/m].
        number_of: Geometries that have been asked for, by their identifiers.
        materials: [n, 4] of these.
    """

    dofs: UIntArray
    sizes: IndexArray
    distinct_sizes: list[int]
    velocities: IndexArray
    first: IndexArray
    groups: list[EqualTrees]
    tree_of_body: IntArray
    position_of_free: IndexArray
    damped: list[tuple[JointIndex, slice]]
    limited: list[JointIndex]
    default_stiffness: float
    number_of: dict[GeometryId, int] = field(default_factory=dict)
    materials: FloatArray = field(default_factory=lambda: np.empty((0, 4)))

    def number_geometries(
        self, plant: MultibodyPlant, inspector: SceneGraphInspector, geometries: list[GeometryId]
    ) -> IndexArray:
        """Numbers of geometries, rows of `materials`; each geometry is looked up once."""
        numbers = list(map(self.number_of.get, geometries))
        if None in numbers:
            rows = []
            for geometry in geometries:
                if geometry not in self.number_of:
                    self.number_of[geometry] = len(self.number_of)
                    rows.append(_read_material(plant, inspector, geometry, self.default_stiffness))
            self.materials = np.concatenate((self.materials, rows))
            numbers = list(map(self.number_of.get, geometries))
        return np.array(numbers, np.int64)


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
        position_of_free=_positions_of_free(plant, tree_of_body),
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
            # Rotation comes first, as a quaternion or three angles.
            place[int(body.index())] = joint.position_start() + joint.num_positions() - 3
    return place


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
