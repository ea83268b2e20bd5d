"""Features of a Drake model that the service cannot represent: refused, unless they are ignored."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection

from pydrake.multibody.plant import DiscreteContactSolver, MultibodyPlant

from sap_islands.errors import InvalidArgument

JOINT_LIMITS = "joint limits"  # supported, but they may be ignored, too
_MAX_LISTED = 3  # names of model elements in an error message

_checked_for: weakref.WeakKeyDictionary[MultibodyPlant, frozenset[str]] = (
    weakref.WeakKeyDictionary()
)


def check_supported(plant: MultibodyPlant, ignore: Collection[str]) -> None:
    """Raises if a plant has an unsupported feature that `ignore` does not name.

    A finalized plant cannot change these features, so after a successful check it is checked again
    only if `ignore` changes.

    Raises:
        InvalidArgument: The message names the feature and the elements with it, or the entry of
            `ignore` that is unknown.
    """
    checked_for = frozenset(ignore)
    if _checked_for.get(plant) == checked_for:
        return
    if plant.time_step() <= 0:
        raise InvalidArgument("the plant is continuous; its time_step must be > 0", "plant")
    for name in ignore:
        if name not in UNSUPPORTED and name != JOINT_LIMITS:
            known = ", ".join(repr(known) for known in (*UNSUPPORTED, JOINT_LIMITS))
            raise InvalidArgument(f"ignore has {name!r}; known names are {known}", "ignore")
    for name, find in UNSUPPORTED.items():
        found = [] if name in ignore else find(plant)
        if found:
            listed = ", ".join(found[:_MAX_LISTED]) + (", ..." if len(found) > _MAX_LISTED else "")
            message = (
                f"the plant has {name} ({listed}), which the service does not support; "
                f"to simulate without, pass ignore=({name!r},)"
            )
            raise InvalidArgument(message, "plant")
    _checked_for[plant] = checked_for


def _deformable_bodies(plant: MultibodyPlant) -> list[str]:
    count = plant.deformable_model().num_bodies()
    return [f"{count} of them"] if count else []


def _other_solvers(plant: MultibodyPlant) -> list[str]:
    solver = plant.get_discrete_contact_solver()
    if solver == DiscreteContactSolver.kSap:
        return []
    return [plant.get_discrete_contact_approximation().name]


# For each name of a feature, a function that lists the elements of a plant with it.
UNSUPPORTED: dict[str, Callable[[MultibodyPlant], list[str]]] = {
    "deformable bodies": _deformable_bodies,
    "the contact approximation tamsi": _other_solvers,
}
