"""Features of a Drake model that the service cannot represent: refused, unless they are ignored.

Versions, contact approximations and input ports of Drake that are known are listed here. What a
later Drake adds to the discrete update is in none of the lists, so it is refused, too.
"""

from __future__ import annotations

import importlib.metadata
import math
import re
import weakref
from collections.abc import Callable, Collection
from typing import NamedTuple

from pydrake.multibody.plant import MultibodyPlant
from pydrake.systems.framework import Context, InputPort

from sap_islands.errors import InvalidArgument

JOINT_LIMITS = "joint limits"  # supported, but they may be ignored, too
_MAX_LISTED = 3  # names of model elements in an error message

# The versions of Drake that are tested, and those between them; pyproject.toml has the same bounds.
_OLDEST, _NEWEST = (1, 51), (1, 58)
_APPROXIMATIONS = ("kSap", "kSimilar", "kLagged")
_INPUT_PORTS = re.compile(
    "geometry_query|applied_generalized_force|applied_spatial_force|surface_speeds"
    "|(.*_)?actuation|.*_desired_state"
)


class _Checked(NamedTuple):
    ignore: frozenset[str]
    unknown_ports: list[InputPort]


_checked: weakref.WeakKeyDictionary[MultibodyPlant, _Checked] = weakref.WeakKeyDictionary()


def check_supported(plant: MultibodyPlant, context: Context, ignore: Collection[str]) -> None:
    """Raises if a plant has an unsupported feature that `ignore` does not name.

    A finalized plant cannot change these features, so after a successful check it is checked again
    only if `ignore` changes. Whether its input ports have values is asked every time.

    Raises:
        InvalidArgument: The message names the feature and the elements with it, or the entry of
            `ignore` that is unknown.
    """
    checked = _checked.get(plant)
    if checked is None or checked.ignore != frozenset(ignore):
        checked = _Checked(frozenset(ignore), _check_features(plant, ignore))
        _checked[plant] = checked
    for port in checked.unknown_ports:
        if port.HasValue(context):
            raise InvalidArgument(
                f"the plant has a value at its input port {port.get_name()}, which this package "
                "does not know; disconnect it",
                "plant",
            )


def _check_features(plant: MultibodyPlant, ignore: Collection[str]) -> list[InputPort]:
    """The input ports that are not known."""
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
    ports = [plant.get_input_port(index) for index in range(plant.num_input_ports())]
    return [port for port in ports if not _INPUT_PORTS.fullmatch(port.get_name())]


def _deformable_bodies(plant: MultibodyPlant) -> list[str]:
    count = plant.deformable_model().num_bodies()
    return [f"{count} of them"] if count else []


def _other_approximations(plant: MultibodyPlant) -> list[str]:
    name = plant.get_discrete_contact_approximation().name
    return [] if name in _APPROXIMATIONS else [name]


def _limits_of_several_dofs(plant: MultibodyPlant) -> list[str]:
    """Joints whose limits Drake itself refuses, at the first step."""
    joints = [plant.get_joint(index) for index in plant.GetJointIndices()]
    return [
        joint.name()
        for joint in joints
        if max(joint.num_velocities(), joint.num_positions()) > 1
        and any(
            map(math.isfinite, (*joint.position_lower_limits(), *joint.position_upper_limits()))
        )
    ]


def _loops(plant: MultibodyPlant) -> list[str]:
    """Loops that `Finalize` has closed, in versions of Drake that can."""
    count = getattr(plant, "num_loop_constraints", lambda: 0)()
    return [f"{count} of them"] if count else []


def _untested_version(_: MultibodyPlant) -> list[str]:
    try:
        version = importlib.metadata.version("drake")
    except importlib.metadata.PackageNotFoundError:
        return ["unknown"]
    numbers = re.match(r"(\d+)\.(\d+)", version)
    known = numbers is not None and _OLDEST <= tuple(map(int, numbers.groups())) <= _NEWEST
    return [] if known else [version]


# For each name of a feature, a function that lists the elements of a plant with it.
UNSUPPORTED: dict[str, Callable[[MultibodyPlant], list[str]]] = {
    "deformable bodies": _deformable_bodies,
    "another contact approximation than sap, similar and lagged": _other_approximations,
    "limits of joints with several degrees of freedom": _limits_of_several_dofs,
    "closed loops of joints": _loops,
    "an untested version of Drake": _untested_version,
}
