"""Judges recorded steps on threads of the C library; see `client/mujoco/python_calls.h`."""

from __future__ import annotations

import ctypes
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from sap_islands._library.c_library import load
from sap_islands._library.declarations import struct_type
from sap_islands.binaries import find_c_library
from sap_islands.errors import SapError, error_of_code
from sap_islands.mujoco.callbacks import call_native, has_callbacks
from sap_islands.mujoco.native_steps import load_native_steps
from sap_islands.referee.contacts import make_contacts, touching
from sap_islands.referee.exact_steps import ExactSteps
from sap_islands.referee.judging import JUDGMENTS
from sap_islands.referee.runs import Rows

_POINTER = ctypes.c_void_p
_ALL = int(mujoco.mjtState.mjSTATE_INTEGRATION)
_ARRAYS = {"plugin": "plugin_state"}


class Refused(Exception):
    """A step has no exact one.

    Attributes:
        row: Of the rows that were judged.
        error: Why.
    """

    def __init__(self, row: int, error: SapError) -> None:
        super().__init__(str(error))
        self.row, self.error = row, error


class NativeJudge:
    """Judges steps of one model."""

    def __init__(self, steps: ExactSteps, threads: int) -> None:
        """Makes memory for each thread."""
        self._steps = steps
        self._data = [steps.new_data() for _ in range(threads)]
        model = steps.model
        self._initial = np.empty(mujoco.mj_stateSize(model, _ALL))
        mujoco.mj_getState(model, self._data[0], self._initial, _ALL)
        self._columns = _columns(model)
        self._judge = load(find_c_library()).sap_mujoco_judge
        self._judge.argtypes = (
            _POINTER,
            _POINTER,
            _POINTER,
            ctypes.c_int32,
            ctypes.POINTER(struct_type("sap_mujoco_recording")),
            _POINTER,
            ctypes.POINTER(struct_type("sap_mujoco_refusal")),
        )

    def judge(self, rows: Rows) -> NDArray[Any]:
        """The judgments of steps, of the type `JUDGMENTS`.

        Raises:
            Refused: One has no exact step; the first of them.
        """
        count = len(rows.arrays["qpos"])
        state = np.tile(self._initial, (count, 1))
        for name, values in rows.arrays.items():
            if name in self._columns:
                state[:, self._columns[name]] = values.reshape(count, -1)
        next_qvel = np.array(rows.arrays["next_qvel"], np.float64, order="C")
        recording = struct_type("sap_mujoco_recording")(
            states=count,
            state=state.ctypes.data,
            state_size=state.shape[1],
            state_kind=_ALL,
            sleeps=self._steps.sleeps,
            slow=self._steps.slow,
            next_qvel=next_qvel.ctypes.data,
            touching=touching(self._steps.model),
        )
        if rows.contacts is not None and rows.first_contact is not None:
            contacts = make_contacts(rows.contacts)
            recording.contacts = contacts.ctypes.data
            recording.first_contact = rows.first_contact.ctypes.data
        judgments, refusal = np.empty(count, JUDGMENTS), struct_type("sap_mujoco_refusal")()
        data = (_POINTER * len(self._data))(*(each._address for each in self._data))
        # The exception of a callback is lost on threads of the C library.
        threads = 1 if has_callbacks() else len(self._data)
        code = call_native(
            self._judge,
            load_native_steps().solver,
            self._steps.model._address,
            data,
            threads,
            recording,
            judgments.ctypes.data,
            refusal,
        )
        if code:
            message = refusal.message.decode(errors="replace")
            raise Refused(refusal.state, error_of_code(code, message))
        return judgments


def _columns(model: mujoco.MjModel) -> dict[str, slice]:
    """Where the arrays of MjData are in a state, by their names."""
    columns, begin = {}, 0
    for kind, bit in sorted(mujoco.mjtState.__members__.items(), key=lambda item: item[1].value):
        flag = int(bit)
        if flag & _ALL and flag.bit_count() == 1 and kind.startswith("mjSTATE_"):
            name = kind.removeprefix("mjSTATE_").lower()
            size = mujoco.mj_stateSize(model, flag)
            columns[_ARRAYS.get(name, name)] = slice(begin, begin + size)
            begin += size
    return columns
