"""Features of a MuJoCo model that the service cannot represent, and how to find them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from sap_islands.unsupported_features import refuse_unsupported

_WATCHED = (
    "dof_frictionloss",
    "tendon_frictionloss",
    "tendon_limited",
    "geom_condim",
    "geom_contype",
    "geom_conaffinity",
    "pair_dim",
    "pair_friction",
    "actuator_trntype",
)


def check_supported(model: mujoco.MjModel, data: mujoco.MjData, ignore: Collection[str]) -> None:
    """Raises if a model has an unsupported feature that `ignore` does not name.

    Raises:
        InvalidArgument: The message names the feature and the model elements with it, or the entry
            of `ignore` that is unknown.
    """
    unsupported = {name: functools.partial(find, model, data) for name, find in UNSUPPORTED.items()}
    refuse_unsupported("model", unsupported, ignore)


def watched_arrays(model: mujoco.MjModel) -> list[NDArray[Any]]:
    """Arrays of a model whose change between steps may make it unsupported."""
    names = [*_WATCHED]
    if hasattr(model, "geom_surfacevel"):
        names.append("geom_surfacevel")
    return [getattr(model, name) for name in names]


def _is_disabled(model: mujoco.MjModel, flag: mujoco.mjtDisableBit) -> bool:
    return bool(model.opt.disableflags & int(flag))


def _named(model: mujoco.MjModel, kind: mujoco.mjtObj, which: NDArray[np.bool_]) -> list[str]:
    """Kind and name, or number, of the objects for which `which` is True."""
    label = kind.name.removeprefix("mjOBJ_").lower()
    return [
        f"{label} {mujoco.mj_id2name(model, kind, int(i)) or int(i)!r}"
        for i in np.flatnonzero(which)
    ]


def _equalities(model: mujoco.MjModel, data: mujoco.MjData) -> list[str]:
    if _is_disabled(model, mujoco.mjtDisableBit.mjDSBL_EQUALITY):
        return []
    return _named(model, mujoco.mjtObj.mjOBJ_EQUALITY, data.eq_active.astype(bool))


def _tendon_limits(model: mujoco.MjModel, _: mujoco.MjData) -> list[str]:
    if _is_disabled(model, mujoco.mjtDisableBit.mjDSBL_LIMIT):
        return []
    return _named(model, mujoco.mjtObj.mjOBJ_TENDON, model.tendon_limited.astype(bool))


def _friction_loss(model: mujoco.MjModel, _: mujoco.MjData) -> list[str]:
    if _is_disabled(model, mujoco.mjtDisableBit.mjDSBL_FRICTIONLOSS):
        return []
    joints = np.zeros(model.njnt, bool)
    joints[model.dof_jntid[model.dof_frictionloss > 0]] = True
    tendons = model.tendon_frictionloss > 0
    return _named(model, mujoco.mjtObj.mjOBJ_JOINT, joints) + _named(
        model, mujoco.mjtObj.mjOBJ_TENDON, tendons
    )


def _geoms_with(model: mujoco.MjModel, condim: tuple[int, ...]) -> list[str]:
    collides = (model.geom_contype | model.geom_conaffinity).astype(bool)
    geoms = collides & np.isin(model.geom_condim, condim)
    pairs = np.isin(model.pair_dim, condim)
    return _named(model, mujoco.mjtObj.mjOBJ_GEOM, geoms) + _named(
        model, mujoco.mjtObj.mjOBJ_PAIR, pairs
    )


def _torsional_friction(model: mujoco.MjModel, _: mujoco.MjData) -> list[str]:
    return _geoms_with(model, (4, 6))


def _rolling_friction(model: mujoco.MjModel, _: mujoco.MjData) -> list[str]:
    return _geoms_with(model, (6,))


def _anisotropic_friction(model: mujoco.MjModel, _: mujoco.MjData) -> list[str]:
    differs = model.pair_friction[:, 0] != model.pair_friction[:, 1]
    return _named(model, mujoco.mjtObj.mjOBJ_PAIR, differs & (model.pair_dim >= 3))


def _adhesion_actuators(model: mujoco.MjModel, _: mujoco.MjData) -> list[str]:
    adhesion = model.actuator_trntype == int(mujoco.mjtTrn.mjTRN_BODY)
    return _named(model, mujoco.mjtObj.mjOBJ_ACTUATOR, adhesion)


def _flexes(model: mujoco.MjModel, _: mujoco.MjData) -> list[str]:
    return _named(model, mujoco.mjtObj.mjOBJ_FLEX, np.ones(model.nflex, bool))


def _surface_velocities(model: mujoco.MjModel, _: mujoco.MjData) -> list[str]:
    # Some versions of MuJoCo have them in the model, but not in the Python binding of contacts.
    if not getattr(model, "flg_surfacevel", False) or hasattr(mujoco.MjContact, "surfacevel"):
        return []
    moving = np.any(model.geom_surfacevel.reshape(model.ngeom, -1) != 0, axis=1)
    return _named(model, mujoco.mjtObj.mjOBJ_GEOM, moving)


# For each name of a feature, a function that lists the elements of a model with it.
UNSUPPORTED: dict[str, Callable[[mujoco.MjModel, mujoco.MjData], list[str]]] = {
    "equality constraints": _equalities,
    "tendon limits": _tendon_limits,
    "friction loss": _friction_loss,
    "torsional friction": _torsional_friction,
    "rolling friction": _rolling_friction,
    "anisotropic friction": _anisotropic_friction,
    "adhesion actuators": _adhesion_actuators,
    "flexes": _flexes,
    "surface velocities": _surface_velocities,
}
