"""Rejects models with features that the service cannot represent, unless the caller ignores them.

An adapter has a table `UNSUPPORTED` of names and search functions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from sap_islands.errors import InvalidArgument

JOINT_LIMITS = "joint limits"  # supported, but they may be ignored, too
_MAX_LISTED = 3  # names of model elements in an error message


def refuse_unsupported(
    kind: str, unsupported: Mapping[str, Callable[[], list[str]]], ignore: Collection[str]
) -> None:
    """Raises if a model has an unsupported feature that is not ignored.

    Args:
        kind: Noun for the model in messages: "model" or "plant".
        unsupported: For each name of a feature, a function that lists the model elements with it.
        ignore: Names of features to ignore.

    Raises:
        InvalidArgument: The message names the feature and the elements with it, or the entry of
            `ignore` that is unknown.
    """
    for name in ignore:
        if name not in unsupported and name != JOINT_LIMITS:
            known = ", ".join(repr(known) for known in (*unsupported, JOINT_LIMITS))
            raise InvalidArgument(f"ignore has {name!r}; known names are {known}", "ignore")
    for name, find in unsupported.items():
        found = [] if name in ignore else find()
        if found:
            listed = ", ".join(found[:_MAX_LISTED]) + (", ..." if len(found) > _MAX_LISTED else "")
            message = (
                f"the {kind} has {name} ({listed}), which the service does not support; "
                f"to simulate without, pass ignore=({name!r},)"
            )
            raise InvalidArgument(message, kind)
