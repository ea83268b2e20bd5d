"""Contacts of Newton as contacts of the problem: of free bodies by points, of trees by Jacobians.

    φ = n (p_1 - p_0) - m_0 - m_1,   v̂_n = -φ / δt of a gap,   min(-φ / (δt + τ), v_max) (n d)+ of
    an overlap, or the speed of the rebound if that is larger; less |M (v + R γ)|

d is the unit vector along the sum of -φ n over the overlaps of the two shapes. A motion along d at
v_max satisfies all of them. Along its own normal each would turn bodies, where meshes have contacts
with normals to all sides, and far from the contacts they would be many times faster than v_max.
The last term, over the axes of friction with M their coefficients, is 0 where a contact sticks;
without it the convex model parts bodies that slide at μ |v_t|, and they would hover.

Where no motion of the trees changes v_n, as under a drawer or a turntable, they cannot part, and
the cone would hold them. The normal force is known there, k_e times the overlap as in Newton's
penalty solvers. v̂_n and R_n that give it are multiplied by one large number, which leaves it and
takes from it what slip would add.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import newton
import numpy as np
from numpy.typing import NDArray

from sap_islands.arrays import FloatArray
from sap_islands.newton.dynamics import Dynamics
from sap_islands.newton.layout import Indices, Layout, numpy_of
from sap_islands.newton.material import Material
from sap_islands.newton.rebounds import LEAST_REBOUND, Landings, rebound_targets, surface_speeds
from sap_islands.problem import WORLD, BodyContacts, Contacts, Trees
from sap_islands.solution import Solution

_RIGID = 1e12  # stiffness that leaves R_n to the rule [N/m]
_REACH_SPEED = 1.0  # contacts farther than a step at this and twice their speed are none [m/s]
_TURNING = ("rolling", "torsional")
_GUIDED = 1e-6  # |J_n| over |J_t|, in the norm of diag(A)^-1, of a normal that does not move
_GUIDED_SCALE = 1e8  # of v̂_n and R_n there
_SHIFT_SPEED, _SHIFT_CHANGE = 1e-3, 0.05  # what a change of the last term must exceed [m/s], [-]


@dataclass
class ContactSet:
    """The contacts of a step within reach, those that touch a tree first.

    Attributes:
        row: [C] place in Newton's arrays.
        shape: [C, 2] shapes of a and b.
        body: [C, 2] bodies a and b; the normal is from b to a. -1: the world.
        point: [C, 3] in the world [m].
        frame: [C, 3, 3] rows t1, t2, n in the world.
        friction: [C].
        turning_friction: [C, 3] rolling about t1 and t2, and torsional [m].
        surface_velocity: [C, 3] added to the velocity of a relative to b, by bodies that the
            program moves and by surfaces that move along themselves, in the world [m/s].
        unshifted: [C] v̂_n without its last term [m/s].
        shift: [C] that term [m/s].
        landing: [C] speed at which the step closes a gap, if it does [m/s].
        overlap: [C] >= 0 [m].
        stiffness: [C] k_e of the shapes, their mean [N/m]; read of guided contacts alone.
        relaxation_time: [s].
        num_of_trees: Contacts that touch a tree.
        lands_or_rebounds: Some contact does, so that R_n has to be small.
    """

    row: Indices
    shape: Indices
    body: Indices
    point: FloatArray
    frame: FloatArray
    friction: FloatArray
    turning_friction: FloatArray
    surface_velocity: FloatArray
    unshifted: FloatArray
    shift: FloatArray
    landing: FloatArray
    overlap: FloatArray
    stiffness: FloatArray
    relaxation_time: float
    num_of_trees: int
    lands_or_rebounds: bool
    _jacobian: list[FloatArray] = field(default_factory=list)
    _angular_jacobian: list[FloatArray] = field(default_factory=list)
    _trees: list[tuple[int, int]] = field(default_factory=list)
    _guided: list[bool] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.row)

    @property
    def resists_turning(self) -> NDArray[np.bool_]:
        """[C] contacts with a rolling or torsional coefficient > 0."""
        return np.any(self.turning_friction > 0, axis=1)

    @property
    def guided(self) -> NDArray[np.bool_]:
        """[C] contacts with friction whose normal velocity no motion changes."""
        guided = np.zeros(len(self), bool)
        guided[: len(self._guided)] = self._guided
        return guided

    def update_shift(self, solution: Solution, twist: FloatArray, slip_parameter: float) -> bool:
        """Sets the last term by a solution; True if that changes a closed contact.

        Args:
            solution: The solution.
            twist: [bodies, 6] of the bodies, by the solution.
            slip_parameter: R_t / w.
        """
        impulse = solution.impulse.reshape(-1, 3)
        velocity = solution.contact_velocity.reshape(-1, 3)
        R_t = slip_parameter * solution.delassus_estimate[:, None]
        slip = self.friction[:, None] * (velocity[:, :2] + R_t * impulse[:, :2])
        turns, turning = self.resists_turning, np.zeros((len(self), 3))
        if turns.any():
            # An axis of coefficient m has R_t (μ / m)².
            m, mu = self.turning_friction[turns], self.friction[turns, None]
            spin = self.turning(twist)[turns]
            with_impulse = np.divide(
                R_t[turns] * mu**2 * solution.angular_impulse, m, out=np.zeros_like(m), where=m > 0
            )
            turning[turns] = m * spin + with_impulse
        shift = np.linalg.norm(np.hstack([slip, turning]), axis=1)
        change = np.abs(shift - self.shift) > _SHIFT_SPEED + _SHIFT_CHANGE * shift
        closed = (impulse[:, 2] > 0) & ~self.guided
        self.shift = np.where(closed, shift, self.shift)
        return bool((change & closed).any())

    def turning(self, twist: FloatArray) -> FloatArray:
        """[C, 3] angular velocity of a relative to b in the frame, by twists of bodies."""
        return np.einsum("cij,cj->ci", self.frame, _relative_spin(twist, self.body))


class _Pairs(NamedTuple):
    """Pairs of surfaces that Newton has found, of which body a moves."""

    row: Indices  # [C] place in Newton's arrays
    shape: Indices  # [C, 2] a, b
    body: Indices  # [C, 2]; -1: the world
    point: FloatArray  # [C, 3] between the surfaces
    normal: FloatArray  # [C, 3] from b to a
    gap: FloatArray  # [C]
    friction_scale: FloatArray  # [C]
    belt: FloatArray  # [C, 3] velocity of the surface of a relative to b along themselves

    def at(self, rows: Indices) -> _Pairs:
        return _Pairs._make(values[rows] for values in self)


def read_contacts(
    model: newton.Model,
    layout: Layout,
    contacts: newton.Contacts | None,
    dynamics: Dynamics,
    material: Material,
    landings: Landings,
    time_step: float,
) -> ContactSet:
    """Reads the contacts between bodies that move, within reach of a step."""
    pairs = _read_pairs(model, layout, contacts, dynamics)
    slip = _slip(dynamics, dynamics.twist, pairs)
    part = layout.part_of(pairs.body)
    touches_tree = np.any((part >= 0) & (part < len(layout.trees)), axis=1)
    near = np.flatnonzero(pairs.gap < time_step * (2 * np.linalg.norm(slip, axis=1) + _REACH_SPEED))
    near = near[np.argsort(~touches_tree[near], kind="stable")]
    pairs, slip = pairs.at(near), slip[near]
    n, gap = pairs.normal, pairs.gap
    v_n = np.einsum("ci,ci->c", slip, n)
    free_v_n = np.einsum("ci,ci->c", _slip(dynamics, dynamics.free_twist, pairs), n)
    tau = material.relaxation_time_of(time_step)
    push_out = np.minimum(-gap / (time_step + tau), material.max_push_out_speed)
    push_out *= _along_way_out(pairs)
    target = np.where(gap > 0, -gap / time_step, push_out)

    def material_of(name: str) -> FloatArray:
        return numpy_of(getattr(model, f"shape_material_{name}"))[pairs.shape]

    restitution = material_of("restitution").max(axis=1, initial=0)
    landed = landings.speeds(pairs.shape, pairs.body, dynamics.twist)
    rebound = rebound_targets(v_n, free_v_n, gap, landed, restitution, time_step)
    lands = (gap > 0) & (rebound == 0) & (gap + time_step * free_v_n < 0)
    landing = np.where(lands, surface_speeds(v_n, free_v_n, gap, time_step), 0)
    landing = np.where(restitution * landing > LEAST_REBOUND, landing, 0)
    friction = np.sqrt(material_of("mu").prod(axis=1)) * pairs.friction_scale
    rolling, torsional = (material_of(f"mu_{name}").max(axis=1, initial=0) for name in _TURNING)
    found = ContactSet(
        row=pairs.row,
        shape=pairs.shape,
        body=pairs.body,
        point=pairs.point,
        frame=_frames(n),
        friction=friction,
        turning_friction=np.stack([rolling, rolling, torsional], axis=1) * (friction > 0)[:, None],
        surface_velocity=pairs.belt - _velocity_of_kinematic(layout, dynamics, pairs),
        unshifted=np.where(rebound > 0, np.maximum(target, rebound), target),
        shift=np.zeros(len(near)),
        landing=landing,
        overlap=np.maximum(-gap, 0),
        stiffness=material_of("ke").mean(axis=1),
        relaxation_time=tau,
        num_of_trees=int(touches_tree[near].sum()),
        lands_or_rebounds=bool((landing > 0).any() or (rebound > 0).any()),
    )
    slip_t = friction[:, None] * (slip - v_n[:, None] * n + pairs.belt)
    turning = found.turning_friction * found.turning(dynamics.twist)
    found.shift = np.linalg.norm(np.hstack([slip_t, turning]), axis=1)
    return found


def _read_pairs(
    model: newton.Model, layout: Layout, contacts: newton.Contacts | None, dynamics: Dynamics
) -> _Pairs:
    count = 0 if contacts is None else int(contacts.rigid_contact_count.numpy()[0])
    if contacts is None or not count:
        none, vectors, numbers = np.zeros((0, 2), int), np.zeros((0, 3)), np.zeros(0)
        return _Pairs(none[:, 0], none, none, vectors, vectors, numbers, numbers, vectors)

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
    sign = np.where(second, 1.0, -1.0)
    belt = np.zeros_like(normal)
    if contacts.rigid_contact_surface_velocity is not None:
        belt = sign * numpy_of(contacts.rigid_contact_surface_velocity)[row]
        belt -= np.einsum("ci,ci->c", belt, normal)[:, None] * normal
    scale = np.ones(len(row))
    if contacts.rigid_contact_friction is not None:
        given = numpy_of(contacts.rigid_contact_friction)[row]
        scale = np.where(given > 0, given, 1)
    return _Pairs(
        row,
        np.take_along_axis(shape, order, 1),
        np.take_along_axis(body, order, 1),
        surface.mean(axis=1),
        sign * normal,
        np.einsum("ci,ci->c", normal, surface[:, 1] - surface[:, 0]),
        scale,
        belt,
    )


def _in_world(dynamics: Dynamics, body: Indices, point: NDArray[Any]) -> FloatArray:
    """[C, 2, 3] points of bodies in the world; those of the world are in it already."""
    on = body >= 0
    world: FloatArray = point.astype(np.float64)
    turned = np.einsum("cij,cj->ci", dynamics.rotation[body[on]], world[on])
    world[on] = dynamics.position[body[on]] + turned
    return world


def _along_way_out(pairs: _Pairs) -> FloatArray:
    """[C] (n d)+ with d the way out of the two shapes, along the sum of their depths times n."""
    sign = np.where(pairs.shape[:, 0] > pairs.shape[:, 1], -1.0, 1.0)
    _, pair = np.unique(np.sort(pairs.shape, axis=1), axis=0, return_inverse=True)
    normal = sign[:, None] * pairs.normal
    way_out = np.zeros((len(normal), 3))
    np.add.at(way_out, pair.ravel(), np.maximum(-pairs.gap, 0)[:, None] * normal)
    length = np.linalg.norm(way_out, axis=1, keepdims=True)
    direction = np.divide(way_out, length, out=np.zeros_like(way_out), where=length > 0)
    along: FloatArray = np.einsum("ci,ci->c", normal, direction[pair.ravel()])
    return np.maximum(along, 0)


def _slip(dynamics: Dynamics, twist: FloatArray, pairs: _Pairs) -> FloatArray:
    """[C, 3] velocity of a relative to b by twists of bodies."""
    a, b = (_point_velocity(dynamics, twist, pairs.body[:, side], pairs.point) for side in (0, 1))
    return a - b


def _point_velocity(
    dynamics: Dynamics, twist: FloatArray, body: Indices, point: FloatArray
) -> FloatArray:
    velocity = np.zeros_like(point)
    on = body >= 0
    own = body[on]
    arm = point[on] - dynamics.center[own]
    velocity[on] = twist[own, :3] + np.cross(twist[own, 3:], arm)
    return velocity


def _relative_spin(twist: FloatArray, body: Indices) -> FloatArray:
    """[C, 3] angular velocity of a relative to b."""
    spin = np.vstack([twist[:, 3:], np.zeros((1, 3))])[body]  # -1: the world
    return spin[:, 0] - spin[:, 1]


def _velocity_of_kinematic(layout: Layout, dynamics: Dynamics, pairs: _Pairs) -> FloatArray:
    """[C, 3] velocity at the points of bodies b that the program moves; 0 of all others."""
    body = pairs.body[:, 1]
    moved = (body >= 0) & (layout.part_of(body) < 0)
    return _point_velocity(dynamics, dynamics.twist, np.where(moved, body, -1), pairs.point)


def make_contacts(
    layout: Layout, dynamics: Dynamics, found: ContactSet, time_step: float
) -> tuple[Contacts, BodyContacts]:
    """The contacts of the problem with the targets of now."""
    first = found.num_of_trees
    if first and not found._jacobian:
        mobility = _mobility(dynamics.trees)
        for i in range(first):
            _add_jacobian(layout, dynamics, mobility, found, i)
    target = found.unshifted - found.shift
    turns = found.resists_turning
    spin = -_relative_spin(_kinematic_twist(layout, dynamics), found.body)  # that v_c is to reach
    tau, stiffness = (np.full(len(found), value) for value in (found.relaxation_time, _RIGID))
    known = found.guided & (found.overlap > 0) & (found.stiffness > 0)
    target[found.guided] = -_GUIDED_SCALE
    target[known] = _GUIDED_SCALE * found.overlap[known] / (time_step + tau[known])
    stiffness[known] = found.stiffness[known] / _GUIDED_SCALE
    contacts, bodies = Contacts.none(), BodyContacts.none()
    trees, others = slice(0, first), slice(first, None)
    if first:
        frame = found.frame[trees]
        contacts = Contacts(
            tree_a=[a for a, _ in found._trees],
            tree_b=[b for _, b in found._trees],
            jacobian=np.concatenate([block.ravel() for block in found._jacobian]),
            friction=found.friction[trees],
            target_velocity=np.outer(target[trees], [0, 0, 1]),
            surface_velocity=np.einsum("cij,cj->ci", frame, found.surface_velocity[trees]),
            relaxation_time=tau[trees],
            stiffness=stiffness[trees],
        )
        if turns[trees].any():
            contacts.rolling_friction = found.turning_friction[trees, :2]
            contacts.torsional_friction = found.turning_friction[trees, 2]
            blocks = [block.ravel() for block in found._angular_jacobian]
            contacts.angular_jacobian = np.concatenate(blocks)
            in_frame = np.einsum("cij,cj->ci", frame, spin[trees])
            contacts.target_angular_velocity = in_frame[turns[trees]]
    if len(found) > first:
        part = layout.part_of(found.body[others])
        number = np.where(part >= 0, part - len(layout.trees), WORLD)
        bodies = BodyContacts(
            body_a=number[:, 0].astype(np.int32),
            body_b=number[:, 1].astype(np.int32),
            point=found.point[others],
            normal=found.frame[others, 2],
            friction=found.friction[others],
            target_velocity=target[others, None] * found.frame[others, 2],
            surface_velocity=found.surface_velocity[others],
            relaxation_time=tau[others],
            stiffness=stiffness[others],
        )
        if turns[others].any():
            bodies.tangent = found.frame[others, 0]
            bodies.rolling_friction = found.turning_friction[others, :2]
            bodies.torsional_friction = found.turning_friction[others, 2]
            bodies.target_angular_velocity = spin[others][turns[others]]
    return contacts, bodies


def _kinematic_twist(layout: Layout, dynamics: Dynamics) -> FloatArray:
    """[bodies, 6] twists of bodies that are not in the problem; 0 of those that are."""
    return np.where((layout.tree_of_body < 0)[:, None], dynamics.twist, 0)


def _frames(n: FloatArray) -> FloatArray:
    """[C, 3, 3] rows t1, t2, n."""
    axis = np.eye(3)[np.argmin(np.abs(n), axis=1)]
    t1 = np.cross(n, axis)
    t1 /= np.linalg.norm(t1, axis=1, keepdims=True)
    return np.stack([t1, np.cross(n, t1), n], axis=1)


def _mobility(trees: Trees) -> list[FloatArray]:
    """For each tree diag(A)^-1."""
    diagonals, entries = [], np.asarray(trees.dynamics_matrix)
    for dofs in np.asarray(trees.dofs).tolist():
        diagonals.append(1 / np.diagonal(entries[: dofs * dofs].reshape(dofs, dofs)))
        entries = entries[dofs * dofs :]
    return diagonals


def _is_guided(
    linear: dict[int, FloatArray],
    angular: dict[int, FloatArray],
    arms: FloatArray,
    mobility: Sequence[FloatArray],
) -> bool:
    """Whether no motion of the trees of a contact changes its normal velocity.

    Args:
        linear: [3, dofs] Jacobian of each tree.
        angular: [3, dofs] likewise.
        arms: [3] coefficients of rolling about t1 and t2 and of torsion, over that of sliding [m].
        mobility: diag(A)^-1 of each tree of the model; free bodies come after these.
    """
    if max(linear) >= len(mobility):
        return False
    along = np.sum([linear[tree] ** 2 @ mobility[tree] for tree in linear], axis=0)
    about = np.sum([angular[tree] ** 2 @ mobility[tree] for tree in angular], axis=0)
    slip = along[:2].sum() + arms**2 @ about
    return bool(along[2] <= _GUIDED**2 * slip)


def _add_jacobian(
    layout: Layout,
    dynamics: Dynamics,
    mobility: Sequence[FloatArray],
    found: ContactSet,
    i: int,
) -> None:
    frame = found.frame[i]
    linear: dict[int, FloatArray] = {}
    angular: dict[int, FloatArray] = {}
    for body, sign in zip(found.body[i], (1.0, -1.0), strict=True):
        tree = int(layout.part_of(body))
        if tree < 0:
            continue
        x, y, z = found.point[i] - dynamics.center[body]
        # Velocity of the point per twist of the center of mass.
        arm = np.array([[0, z, -y], [-z, 0, x], [y, -x, 0]])
        S = sign * frame @ np.hstack([np.eye(3), arm])
        S_angular = sign * frame @ np.hstack([np.zeros((3, 3)), np.eye(3)])
        if tree < len(layout.trees):
            own = layout.trees[tree]
            n = own.dofs.stop - own.dofs.start
            J = dynamics.jacobian[own.articulation, layout.link_of_body[body], :, :n]
            S, S_angular = S @ J, S_angular @ J
        linear[tree] = linear[tree] + S if tree in linear else S
        angular[tree] = angular[tree] + S_angular if tree in angular else S_angular
    trees = [*linear, WORLD]
    found._trees.append((trees[0], trees[1]))
    found._jacobian.append(np.concatenate([block.ravel() for block in linear.values()]))
    if found.resists_turning[i]:
        found._angular_jacobian.append(
            np.concatenate([block.ravel() for block in angular.values()])
        )
    mu = found.friction[i]
    found._guided.append(
        mu > 0 and _is_guided(linear, angular, found.turning_friction[i] / mu, mobility)
    )
