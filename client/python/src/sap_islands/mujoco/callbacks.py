"""Python functions that the program has set for MuJoCo to call within a step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import mujoco

# mjcb_control, mjcb_passive, ..., and the function that takes warnings.
_NAMES = tuple(
    name.removeprefix("set_")
    for name in dir(mujoco)
    if name.startswith("set_mjcb_") or name == "set_mju_user_warning"
)


def has_callbacks() -> bool:
    """Whether any is set."""
    return any(getattr(mujoco, f"get_{name}")() is not None for name in _NAMES)


@contextmanager
def without_callbacks() -> Iterator[None]:
    """Takes the callbacks of the process off, for a model that is not the program's.

    They would be called for it too: MuJoCo's compiler steps what it compiles.
    """
    found = {name: getattr(mujoco, f"get_{name}")() for name in _NAMES}
    taken = {name: function for name, function in found.items() if function is not None}
    for name in taken:
        getattr(mujoco, f"set_{name}")(None)
    try:
        yield
    finally:
        for name, function in taken.items():
            getattr(mujoco, f"set_{name}")(function)


def call_native(function: Callable[..., int], *arguments: Any) -> int:
    """Calls a function of the C library that may call these functions on this thread.

    Their exceptions end the call as an error of MuJoCo's and are raised as they are, where ctypes
    raises a SystemError about them.
    """
    try:
        return function(*arguments)
    except SystemError as error:
        raised = error.__cause__
        if raised is None:
            raise
    raise raised
