"""Features of a Drake model that the service cannot represent, and how to find them."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Collection

from pydrake.multibody.plant import DiscreteContactSolver, MultibodyPlant

from sap_islands.errors import InvalidArgument
from sap_islands.unsupported_features import refuse_unsupported

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
    unsupported = {name: functools.partial(find, plant) for name, find in UNSUPPORTED.items()}
    refuse_unsupported("plant", unsupported, ignore)
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
