"""Rollouts at servers: models once, then states and controls out and trajectories back."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from sap_islands._library.c_worlds import WorldModel, advance_worlds
from sap_islands._library.declarations import new
from sap_islands._library.native_client import NativeClient
from sap_islands.arrays import FloatArray
from sap_islands.errors import InvalidArgument, SapError, StatusCode, error_of_code
from sap_islands.mujoco.callbacks import has_callbacks
from sap_islands.mujoco.native_steps import (
    CERTIFICATE,
    Advanced,
    StepLaw,
    Trajectories,
    check_model,
    report_counts,
)
from sap_islands.options import Options
from sap_islands.unsolved_policy import OnUnsolved, Unsolved

_LAWS = {"sap": 1, "mujoco": 2, "coulomb": 3, "run": 4}
_STATES = mujoco.mjtState
_COMPONENTS = {
    int(bit): number
    for number, bit in enumerate(
        (
            _STATES.mjSTATE_CTRL,
            _STATES.mjSTATE_QFRC_APPLIED,
            _STATES.mjSTATE_XFRC_APPLIED,
            _STATES.mjSTATE_EQ_ACTIVE,
            _STATES.mjSTATE_MOCAP_POS,
            _STATES.mjSTATE_MOCAP_QUAT,
            _STATES.mjSTATE_USERDATA,
        ),
        start=1,
    )
}
_UNSOLVED = "an island was not solved"  # of client/mujoco/rollout.cc
_INTEGRATION = int(_STATES.mjSTATE_INTEGRATION)
_INTEGRATION_KIND = 2  # SAP_STATE_INTEGRATION
_MESSAGE = 256  # SAP_WORLD_MESSAGE
_WARNING = 2  # SAP_WORLD_END_WARNING
_SLEEP = int(getattr(mujoco.mjtEnableBit, "mjENBL_SLEEP", 0))


class _Models:
    """Models as servers get them, while the program has them.

    A model may be changed between calls, so its bytes are compared with those of the last one.
    """

    def __init__(self) -> None:
        self._known: weakref.WeakKeyDictionary[
            mujoco.MjModel, tuple[NDArray[np.uint8], WorldModel]
        ] = weakref.WeakKeyDictionary()

    def find(self, client: NativeClient, model: mujoco.MjModel) -> WorldModel:
        mjb = np.empty(mujoco.mj_sizeModel(model), np.uint8)
        mujoco.mj_saveModel(model, None, mjb)
        known = self._known.get(model)
        if known is not None and np.array_equal(known[0], mjb):
            return known[1]
        made = WorldModel(client, mujoco.mj_version(), mjb)
        self._known[model] = mjb, made
        return made


_models = _Models()


def can_be_served(models: Sequence[mujoco.MjModel], options: Options | None) -> bool:
    """Whether servers take models and options: no plugins, not `sleep`, no other options."""
    if options is not None:
        taken = Options(
            relative_tolerance=options.relative_tolerance, max_iterations=options.max_iterations
        )
        if options != taken or 0 in (options.relative_tolerance, options.max_iterations):
            return False
    return not any(
        model.nplugin or model.opt.enableflags & _SLEEP for model in dict.fromkeys(models)
    )


def roll_out_at_servers(
    client: NativeClient,
    models: Sequence[mujoco.MjModel],
    trajectories: Trajectories,
    *,
    law: StepLaw,
    options: Options | None,
    on_unsolved: OnUnsolved,
    timeout: float | None,
) -> None:
    """Steps environments at servers. An error ends its environment only."""
    for model in dict.fromkeys(models):
        check_model(model, law)
    count, steps = trajectories.state.shape[:2]
    if count == 0 or steps == 0:
        return
    outcomes = _Outcomes(count)
    worlds = _worlds(client, models, steps, outcomes, trajectories.certificates)
    _set_trajectories(worlds, trajectories)
    _set_options(worlds, law, options, on_unsolved)
    advance_worlds(client, worlds, timeout)
    warned = outcomes.ends == _WARNING
    trajectories.warned_in[:] = np.where(warned, outcomes.taken - 1, steps)
    trajectories.warnings[:] = outcomes.warnings
    outcomes.raise_first("environment {}, step {}")
    certificates = trajectories.certificates
    unsolved = int(certificates["unsolved"].sum())
    if unsolved:
        report_counts(int(certificates["islands"].sum()), unsolved, on_unsolved)


def advance_at_servers(
    client: NativeClient,
    models: Sequence[mujoco.MjModel],
    data: Sequence[mujoco.MjData],
    steps: int,
    *,
    law: StepLaw,
    options: Options | None,
    on_unsolved: OnUnsolved,
    timeout: float | None,
) -> Advanced:
    """Advances states of the caller at servers. An error ends its state only."""
    if has_callbacks() or not can_be_served(models, options):
        message = "servers take no callbacks, plugins, `sleep`, and options of other kinds"
        raise InvalidArgument(f"{message}: leave the client out, or call step_batch", "client")
    for model in dict.fromkeys(models):
        check_model(model, law)
    if not data:
        return Advanced(0, 0, 0)
    count, outcomes = len(data), _Outcomes(len(data))
    states = np.empty((count, mujoco.mj_stateSize(models[0], _INTEGRATION)))
    for model, each, state in zip(models, data, states, strict=True):
        mujoco.mj_getState(model, each, state, _INTEGRATION)
    final, sensors = np.empty_like(states), np.empty((count, models[0].nsensordata))
    certificates = np.zeros((count, steps), CERTIFICATE)
    worlds = _worlds(client, models, steps, outcomes, certificates)
    worlds.every, worlds.state_kind = steps, _INTEGRATION_KIND
    for name, array in (("states", states), ("final_states", final), ("sensors", sensors)):
        worlds.set_array(name, array)
    _set_options(worlds, law, options, on_unsolved)
    advance_worlds(client, worlds, timeout)
    for i, (model, each) in enumerate(zip(models, data, strict=True)):
        _store(model, each, final[i], sensors[i], outcomes, i)
    outcomes.raise_first("data[{}]" + (", step {}" if steps > 1 else ""))
    islands, unsolved = (int(certificates[name].sum()) for name in ("islands", "unsolved"))
    if unsolved:
        report_counts(islands, unsolved, on_unsolved)
    return Advanced(islands, unsolved, int(certificates["iterations"].max(initial=0)))


def _store(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    state: FloatArray,
    sensors: FloatArray,
    outcomes: _Outcomes,
    i: int,
) -> None:
    """Writes what is known of a state after its steps; nothing where it has taken none."""
    if outcomes.taken[i] == 0:
        return
    mujoco.mj_setState(model, data, state, _INTEGRATION)
    data.sensordata[:] = sensors
    for kind in range(int(outcomes.warnings[i]).bit_length()):
        if outcomes.warnings[i] >> kind & 1:
            data.warning[kind].number += 1


class MujocoRollout(NamedTuple):
    """The arguments of `mujoco._rollout.Rollout.rollout`, in its order."""

    models: Sequence[mujoco.MjModel]
    data: Sequence[mujoco.MjData]
    nstep: int
    control_spec: int
    initial_state: Any
    initial_warmstart: Any
    control: Any
    state: Any
    sensordata: Any
    chunk_size: Any = None

    @property
    def steps(self) -> int:
        """Steps of all environments."""
        return len(self.models) * self.nstep

    def has_common_arrays(self) -> bool:
        """Whether its arrays are as `mujoco.rollout` makes them unless its checks are skipped."""
        first, count = self.models[0], len(self.models)
        size = mujoco.mj_stateSize(first, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        shapes = (
            (self.initial_state, (count, size)),
            (self.initial_warmstart, (count, first.nv)),
            (self.control, (count, self.nstep, mujoco.mj_stateSize(first, self.control_spec))),
            (self.state, (count, self.nstep, size)),
            (self.sensordata, (count, self.nstep, first.nsensordata)),
        )
        return self.initial_state is not None and all(
            array is None
            or (
                isinstance(array, np.ndarray)
                and array.dtype == np.float64
                and array.shape == shape
                and array.flags.c_contiguous
            )
            for array, shape in shapes
        )


def roll_out_as_mujoco(client: NativeClient, call: MujocoRollout) -> bool:
    """Does what `mujoco.rollout` does under `sap-islands run`, at servers.

    Returns:
        Whether all environments have taken their steps; otherwise its arrays are undefined.
    """
    outcomes = _Outcomes(len(call.models))
    worlds = _worlds(client, call.models, call.nstep, outcomes, None)
    worlds.law, worlds.holds_after_warning = _LAWS["run"], 1
    states = call.initial_state
    if call.initial_warmstart is not None:
        states = _with_warmstart(call.models, states, call.initial_warmstart)
        worlds.state_kind = _INTEGRATION_KIND
    worlds.set_array("states", states)
    if call.control is not None and call.control.size:
        components = np.array(_components(int(call.control_spec)), np.int32)
        worlds.set_array("control_components", components)
        worlds.set_array("controls", call.control)
    for name, array in (("answered_states", call.state), ("sensors", call.sensordata)):
        if array is not None:
            worlds.set_array(name, array)
    advance_worlds(client, worlds, None)
    return not outcomes.codes.any()


def advance_rows(
    client: NativeClient,
    model: mujoco.MjModel,
    states: FloatArray,
    steps: int,
    *,
    control: FloatArray | None,
    control_spec: int,
    rows: FloatArray | None,
    sensors: FloatArray | None,
) -> FloatArray | None:
    """Does what the calls of `mujoco.batch` do under `sap-islands run`, at servers.

    Args:
        client: Of servers.
        model: The model.
        states: [n, size] of `mjSTATE_INTEGRATION`.
        steps: Number of steps.
        control: [n, steps, ncontrol], or None.
        control_spec: What it consists of.
        rows: [n, steps, size] written: the states after each step; None: not wanted.
        sensors: [n, steps or 1, nsensordata] written, after each or the last step; None: likewise.

    Returns:
        The states after the last step; None: in a simulation was an error or a warning.
    """
    outcomes = _Outcomes(len(states))
    worlds = _worlds(client, [model] * len(states), steps, outcomes, None)
    worlds.law, worlds.state_kind = _LAWS["run"], _INTEGRATION_KIND
    worlds.answered_kind = _INTEGRATION_KIND
    worlds.every = steps if rows is None else 1
    worlds.set_array("states", states)
    if control is not None and control.size:
        worlds.set_array("control_components", np.array(_components(control_spec), np.int32))
        worlds.set_array("controls", control)
    final = np.empty_like(states)
    worlds.set_array("final_states", final)
    for name, array in (("answered_states", rows), ("sensors", sensors)):
        if array is not None:
            worlds.set_array(name, array)
    advance_worlds(client, worlds, None)
    return None if outcomes.codes.any() or outcomes.warnings.any() else final


def _with_warmstart(
    models: Sequence[mujoco.MjModel], states: FloatArray, warmstart: FloatArray
) -> FloatArray:
    """States of `mjSTATE_INTEGRATION` as `mujoco.rollout` begins."""
    made = np.empty((len(models), mujoco.mj_stateSize(models[0], _INTEGRATION)))
    data = {model: mujoco.MjData(model) for model in dict.fromkeys(models)}
    for model, state, warm, row in zip(models, states, warmstart, made, strict=True):
        mujoco.mj_setState(model, data[model], state, int(_STATES.mjSTATE_FULLPHYSICS))
        data[model].qacc_warmstart[:] = warm
        mujoco.mj_getState(model, data[model], row, _INTEGRATION)
    return made


class _Outcomes:
    """How each environment ended, as arrays that the C library writes."""

    def __init__(self, count: int) -> None:
        self.ends = np.zeros(count, np.int32)
        self.taken = np.zeros(count, np.int64)
        self.warnings = np.zeros(count, np.uint32)
        self.codes = np.zeros(count, np.int32)
        self.messages = np.zeros((count, _MESSAGE), np.uint8)

    def raise_first(self, where: str) -> None:
        """Raises the error of the first environment, named by number and step, that has one."""
        failed = np.flatnonzero(self.codes).tolist()
        if not failed:
            return
        first = failed[0]
        text = self.messages[first].tobytes().partition(b"\0")[0].decode(errors="replace")
        message = f"{where.format(first, self.taken[first])}: {text}"
        code = int(self.codes[first])
        error: SapError = error_of_code(code, message)
        if code == StatusCode.FAILED_PRECONDITION and text == _UNSOLVED:
            error = Unsolved(message)
        error.states = tuple(failed)
        raise error


def _worlds(
    client: NativeClient,
    models: Sequence[mujoco.MjModel],
    steps: int,
    outcomes: _Outcomes,
    certificates: NDArray[Any] | None,
) -> Any:
    """The struct of a call, which keeps its arrays; without states."""
    known = {model: _models.find(client, model) for model in dict.fromkeys(models)}
    handles = np.array([known[model].handle for model in models], np.uintp)
    worlds = new("sap_worlds", worlds=len(models), steps=steps)
    for name, array in (
        ("models", handles),
        ("ends", outcomes.ends),
        ("taken", outcomes.taken),
        ("warnings", outcomes.warnings),
        ("codes", outcomes.codes),
        ("messages", outcomes.messages),
    ):
        setattr(worlds, name, array.ctypes.data)
    if certificates is not None:
        worlds.certificates = certificates.ctypes.data
    worlds.keep((known, handles, certificates, outcomes))
    return worlds


def _set_trajectories(worlds: Any, given: Trajectories) -> None:
    """Sets the arrays of a rollout."""
    worlds.holds_after_warning = 1
    worlds.set_array("states", given.initial_state)
    if given.controls is not None and given.controls.size:
        components = np.array(_components(given.control_spec), np.int32)
        worlds.set_array("control_components", components)
        worlds.set_array("controls", given.controls)
    if given.until is not None:
        until = new("sap_at_rest", speed=given.until.speed, duration=given.until.seconds)
        worlds.point("until", until)
    worlds.set_array("answered_states", given.state)
    worlds.set_array("sensors", given.sensordata)


def _set_options(
    worlds: Any, law: StepLaw, options: Options | None, on_unsolved: OnUnsolved
) -> None:
    if law not in _LAWS:
        raise InvalidArgument(f"law is {law!r}; it must be one of {sorted(_LAWS)}", "law")
    if law == "run" and options is not None:
        raise InvalidArgument("the law 'run' takes its options from the model", "options")
    worlds.law = _LAWS[law]
    worlds.refuses_unsolved = on_unsolved == "raise"
    if options is None:
        return
    if options.relative_tolerance is not None:
        worlds.point("relative_tolerance", float(options.relative_tolerance))
    if options.max_iterations is not None:
        worlds.point("max_iterations", int(options.max_iterations))


def _components(control_spec: int) -> list[int]:
    """The control components of a mjtState, in the order of mj_getState."""
    bits = [1 << i for i in range(int(control_spec).bit_length()) if control_spec >> i & 1]
    for bit in bits:
        if bit not in _COMPONENTS:
            name = mujoco.mjtState(bit).name
            message = f"control_spec has {name}, which servers do not set before each step"
            raise InvalidArgument(message, "control_spec")
    return [_COMPONENTS[bit] for bit in bits]
