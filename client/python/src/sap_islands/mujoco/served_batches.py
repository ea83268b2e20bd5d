"""Batches of `mujoco.batch` in unchanged programs, whose steps may go to servers.

`startup/sitecustomize.py` puts it in place of `mujoco._batch.Batch`, whose rows of states, of
`mjSTATE_INTEGRATION`, are all that a simulation has between two calls.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from sap_islands._library.native_client import NativeClient
from sap_islands.arrays import FloatArray
from sap_islands.mujoco.served_rollouts import Work, of_process
from sap_islands.mujoco.server_rollouts import advance_rows

_STATES = mujoco.mjtState
# Fields of mjData in the rows, by their component.
_FIELDS = {
    "time": "TIME",
    "qpos": "QPOS",
    "qvel": "QVEL",
    "act": "ACT",
    "qacc_warmstart": "WARMSTART",
    "ctrl": "CTRL",
    "qfrc_applied": "QFRC_APPLIED",
    "xfrc_applied": "XFRC_APPLIED",
    "eq_active": "EQ_ACTIVE",
    "mocap_pos": "MOCAP_POS",
    "mocap_quat": "MOCAP_QUAT",
    "userdata": "USERDATA",
}
_SENSORS = "sensordata"


class ServedBatch:
    """A batch with the functions of MuJoCo's own, to which all that is not here goes."""

    def __init__(
        self, own: Any, model: mujoco.MjModel, nsim: int, nthread: int = 0, persistent: bool = False
    ) -> None:
        self._own = own(model, nsim, nthread, persistent)
        self._model = copy.copy(model)
        self._rows: FloatArray = self._own.state()
        self._status: NDArray[np.int32] = self._own.status()
        self._has_own_models = False
        self._outputs: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def output(self, name: str) -> Any:
        """Binds a derived field."""
        found = self._own.output(name)
        if found is not None:
            self._outputs[name] = found
        return found

    def expand(self, name: str) -> Any:
        """Gives a field of the model values of its own in each simulation."""
        self._has_own_models = True
        return self._own.expand(name)

    def set_const(self, ids: Any) -> Any:
        """Computes constants of the models again."""
        self._has_own_models = True
        return self._own.set_const(ids)

    def set_models(self, models: Any) -> Any:
        """Sets models of the caller."""
        self._has_own_models = True
        return self._own.set_models(models)

    def step(self, ids: Any = None, nstep: int = 1, stage: int = 0) -> int:
        """Steps simulations; returns how many have failed."""
        chosen = self._chosen(ids)

        def reason() -> str:
            return "stages after a step" if stage else self._reason(chosen)

        taken = of_process().take(
            self._work(chosen, nstep),
            reason,
            functools.partial(self._step_at, chosen=chosen, nstep=nstep),
            lambda: self._own.step(ids, nstep, stage),
        )
        return 0 if taken is None else int(taken)

    def rollout(
        self, ids: Any, nstep: int, control: Any, control_spec: int, records: Sequence[Any]
    ) -> int:
        """Steps simulations and records each step; returns how many have failed."""
        chosen = self._chosen(ids)

        def reason() -> str:
            if not all(self._is_known(name, spec) for name, spec, _ in records):
                return "records of derived fields"
            return self._reason(chosen)

        taken = of_process().take(
            self._work(chosen, nstep),
            reason,
            lambda client: self._roll_out_at(
                client, chosen, nstep, control, int(control_spec), records
            ),
            lambda: self._own.rollout(ids, nstep, control, control_spec, records),
        )
        return 0 if taken is None else int(taken)

    def _chosen(self, ids: Any) -> NDArray[Any]:
        return np.arange(self._own.nsim) if ids is None else np.asarray(ids)

    def _work(self, chosen: NDArray[Any], nstep: int) -> Work:
        return Work([self._model] * len(chosen), len(chosen) * nstep, self._own.nthread)

    def _reason(self, chosen: NDArray[Any]) -> str:
        """Why servers do not take a call."""
        if self._own.persistent:
            return "a persistent batch"
        if self._has_own_models:
            return "models of the simulations"
        if any(name != _SENSORS for name in self._outputs):
            return "derived fields that are bound"
        return "a simulation with an error before" if self._status[chosen].any() else ""

    def _step_at(self, client: NativeClient, chosen: NDArray[Any], nstep: int) -> bool:
        sensors = np.empty((len(chosen), 1, self._model.nsensordata))
        final = advance_rows(
            client,
            self._model,
            self._rows[chosen],
            nstep,
            control=None,
            control_spec=0,
            rows=None,
            sensors=sensors if _SENSORS in self._outputs else None,
        )
        return self._store(chosen, final, sensors[:, 0])

    def _roll_out_at(
        self,
        client: NativeClient,
        chosen: NDArray[Any],
        nstep: int,
        control: Any,
        control_spec: int,
        records: Sequence[Any],
    ) -> bool:
        sensors = np.empty((len(chosen), nstep, self._model.nsensordata))
        needs = _SENSORS in self._outputs or any(name == _SENSORS for name, _, _ in records)
        rows = np.empty((len(chosen), nstep, self._rows.shape[1]))
        final = advance_rows(
            client,
            self._model,
            self._rows[chosen],
            nstep,
            control=control,
            control_spec=control_spec,
            rows=rows,
            sensors=sensors if needs else None,
        )
        if final is None:
            return False
        for name, spec, buffer in records:
            found = sensors if name == _SENSORS else rows[..., self._places(name, spec)]
            buffer[...] = found.reshape(buffer.shape)
        return self._store(chosen, final, sensors[:, -1])

    def _store(self, chosen: NDArray[Any], final: FloatArray | None, sensors: FloatArray) -> bool:
        """Writes the results of a call, if there are any, as its last act: errors repeat it."""
        if final is None:
            return False
        bound = self._outputs.get(_SENSORS)
        if bound is not None:
            bound.view(np.float64).reshape(len(bound), -1)[chosen] = sensors
        self._rows[chosen] = final
        return True

    def _is_known(self, name: str | None, spec: int) -> bool:
        """Whether a record is of the rows, or of the sensors."""
        if name is not None:
            return name == _SENSORS or name in _FIELDS
        return not spec & ~int(_STATES.mjSTATE_INTEGRATION)

    def _places(self, name: str | None, spec: int) -> NDArray[np.int64]:
        """Where the numbers of a field or of a mjtState are in a row."""
        bits = [int(getattr(_STATES, f"mjSTATE_{_FIELDS[name]}"))] if name is not None else []
        if name is None:
            bits = [1 << i for i in range(int(spec).bit_length()) if spec >> i & 1]
        parts = [self._own.state_component(bit) for bit in bits]
        places = [np.arange(offset, offset + size) for offset, size in parts]
        return np.concatenate([*places, np.empty(0, np.int64)]).astype(np.int64)
