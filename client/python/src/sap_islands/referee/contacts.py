"""Contacts of a recorded state: the recorded ones, and MuJoCo's of pairs that are not recorded.

A simulator that has lost pairs is thus wrong, and one whose collision detection finds other points
is not. `client/mujoco/recorded_contacts.h` does the same for whole runs.
"""

from __future__ import annotations

import ctypes
from typing import Any, TypeAlias

import mujoco
import numpy as np
from numpy.typing import NDArray

from sap_islands.errors import InvalidArgument
from sap_islands.mujoco.fields import contact_type
from sap_islands.referee.runs import Array

# Contacts as mjContact, with its names.
Contacts: TypeAlias = NDArray[Any]

_MIN_FRICTION = 1e-5  # mjMINMU
_EXCLUDED = 1  # `exclude` of a contact without constraint
# Pairs that overlap by less than this part of the mean size of bodies may differ by rounding.
_TOUCHING = 1e-4


def make_contacts(recorded: dict[str, Array]) -> Contacts:
    """Recorded contacts in the memory of mjContact; without `efc_address`, which MuJoCo makes."""
    contacts: Contacts = np.zeros(len(recorded["dist"]), contact_type())
    for name, values in recorded.items():
        if name != "efc_address":
            contacts[name] = values.reshape(contacts[name].shape)
    for name in ("flex", "elem", "vert", "efc_address"):
        contacts[name] = -1
    has_tangents = contacts["dim"] > 1
    friction = contacts["friction"]
    friction[has_tangents] = np.maximum(friction[has_tangents], _MIN_FRICTION)
    acts = contacts["dist"] < contacts["includemargin"]
    if "efc_address" in recorded:  # speculative contacts have rows before geoms touch
        acts |= (recorded["efc_address"] >= 0).any(1)
    contacts["exclude"] = np.where(acts, 0, _EXCLUDED)
    return contacts


def contacts_of(data: mujoco.MjData) -> Contacts:
    """The contacts in MjData, as a view; valid until their number changes."""
    kind = contact_type()
    if not data.ncon:
        return np.empty(0, kind)
    assert kind.fields is not None
    begin = data.contact.dist.ctypes.data - kind.fields["dist"][1]
    memory = (ctypes.c_char * (data.ncon * kind.itemsize)).from_address(begin)
    return np.frombuffer(memory, kind)


def merge_contacts(model: mujoco.MjModel, data: mujoco.MjData, recorded: Contacts) -> Contacts:
    """The recorded contacts, then those that MuJoCo found of pairs that are not recorded."""
    lost = lost_contacts(model, data, recorded["geom"])
    return np.concatenate((recorded, contacts_of(data)[lost]))


def lost_contacts(model: mujoco.MjModel, data: mujoco.MjData, recorded: Array) -> NDArray[np.int64]:
    """Contacts in `data.contact` of geoms that overlap and are not among the recorded pairs."""
    found = contacts_of(data)
    overlap = found["includemargin"] - found["dist"]
    overlaps = (overlap > touching(model)) & (found["exclude"] == 0)
    missing = ~np.isin(pair_keys(model, found["geom"]), pair_keys(model, recorded))
    return np.flatnonzero(overlaps & missing)


def touching(model: mujoco.MjModel) -> float:
    """The overlap of a pair from which a simulator must have a contact [m]."""
    return float(_TOUCHING * model.stat.meansize)


def pair_keys(model: mujoco.MjModel, geom: Array) -> NDArray[np.int64]:
    """A number for each pair of geoms, whatever their order."""
    pair = np.sort(geom.astype(np.int64), axis=1)
    keys: NDArray[np.int64] = pair[:, 0] * model.ngeom + pair[:, 1]
    return keys


def put_contacts(model: mujoco.MjModel, data: mujoco.MjData, contacts: Contacts) -> None:
    """Replaces the contacts in MjData; their constraints are still to be made.

    Raises:
        InvalidArgument: The model's memory does not hold them.
    """
    data.ncon = 0
    empty = mujoco.MjContact()
    for _ in range(len(contacts)):
        if mujoco.mj_addContact(model, data, empty):
            raise InvalidArgument("the model's memory does not hold the recorded contacts", "model")
    contacts_of(data)[:] = contacts
