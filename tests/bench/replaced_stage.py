"""This solver in place of MuJoCo's constraint stage, as `sap-islands run` calls it."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import mujoco
from sap_islands.binaries import find_c_library
from sap_islands.mujoco.native_calls import load_native_calls

ALWAYS = 8  # SAP_MUJOCO_ALWAYS


@functools.cache
def load_library() -> Any:
    library = ctypes.CDLL(find_c_library())
    arguments = [*[ctypes.c_void_p] * 3, ctypes.c_int32]
    library.sap_mujoco_solve_constraints.restype = ctypes.c_int64
    library.sap_mujoco_solve_constraints.argtypes = [*arguments, ctypes.c_void_p]
    library.sap_mujoco_count_work.argtypes = [*arguments, ctypes.c_void_p]
    return library


def stage_of(model: mujoco.MjModel, data: mujoco.MjData) -> Callable[[], None]:
    """What does the work of mj_fwdConstraint on a state, whatever would be faster.

    It raises RuntimeError where an island is not solved.
    """
    *state, flags = load_native_calls().state(model, data, False)
    solve = load_library().sap_mujoco_solve_constraints

    def run() -> None:
        if solve(*state, flags | ALWAYS, None) < 0:
            raise RuntimeError("the constraints were not solved")

    return run
