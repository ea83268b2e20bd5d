"""A few lines about a problem, in SI units, that show mistakes of units to the eye."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sap_islands._arrays.bodies import RigidBodies, Trees
from sap_islands._arrays.constraint_rows import ConstraintRows
from sap_islands._arrays.contacts import BodyContacts, Contacts
from sap_islands.arrays import FloatArray, UIntArray


def describe(
    time_step: float,
    trees: Trees,
    bodies: RigidBodies,
    contacts: Contacts,
    body_contacts: BodyContacts,
    rows: ConstraintRows,
) -> str:
    """The lines, without a newline at the end; see `Problem.describe`."""
    lines = [f"time step: {time_step:.3g} s"]
    lines += _bodies(bodies)
    lines += _trees(trees)
    lines += _motion(time_step, trees, bodies)
    lines += _contacts("contacts", contacts)
    lines += _contacts("body contacts", body_contacts)
    if rows.count:
        lines.append(f"constraint rows: {rows.count}")
    return "\n".join(lines)


def _bodies(bodies: RigidBodies) -> Iterator[str]:
    if not bodies.count:
        return
    mass = np.broadcast_to(bodies.mass, bodies.count)
    trace = np.broadcast_to(bodies.inertia, (bodies.count, 6))[:, :3].sum(axis=1)
    yield (
        f"bodies: {bodies.count} of {_range(mass)} kg, together {mass.sum():.3g} kg, "
        f"largest to smallest {mass.max() / mass.min():.3g}"
    )
    # A solid ball of radius r has sqrt(0.4) r.
    yield f"radius of gyration: {_range(np.sqrt(trace / (3 * mass)))} m"


def _trees(trees: Trees) -> Iterator[str]:
    if not trees.count:
        return
    diagonal = np.concatenate([np.diag(block) for block in trees.blocks()])
    yield (
        f"trees: {trees.count} with {_range(trees.dofs)} degrees of freedom, "
        f"diagonal of A {_range(diagonal)} kg or kg m^2"
    )


def _motion(time_step: float, trees: Trees, bodies: RigidBodies) -> Iterator[str]:
    """Speeds of free motion, and what forces alone change where the problem has both ends."""
    for name, group in (("trees", trees), ("bodies", bodies)):
        if not group.count:
            continue
        v = np.atleast_1d(group.free_motion_velocity)
        largest = np.abs(v).max()
        line = (
            f"v* of {name}: up to {largest:.3g} m/s or rad/s, {largest * time_step:.3g} in a step"
        )
        if group.initial_velocity.size:
            acceleration = np.abs(v - group.initial_velocity).max() / time_step
            line += f", from forces of up to {acceleration:.3g} m/s^2 or rad/s^2"
        yield line


def _contacts(name: str, contacts: Contacts | BodyContacts) -> Iterator[str]:
    if not contacts.count:
        return
    line = f"{name}: {contacts.count}"
    if contacts.signed_distance.size:
        distance = np.broadcast_to(contacts.signed_distance, contacts.count)
        overlap, gap = -distance[distance < 0], distance[distance > 0]
        if overlap.size:
            line += f", {overlap.size} overlap by up to {overlap.max():.3g} m"
        if gap.size:
            line += f", {gap.size} apart by up to {gap.max():.3g} m"
    line += f", friction {_range(contacts.friction)}"
    if contacts.stiffness.size:
        line += f", stiffness {_range(contacts.stiffness)} N/m"
    yield line


def _range(numbers: FloatArray | UIntArray) -> str:
    if not numbers.size:
        return "none"
    least, most = f"{numbers.min():.3g}", f"{numbers.max():.3g}"
    return least if least == most else f"{least} to {most}"
