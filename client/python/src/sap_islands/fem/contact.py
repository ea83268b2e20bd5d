"""Contacts of points of deformable bodies, and what joins their arrays with those of others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from sap_islands.arrays import FloatArray, IndexArray
from sap_islands.errors import InvalidArgument
from sap_islands.problem import Contacts, Trees, concatenate


class Points(NamedTuple):
    """Points that move with nodes: those of a face, of an element, or one.

    Attributes:
        trees: [C, k] trees of the nodes in the problem.
        weights: [C, k] of each, as `weights_at` gives them; those of weight 0 are left out.
    """

    trees: IndexArray
    weights: FloatArray


class Carried(NamedTuple):
    """Points that move with one tree of n velocities, or a rigid body of six.

    Attributes:
        tree: [C] tree in the problem.
        jacobian: [C, 3, n] velocity of each point in world axes by those of its tree.
    """

    tree: IndexArray
    jacobian: FloatArray


Side: TypeAlias = Points | Carried

_JOINED = ("jacobian", "signed_distance", "stiffness", "relaxation_time", "friction")


def weights_at(points: FloatArray, corners: FloatArray) -> FloatArray:
    """Barycentric weights [C, k] of points [C, 3] in elements with corners [C, k, 3].

    In triangles and segments, the weights of the nearest point of their plane or line.
    """
    edges = corners[:, 1:] - corners[:, :1]
    normal = np.einsum("cki,cli->ckl", edges, edges)
    along = np.einsum("cki,ci->ck", edges, points - corners[:, 0])
    inner = np.linalg.solve(normal, along[..., None])[..., 0]
    return np.column_stack((1 - inner.sum(axis=1), inner))


def contacts(
    first: Side,
    normal: ArrayLike,
    signed_distance: ArrayLike,
    second: Side | None = None,
    stiffness: ArrayLike = 1e7,
    relaxation_time: ArrayLike = 0.0,
    friction: ArrayLike = 0.5,
) -> Contacts:
    """Contacts of points with something that stands still, or with points of another body.

    Args:
        first: What is pushed along the normal.
        normal: [C, 3] or [3] unit vectors towards it.
        signed_distance: [C] or a number [m].
        second: What is pushed against the normal; None: it stands still.
        stiffness: [N/m].
        relaxation_time: Of contacts that touch [s]; before touch it is 0, so that only what would
            pass the gap is stopped.
        friction: Coefficient [-].
    """
    count = len(first[0])
    distance = np.broadcast_to(np.asarray(signed_distance, float), count)
    frames = contact_frames(np.broadcast_to(np.asarray(normal, float), (count, 3)))
    # Entries of all contacts, one per tree: contact, tree, block.
    sides = [_entries(frames, first)]
    if second is not None:
        sides.append(_entries(-frames, second))
    contact = np.concatenate([side[0] for side in sides])
    order = np.argsort(contact, kind="stable")
    blocks = [block for side in sides for block in side[2]]
    return Contacts(
        parts=np.bincount(contact, minlength=count).astype(np.uint32),
        part_tree=np.concatenate([side[1] for side in sides])[order].astype(np.int32),
        jacobian=concatenate([blocks[i] for i in order]),
        signed_distance=distance,
        stiffness=np.broadcast_to(np.asarray(stiffness, float), count),
        relaxation_time=np.where(distance > 0, 0.0, np.asarray(relaxation_time, float)),
        friction=np.broadcast_to(np.asarray(friction, float), count),
    )


def contact_frames(normal: FloatArray) -> FloatArray:
    """[C, 3, 3] the frames of contacts with normals [C, 3]: rows t1, t2, n in world axes.

    Raises:
        InvalidArgument: A normal is no unit vector.
    """
    length = np.linalg.norm(normal, axis=1)
    for i in np.flatnonzero(~(abs(length - 1) <= 1e-6)):
        message = f"normal[{i}] has length {length[i]:g}; it must be 1 within 1e-6"
        raise InvalidArgument(message, f"normal[{i}]")
    axis = np.eye(3)[np.argmin(abs(normal), axis=1)]
    t1 = np.cross(axis, normal)
    t1 /= np.linalg.norm(t1, axis=1, keepdims=True)
    return np.stack((t1, np.cross(normal, t1), normal), axis=1)


def join_contacts(groups: Sequence[Contacts]) -> Contacts:
    """Contacts of several groups as one, by `parts`.

    Raises:
        InvalidArgument: A group has other arrays than those that `contacts` gives.
    """
    groups = [group for group in groups if group.count]
    if not groups:
        return Contacts.none()
    known = {*_JOINED, "parts", "part_tree", "tree_a", "tree_b"}
    for group in groups:
        given = [name for name in group._fields if getattr(group, name).size]
        for name in (*given, *(name for name in group._groups if getattr(group, name))):
            if name not in known:
                raise InvalidArgument(f"{name} of contacts cannot be joined", f"contacts.{name}")
    trees = [_parts(group) for group in groups]
    joined = Contacts(
        parts=np.concatenate([parts for parts, _ in trees]),
        part_tree=np.concatenate([tree for _, tree in trees]),
    )
    for name in _JOINED:
        setattr(joined, name, np.concatenate([_filled(group, name) for group in groups]))
    return joined


def release_gaps(contacts: Contacts, trees: Trees, time_step: float) -> None:
    """Takes friction off contacts before touch whose gap the free motion does not close.

    The convex law would lift and rub what slides above a surface.

    Args:
        contacts: Joined contacts; changed.
        trees: Joined trees.
        time_step: δt [s].
    """
    ends, v_star = np.cumsum(trees.dofs), trees.free_motion_velocity
    begin, part = 0, 0
    for i, parts in enumerate(contacts.parts):
        v_n = 0.0
        for tree in contacts.part_tree[part : part + parts]:
            n = int(trees.dofs[tree])
            normal = contacts.jacobian[begin + 2 * n : begin + 3 * n]
            v_n += float(normal @ v_star[ends[tree] - n : ends[tree]])
            begin += 3 * n
        part += parts
        gap = contacts.signed_distance[i]
        if gap > 0 and gap + time_step * v_n > 0:
            contacts.friction[i] = 0.0


def join_trees(groups: Sequence[Trees]) -> Trees:
    """Trees of several bodies as those of one problem, in this order.

    Raises:
        InvalidArgument: A group has identifiers or initial velocities.
    """
    for group in groups:
        for name in ("tree_id", "initial_velocity"):
            if getattr(group, name).size:
                raise InvalidArgument(f"{name} of trees cannot be joined", f"trees.{name}")
    first = np.cumsum([0, *(group.count for group in groups)])[:-1]
    numbered = list(zip(groups, first, strict=True))
    guesses = [
        g.guess_velocity if g.guess_velocity.size else g.free_motion_velocity for g in groups
    ]
    names = ("dofs", "dynamics_matrix", "free_motion_velocity", "coupling_block")
    return Trees(
        **{name: np.concatenate([getattr(g, name) for g in groups]) for name in names},
        guess_velocity=np.concatenate(guesses),
        coupled_a=np.concatenate([group.coupled_a + n for group, n in numbered]),
        coupled_b=np.concatenate([group.coupled_b + n for group, n in numbered]),
    )


def _entries(frames: FloatArray, side: Side) -> tuple[IndexArray, IndexArray, FloatArray]:
    """Contact, tree and block [3, n] of each tree that a side touches, contacts ascending."""
    if isinstance(side, Carried):
        blocks = np.einsum("cij,cjn->cin", frames, side.jacobian)
        return np.arange(len(side.tree)), np.asarray(side.tree), blocks
    weights = np.asarray(side.weights, float)
    contact, corner = np.nonzero(weights)
    blocks = weights[contact, corner][:, None, None] * frames[contact]
    return contact, np.asarray(side.trees)[contact, corner], blocks


def _filled(group: Contacts, name: str) -> FloatArray:
    """An array of the group, a single number repeated for all contacts."""
    array = getattr(group, name)
    return array.ravel() if array.ndim or name == "jacobian" else np.full(group.count, array)


def _parts(group: Contacts) -> tuple[IndexArray, IndexArray]:
    """`parts` and `part_tree` of a group, also of one given by pairs of trees."""
    if group.parts.size:
        return group.parts.astype(np.int64), group.part_tree.astype(np.int64)
    pairs = np.column_stack(np.broadcast_arrays(group.tree_a, group.tree_b))
    return (pairs >= 0).sum(axis=1), pairs[pairs >= 0].astype(np.int64)
