"""What of a model the service has no constraint for: refused by name, or ignored by name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from sap_islands.errors import InvalidArgument

JOINT_LIMITS = "joint limits"  # supported by all adapters, but may be left out
_MAX_LISTED = 3  # names in a message


def refuse_unsupported(
    kind: str, unsupported: Mapping[str, Callable[[], list[str]]], ignore: Collection[str]
) -> None:
    """Refuses a model with what is not supported and not ignored.

    Args:
        kind: What the model is called: "model" or "plant".
        unsupported: Names, and what finds the places in the model.
        ignore: Names that are to be left out.

    Raises:
        InvalidArgument: Names what it is and where, or the entry of `ignore` that is no such name.
    """
    for name in ignore:
        if name not in unsupported and name != JOINT_LIMITS:
            known = ", ".join(repr(known) for known in (*unsupported, JOINT_LIMITS))
            raise InvalidArgument(f"{name!r} is nothing to ignore; known are {known}", "ignore")
    for name, find in unsupported.items():
        found = [] if name in ignore else find()
        if found:
            listed = ", ".join(found[:_MAX_LISTED]) + (", ..." if len(found) > _MAX_LISTED else "")
            message = (
                f"the {kind} has {name} ({listed}), which the service has no constraint for; "
                f"to leave them out, pass ignore=({name!r},)"
            )
            raise InvalidArgument(message, kind)
