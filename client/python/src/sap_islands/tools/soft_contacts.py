"""Contacts of deformable bodies: nodes with the geoms of a MuJoCo model and with other bodies.

A contact is found at the nodes alone: an edge of a box between the nodes of a cloth is not.
"""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from sap_islands import fem
from sap_islands.arrays import FloatArray, IndexArray
from sap_islands.errors import InvalidArgument
from sap_islands.problem import Contacts
from sap_islands.soft_scenes import SoftBody

_FIND_WITHIN = 0.01  # distance within which contacts are reported [m]


class Law(NamedTuple):
    """Parameters of all contacts.

    Attributes:
        stiffness: [N/m].
        relaxation_time: [s].
        friction: Coefficient [-].
    """

    stiffness: float
    relaxation_time: float
    friction: float


class Found(NamedTuple):
    """Contacts with what is needed to show them.

    Attributes:
        contacts: The contacts.
        point: [C, 3] in world axes [m].
        frame: [C, 3, 3] rows t1, t2, n.
    """

    contacts: Contacts
    point: FloatArray
    frame: FloatArray


def find_contacts(
    model: mujoco.MjModel, data: mujoco.MjData, bodies: list[SoftBody], law: Law
) -> list[Found]:
    """The contacts of all bodies; their nodes follow the trees of the model in the problem.

    Raises:
        InvalidArgument: A geom has a shape other than plane, sphere, capsule or box.
    """
    counts = [len(body.x) for body in bodies]
    x = np.concatenate([body.x for body in bodies])
    radius = np.repeat([body.radius for body in bodies], counts)
    owner = np.repeat(np.arange(len(bodies)), counts)
    found = [_with_geom(model, data, geom, x, radius, law) for geom in range(model.ngeom)]
    for number, body in enumerate(bodies):
        if body.is_closed:
            nodes = np.flatnonzero((owner != number) & _is_near(x, radius, body))
            first = model.ntree + sum(counts[:number])
            found.append(_with_body(x, radius, nodes, body, model.ntree, first, law))
    return [group for group in found if len(group.point)]


def _is_near(x: FloatArray, radius: FloatArray, body: SoftBody) -> NDArray[np.bool_]:
    """Which nodes may be near enough to a body, by its bounding box."""
    apart = (radius + body.radius + _FIND_WITHIN)[:, None]
    low, high = body.x.min(axis=0) - apart, body.x.max(axis=0) + apart
    near: NDArray[np.bool_] = ((x >= low) & (x <= high)).all(axis=1)
    return near


def _with_geom(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    geom: int,
    x: FloatArray,
    radius: FloatArray,
    law: Law,
) -> Found:
    """Nodes x near a geom."""
    rotation = data.geom_xmat[geom].reshape(3, 3)
    place = data.geom_xpos[geom]
    kind = mujoco.mjtGeom(int(model.geom_type[geom]))
    distance, normal = _from_shape(kind, model.geom_size[geom], (x - place) @ rotation)
    distance = distance - radius
    near = np.flatnonzero(distance < _FIND_WITHIN)
    normal = normal[near] @ rotation.T
    point = x[near] - (distance[near] + radius[near])[:, None] * normal
    nodes = fem.Points(model.ntree + near[:, None], np.ones((len(near), 1)))
    carrier = _carried(model, data, int(model.geom_bodyid[geom]), point)
    contacts = fem.contacts(nodes, normal, distance[near], carrier, *law)
    return Found(contacts, point, fem.contact_frames(normal))


def _with_body(
    x: FloatArray,
    radius: FloatArray,
    nodes: IndexArray,
    body: SoftBody,
    first_node: int,
    first: int,
    law: Law,
) -> Found:
    """Some nodes of other bodies near the surface of a body, whose own nodes begin at `first`."""
    nearest = fem.nearest_on_surface(x[nodes], body.x, body.faces)
    distance = nearest.signed_distance - radius[nodes] - body.radius
    near = distance < _FIND_WITHIN
    corners = body.faces[nearest.face[near]]
    weights, normal = nearest.weights[near], nearest.normal[near]
    moving = first_node + nodes[near][:, None]
    contacts = fem.contacts(
        fem.Points(moving, np.ones(moving.shape)),
        normal,
        distance[near],
        fem.Points(first + corners, weights),
        *law,
    )
    point = np.einsum("ck,cki->ci", weights, body.x[corners])
    return Found(contacts, point, fem.contact_frames(normal))


def _carried(
    model: mujoco.MjModel, data: mujoco.MjData, body: int, point: FloatArray
) -> fem.Carried | None:
    """Points that move with a body of the model; None if it stands still."""
    tree = int(model.body_treeid[body])
    if tree < 0:
        return None
    linear, angular = np.zeros((2, 3, model.nv))
    mujoco.mj_jacBody(model, data, linear, angular, body)
    first = model.tree_dofadr[tree]
    own = slice(first, first + model.tree_dofnum[tree])
    arm = point - data.xpos[body]
    turning = np.cross(angular[:, own].T[None], arm[:, None]).transpose(0, 2, 1)
    return fem.Carried(np.full(len(point), tree), linear[:, own] + turning)


def _from_shape(
    kind: mujoco.mjtGeom, size: FloatArray, points: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Signed distance [C] and its gradient [C, 3] of points in the axes of a shape."""
    if kind == mujoco.mjtGeom.mjGEOM_PLANE:
        return points[:, 2], np.broadcast_to([0.0, 0.0, 1.0], points.shape)
    if kind == mujoco.mjtGeom.mjGEOM_BOX:
        return _from_box(size, points)
    if kind in (mujoco.mjtGeom.mjGEOM_SPHERE, mujoco.mjtGeom.mjGEOM_CAPSULE):
        nearest = np.zeros_like(points)
        if kind == mujoco.mjtGeom.mjGEOM_CAPSULE:
            nearest[:, 2] = np.clip(points[:, 2], -size[1], size[1])
        length = np.linalg.norm(points - nearest, axis=1)
        normal = (points - nearest) / np.maximum(length, 1e-12)[:, None]
        normal[length < 1e-12] = (1.0, 0.0, 0.0)  # on the axis, where every way out is as short
        return length - size[0], normal
    raise InvalidArgument(f"deformable bodies do not touch geoms of type {kind.name}", "geom_type")


def _from_box(half: FloatArray, points: FloatArray) -> tuple[FloatArray, FloatArray]:
    beyond = abs(points) - half
    outside = np.maximum(beyond, 0.0)
    length = np.linalg.norm(outside, axis=1)
    side = np.where(points < 0, -1.0, 1.0)
    normal = side * outside / np.maximum(length, 1e-12)[:, None]
    # Inside, through the nearest face.
    inside = np.flatnonzero(length <= 1e-12)
    axis = np.argmax(beyond[inside], axis=1)
    normal[inside] = 0
    normal[inside, axis] = side[inside, axis]
    return np.where(length > 1e-12, length, beyond.max(axis=1)), normal
