"""Contacts of Newton as contacts of the problem: of free bodies by points, of trees by Jacobians.

    φ = n (p_1 - p_0) - m_0 - m_1,   v̂_n = -φ / δt of a gap,   min(-φ / (δt + τ), v_max) of an
    overlap, or the speed of the rebound if that is larger; less μ |v_t + R_t γ_t|

The last term is 0 where a contact sticks; without it the convex model parts bodies that slide at
μ |v_t|, and they would hover.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import newton
import numpy as np
from numpy.typing import NDArray

from sap_islands.arrays import FloatArray
from sap_islands.newton.dynamics import Dynamics
from sap_islands.newton.layout import Indices, Layout, numpy_of
from sap_islands.newton.material import Material
from sap_islands.problem import WORLD, BodyContacts, Contacts
from sap_islands.solution import Solution

_RIGID = 1e12  # stiffness that leaves R_n to the rule [N/m]
_LEAST_REBOUND = 0.1  # [m/s]
_REACH_SPEED = 1.0  # contacts farther than a step at this and twice their speed are none [m/s]
_SHIFT_SPEED, _SHIFT_CHANGE = 1e-3, 0.05  # what a change of the last term must exceed [m/s], [-]


@dataclass
class ContactSet:
    """The contacts of a step within reach, those that touch a tree first.

    Attributes:
        row: [C] place in Newton's arrays.
        body: [C, 2] bodies a and b; the normal is from b to a. -1: the world.
        point: [C, 3] in the world [m].
        normal: [C, 3].
        friction: [C].
        unshifted: [C] v̂_n without its last term [m/s].
        shift: [C] that term [m/s].
        relaxation_time: [s].
        num_of_trees: Contacts that touch a tree.
        bounces: Some contact rebounds.
    """

    row: Indices
    body: Indices
    point: FloatArray
    normal: FloatArray
    friction: FloatArray
    unshifted: FloatArray
    shift: FloatArray
    relaxation_time: float
    num_of_trees: int
    bounces: bool
    _jacobian: list[FloatArray] = field(default_factory=list)
    _trees: list[tuple[int, int]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.row)

    def update_shift(self, solution: Solution, slip_parameter: float) -> bool:
        """Sets the last term by a solution; True if that changes a closed contact."""
        impulse = solution.impulse.reshape(-1, 3)
        velocity = solution.contact_velocity.reshape(-1, 3)
        R_t = slip_parameter * solution.delassus_estimate[:, None]
        slip = velocity[:, :2] + R_t * impulse[:, :2]
        shift = self.friction * np.linalg.norm(slip, axis=1)
        change = np.abs(shift - self.shift) > _SHIFT_SPEED + _SHIFT_CHANGE * shift
        closed = impulse[:, 2] > 0
        self.shift = np.where(closed, shift, self.shift)
        return bool((change & closed).any())


class _Pairs(NamedTuple):
    """Pairs of surfaces that Newton has found, of which body a moves."""

    row: Indices  # [C] place in Newton's arrays
    shape: Indices  # [C, 2] a, b
    body: Indices  # [C, 2]; -1: the world
    point: FloatArray  # [C, 3] between the surfaces
    normal: FloatArray  # [C, 3] from b to a
    gap: FloatArray  # [C]

    def at(self, rows: Indices) -> _Pairs:
        return _Pairs._make(values[rows] for values in self)


def read_contacts(
    model: newton.Model,
    layout: Layout,
    contacts: newton.Contacts | None,
    dynamics: Dynamics,
    material: Material,
    time_step: float,
) -> ContactSet:
    """Reads the contacts between bodies that move, within reach of a step."""
    pairs = _read_pairs(model, layout, contacts, dynamics)
    slip = _slip(dynamics, pairs)
    part = layout.part_of(pairs.body)
    touches_tree = np.any((part >= 0) & (part < len(layout.trees)), axis=1)
    near = np.flatnonzero(pairs.gap < time_step * (2 * np.linalg.norm(slip, axis=1) + _REACH_SPEED))
    near = near[np.argsort(~touches_tree[near], kind="stable")]
    pairs, slip = pairs.at(near), slip[near]
    v_n = np.einsum("ci,ci->c", slip, pairs.normal)
    tau = material.relaxation_time_of(time_step)
    push_out = np.minimum(-pairs.gap / (time_step + tau), material.max_push_out_speed)
    target = np.where(pairs.gap > 0, -pairs.gap / time_step, push_out)
    restitution = numpy_of(model.shape_material_restitution)[pairs.shape].max(axis=1, initial=0)
    rebound = -restitution * v_n
    bounces = (rebound > _LEAST_REBOUND) & (pairs.gap + time_step * v_n < 0)
    friction = np.sqrt(numpy_of(model.shape_material_mu)[pairs.shape].prod(axis=1))
    tangential = slip - v_n[:, None] * pairs.normal
    return ContactSet(
        row=pairs.row,
        body=pairs.body,
        point=pairs.point,
        normal=pairs.normal,
        friction=friction,
        unshifted=np.where(bounces, np.maximum(target, rebound), target),
        shift=friction * np.linalg.norm(tangential, axis=1),
        relaxation_time=tau,
        num_of_trees=int(touches_tree[near].sum()),
        bounces=bool(bounces.any()),
    )


def _read_pairs(
    model: newton.Model, layout: Layout, contacts: newton.Contacts | None, dynamics: Dynamics
) -> _Pairs:
    count = 0 if contacts is None else int(contacts.rigid_contact_count.numpy()[0])
    if contacts is None or not count:
        nothing, vectors = np.zeros(0, int), np.zeros((0, 3))
        return _Pairs(
            nothing, np.zeros((0, 2), int), np.zeros((0, 2), int), vectors, vectors, np.zeros(0)
        )

    def sides(name: str) -> NDArray[Any]:
        arrays = [getattr(contacts, f"rigid_contact_{name}{side}").numpy() for side in (0, 1)]
        return np.stack([array[:count] for array in arrays], axis=1)

    shape = sides("shape")
    body = model.shape_body.numpy()[shape]
    moves = layout.part_of(body) >= 0
    row = np.flatnonzero(moves.any(axis=1))
    shape, body, moves = shape[row], body[row], moves[row]
    normal = numpy_of(contacts.rigid_contact_normal)[row]
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    offset = sides("margin")[row][:, :, None] * np.array([[1.0], [-1.0]]) * normal[:, None, :]
    surface = _in_world(dynamics, body, sides("point")[row]) + offset
    # Newton's normal is from shape 0 to 1, so a is 1 unless that does not move.
    second = moves[:, 1:]
    order = np.where(second, [[1, 0]], [[0, 1]])
    return _Pairs(
        row,
        np.take_along_axis(shape, order, 1),
        np.take_along_axis(body, order, 1),
        surface.mean(axis=1),
        np.where(second, normal, -normal),
        np.einsum("ci,ci->c", normal, surface[:, 1] - surface[:, 0]),
    )


def _in_world(dynamics: Dynamics, body: Indices, point: NDArray[Any]) -> FloatArray:
    """[C, 2, 3] points of bodies in the world; those of the world are in it already."""
    on = body >= 0
    world: FloatArray = point.astype(np.float64)
    turned = np.einsum("cij,cj->ci", dynamics.rotation[body[on]], world[on])
    world[on] = dynamics.position[body[on]] + turned
    return world


def _slip(dynamics: Dynamics, pairs: _Pairs) -> FloatArray:
    """[C, 3] velocity of a relative to b at the beginning of the step."""
    a, b = (_point_velocity(dynamics, pairs.body[:, side], pairs.point) for side in (0, 1))
    return a - b


def _point_velocity(dynamics: Dynamics, body: Indices, point: FloatArray) -> FloatArray:
    velocity = np.zeros_like(point)
    on = body >= 0
    own = body[on]
    twist, arm = dynamics.twist[own], point[on] - dynamics.center[own]
    velocity[on] = twist[:, :3] + np.cross(twist[:, 3:], arm)
    return velocity


def make_contacts(
    layout: Layout, dynamics: Dynamics, found: ContactSet
) -> tuple[Contacts, BodyContacts]:
    """The contacts of the problem with the targets of now."""
    first = found.num_of_trees
    target = found.unshifted - found.shift
    surface = -_velocity_of_kinematic(layout, dynamics, found.body[:, 1], found.point)
    tau, stiffness = (np.full(len(found), value) for value in (found.relaxation_time, _RIGID))
    contacts, bodies = Contacts.none(), BodyContacts.none()
    if first:
        if not found._jacobian:
            for i in range(first):
                _add_jacobian(layout, dynamics, found, i)
        frames = np.array([_frame(n) for n in found.normal[:first]])
        contacts = Contacts(
            tree_a=[a for a, _ in found._trees],
            tree_b=[b for _, b in found._trees],
            jacobian=np.concatenate([block.ravel() for block in found._jacobian]),
            friction=found.friction[:first],
            target_velocity=np.outer(target[:first], [0, 0, 1]),
            surface_velocity=np.einsum("cij,cj->ci", frames, surface[:first]),
            relaxation_time=tau[:first],
            stiffness=stiffness[:first],
        )
    if len(found) > first:
        part = layout.part_of(found.body[first:])
        number = np.where(part >= 0, part - len(layout.trees), WORLD)
        bodies = BodyContacts(
            body_a=number[:, 0].astype(np.int32),
            body_b=number[:, 1].astype(np.int32),
            point=found.point[first:],
            normal=found.normal[first:],
            friction=found.friction[first:],
            target_velocity=target[first:, None] * found.normal[first:],
            surface_velocity=surface[first:],
            relaxation_time=tau[first:],
            stiffness=stiffness[first:],
        )
    return contacts, bodies


def _velocity_of_kinematic(
    layout: Layout, dynamics: Dynamics, body: Indices, point: FloatArray
) -> FloatArray:
    """[C, 3] velocity at the points of bodies that are moved; 0 of all others."""
    moved = (body >= 0) & (layout.part_of(body) < 0)
    return _point_velocity(dynamics, np.where(moved, body, -1), point)


def _frame(n: FloatArray) -> FloatArray:
    """Rows t1, t2, n."""
    axis = np.eye(3)[np.argmin(np.abs(n))]
    t1 = np.cross(n, axis)
    t1 /= np.linalg.norm(t1)
    return np.stack([t1, np.cross(n, t1), n])


def _add_jacobian(layout: Layout, dynamics: Dynamics, found: ContactSet, i: int) -> None:
    frame = _frame(found.normal[i])
    blocks: dict[int, FloatArray] = {}
    for body, sign in zip(found.body[i], (1.0, -1.0), strict=True):
        tree = int(layout.part_of(body))
        if tree < 0:
            continue
        x, y, z = found.point[i] - dynamics.center[body]
        # Velocity of the point per twist of the center of mass.
        arm = np.array([[0, z, -y], [-z, 0, x], [y, -x, 0]])
        S = sign * frame @ np.hstack([np.eye(3), arm])
        if tree < len(layout.trees):
            own = layout.trees[tree]
            n = own.dofs.stop - own.dofs.start
            S = S @ dynamics.jacobian[own.articulation, layout.link_of_body[body], :, :n]
        blocks[tree] = blocks[tree] + S if tree in blocks else S
    trees = [*blocks, WORLD]
    found._trees.append((trees[0], trees[1]))
    found._jacobian.append(np.concatenate([block.ravel() for block in blocks.values()]))
