"""What of a Drake model the service has no constraint for: refused by name, or ignored by name."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np
from pydrake.multibody.plant import DiscreteContactApproximation, MultibodyPlant
from pydrake.systems.framework import Context

from sap_islands.errors import InvalidArgument

_LISTED = 3  # names in a message


def check_supported(plant: MultibodyPlant, context: Context, ignore: Collection[str]) -> None:
    """Refuses a model with what is not supported and not ignored.

    Raises:
        InvalidArgument: Names what it is and where, or the entry of `ignore` that is no such name.
    """
    if plant.time_step() <= 0:
        raise InvalidArgument("the plant is continuous; it needs a time step", "plant")
    for name in ignore:
        if name not in UNSUPPORTED and name != JOINT_LIMITS:
            known = ", ".join(repr(known) for known in (*UNSUPPORTED, JOINT_LIMITS))
            raise InvalidArgument(f"{name!r} is nothing to ignore; known are {known}", "ignore")
    for name, find in UNSUPPORTED.items():
        found = [] if name in ignore else find(plant, context)
        if found:
            listed = ", ".join(found[:_LISTED]) + (", ..." if len(found) > _LISTED else "")
            message = (
                f"the plant has {name} ({listed}), which the service has no constraint for; "
                f"to leave them out, pass ignore=({name!r},)"
            )
            raise InvalidArgument(message, "plant")


def _constraints(plant: MultibodyPlant, _: Context) -> list[str]:
    return [f"{plant.num_constraints()} of them"] if plant.num_constraints() else []


def _locked_joints(plant: MultibodyPlant, context: Context) -> list[str]:
    joints = [plant.get_joint(index) for index in plant.GetJointIndices()]
    return [
        f"joint {joint.name()!r}"
        for joint in joints
        if joint.num_velocities() > 0 and joint.is_locked(context)
    ]


def _effort_limits(plant: MultibodyPlant, _: Context) -> list[str]:
    actuators = [plant.get_joint_actuator(index) for index in plant.GetJointActuatorIndices()]
    return [
        f"actuator {actuator.name()!r}"
        for actuator in actuators
        if actuator.has_controller() and np.isfinite(actuator.effort_limit())
    ]


def _other_approximations(plant: MultibodyPlant, _: Context) -> list[str]:
    approximation = plant.get_discrete_contact_approximation()
    return [] if approximation == DiscreteContactApproximation.kSap else [approximation.name]


def _deformable_bodies(plant: MultibodyPlant, _: Context) -> list[str]:
    count = plant.deformable_model().num_bodies()
    return [f"{count} of them"] if count else []


JOINT_LIMITS = "joint limits"  # supported, but may be left out

# Name, and what finds it in a model.
UNSUPPORTED: dict[str, Callable[[MultibodyPlant, Context], list[str]]] = {
    "constraints": _constraints,
    "locked joints": _locked_joints,
    "effort limits of PD controllers": _effort_limits,
    "a contact approximation other than sap": _other_approximations,
    "deformable bodies": _deformable_bodies,
}
