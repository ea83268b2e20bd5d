"""Recorded steps of a simulator: arrays of .npz files, checked against a model.

A file holds K states and what the simulator made of them, one row per state:

    qpos [K, nq], qvel [K, nv], next_qvel [K, nv]        before and after the step; required
    ctrl, act, qfrc_applied, xfrc_applied, mocap_pos, mocap_quat, eq_active, userdata, ...
                                                         inputs of the step, shaped as in MjData
    time [K], world [K]                                  time [s]; number of the environment
    contact_state [N]                                    state of each contact, ascending
    contact_dist, contact_pos, ... [N, ...]              the simulator's own contacts
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sap_islands.arrays import FloatArray

Array: TypeAlias = NDArray[Any]


class State(NamedTuple):
    """A recorded step.

    Attributes:
        number: Row in its file.
        world: Its environment.
        time: Time before the step [s]; NaN: not recorded.
        qpos: [nq] positions before the step.
        qvel: [nv] velocities before the step.
        next_qvel: [nv] velocities after it, by the simulator.
        inputs: Recorded inputs by their names in MjData.
        contacts: Arrays of the simulator's contacts by their names in mjContact, and
            "efc_address"; None: not recorded.
    """

    number: int
    world: int
    time: float
    qpos: FloatArray
    qvel: FloatArray
    next_qvel: FloatArray
    inputs: dict[str, Array]
    contacts: dict[str, Array] | None

    def to_arrays(self) -> dict[str, Array]:
        """The arrays of a run of this state alone."""
        arrays: dict[str, Array] = {
            "qpos": self.qpos,
            "qvel": self.qvel,
            "next_qvel": self.next_qvel,
            "world": np.array(self.world),
            **self.inputs,
        }
        if not np.isnan(self.time):
            arrays["time"] = np.array(self.time)
        run = {name: values[None] for name, values in arrays.items()}
        if self.contacts is not None:
            run["contact_state"] = np.zeros(len(self.contacts["dist"]), np.int64)
            run |= {f"contact_{name}": values for name, values in self.contacts.items()}
        return run


class Rows(NamedTuple):
    """Recorded steps as arrays, a row for each.

    Attributes:
        arrays: By the names in a file, without `world`.
        contacts: Arrays of the contacts of all, one state after the other; None: not recorded.
        first_contact: [states + 1] where those of each state begin; None: not recorded.
    """

    arrays: dict[str, Array]
    contacts: dict[str, Array] | None
    first_contact: NDArray[np.int64] | None


class Step(NamedTuple):
    """A state, and those before and after it in its world; None: there is none."""

    state: State
    before: State | None
    after: State | None


@dataclass
class Run:
    """States of a file.

    Attributes:
        name: Of the file; "run" for arrays.
        recorded: K, number of states in the file.
        chosen: States to judge, ascending.
        skipped: States left out for numbers that are not finite or beyond 1e10.
        unused: Names of arrays that mean nothing here.
        assumed: What was not recorded, and what is taken instead.
    """

    name: str
    recorded: int
    chosen: NDArray[np.int64]
    skipped: int
    unused: list[str]
    assumed: dict[str, str]
    world: NDArray[np.int64]  # [K]
    previous: NDArray[np.int64]  # [K] state before each in its world; -1: none
    following: NDArray[np.int64]  # [K] state after each in its world; -1: none
    has_contacts: bool
    _kept: NDArray[np.int64] = field(repr=False)  # states whose rows were kept, ascending
    _rows: dict[str, Array] = field(repr=False)
    _first_contact: NDArray[np.int64] = field(repr=False)  # [kept + 1]
    _contacts: dict[str, Array] = field(repr=False)

    def step(self, number: int) -> Step:
        """A chosen state and its neighbors."""
        before, after = int(self.previous[number]), int(self.following[number])
        return Step(
            self.state(number),
            self.state(before) if before >= 0 else None,
            self.state(after) if after >= 0 else None,
        )

    def state(self, number: int) -> State:
        """A chosen state, or one before or after it in its world."""
        rows = self.rows(np.array([number]))
        arrays = {name: np.array(values[0], float) for name, values in rows.arrays.items()}
        return State(
            number,
            int(self.world[number]),
            float(arrays.pop("time", np.nan)),
            arrays.pop("qpos"),
            arrays.pop("qvel"),
            arrays.pop("next_qvel"),
            arrays,
            rows.contacts,
        )

    def rows(self, numbers: NDArray[np.int64]) -> Rows:
        """Such states."""
        rows = np.searchsorted(self._kept, numbers)
        arrays = {name: values[rows] for name, values in self._rows.items()}
        if not self.has_contacts:
            return Rows(arrays, None, None)
        begin = self._first_contact[rows]
        count = self._first_contact[rows + 1] - begin
        first = np.concatenate(([0], np.cumsum(count)))
        chosen = np.arange(first[-1]) + np.repeat(begin - first[:-1], count)
        contacts = {name: values[chosen] for name, values in self._contacts.items()}
        return Rows(arrays, contacts, first)
