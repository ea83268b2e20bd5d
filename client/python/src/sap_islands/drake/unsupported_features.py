"""Features of a Drake model that the service cannot represent, and how to find them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from pydrake.multibody.plant import DiscreteContactApproximation, MultibodyPlant
from pydrake.multibody.tree import Joint
from pydrake.systems.framework import Context

from sap_islands.drake.layout import Layout
from sap_islands.errors import InvalidArgument
from sap_islands.unsupported_features import refuse_unsupported


def check_supported(
    plant: MultibodyPlant, context: Context, layout: Layout, ignore: Collection[str]
) -> None:
    """Raises if a plant has an unsupported feature that `ignore` does not name.

    After a successful check only locked joints are checked again, until `ignore` changes: a
    finalized plant cannot change the other features.

    Raises:
        InvalidArgument: The message names the feature and the elements with it, or the entry of
            `ignore` that is unknown.
    """
    checked_for = frozenset(ignore)
    if checked_for == layout.checked_for and not _locked(plant, context, layout):
        return
    if plant.time_step() <= 0:
        raise InvalidArgument("the plant is continuous; its time_step must be > 0", "plant")
    unsupported = {
        name: functools.partial(find, plant, context, layout) for name, find in UNSUPPORTED.items()
    }
    refuse_unsupported("plant", unsupported, ignore)
    layout.checked_for = checked_for


def _locked(plant: MultibodyPlant, context: Context, layout: Layout) -> list[Joint]:
    joints = [plant.get_joint(index) for index, _ in layout.joints]
    return [joint for joint in joints if joint.is_locked(context)]


def _constraints(plant: MultibodyPlant, *_: Any) -> list[str]:
    return [f"{plant.num_constraints()} of them"] if plant.num_constraints() else []


def _locked_joints(plant: MultibodyPlant, context: Context, layout: Layout) -> list[str]:
    return [f"joint {joint.name()!r}" for joint in _locked(plant, context, layout)]


def _effort_limits(plant: MultibodyPlant, *_: Any) -> list[str]:
    actuators = [plant.get_joint_actuator(index) for index in plant.GetJointActuatorIndices()]
    return [
        f"actuator {actuator.name()!r}"
        for actuator in actuators
        if actuator.has_controller() and np.isfinite(actuator.effort_limit())
    ]


def _other_approximations(plant: MultibodyPlant, *_: Any) -> list[str]:
    approximation = plant.get_discrete_contact_approximation()
    return [] if approximation == DiscreteContactApproximation.kSap else [approximation.name]


def _deformable_bodies(plant: MultibodyPlant, *_: Any) -> list[str]:
    count = plant.deformable_model().num_bodies()
    return [f"{count} of them"] if count else []


# For each name of a feature, a function that lists the elements of a plant with it.
UNSUPPORTED: dict[str, Callable[[MultibodyPlant, Context, Layout], list[str]]] = {
    "constraints": _constraints,
    "locked joints": _locked_joints,
    "effort limits of PD controllers": _effort_limits,
    "a contact approximation other than sap": _other_approximations,
    "deformable bodies": _deformable_bodies,
}
