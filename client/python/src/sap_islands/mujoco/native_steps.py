"""Whole steps in one call of the C library, on the calling thread or on a pool of threads.

`client/mujoco/sap_mujoco.h` documents the functions. Python's lock is released while they run.
"""

from __future__ import annotations

import ctypes
import functools
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, Literal, NamedTuple, TypeAlias

import mujoco
import numpy as np
from numpy.typing import NDArray

from sap_islands._library.c_library import load
from sap_islands._library.declarations import struct_type
from sap_islands.arrays import FloatArray
from sap_islands.binaries import find_c_library
from sap_islands.errors import (
    DeadlineExceeded,
    InvalidArgument,
    SapError,
    StatusCode,
    error_of_code,
)
from sap_islands.mujoco.assembly import Law
from sap_islands.mujoco.at_rest import AtRest
from sap_islands.mujoco.callbacks import call_native, has_callbacks
from sap_islands.mujoco.native_calls import load_native_calls, new_outcome, raise_error
from sap_islands.mujoco.unsupported_features import (
    refuse_data_of_another,
    refuse_unsupported,
    warn_of_differences,
)
from sap_islands.options import Options
from sap_islands.unsolved_policy import OnUnsolved, Unsolved, UnsolvedWarning, check_on_unsolved

_STATE = int(mujoco.mjtState.mjSTATE_FULLPHYSICS)
_POINTER = ctypes.c_void_p
_CANCELLED = int(StatusCode.CANCELLED)
# "run" is MuJoCo's own step, as under `sap-islands run`.
StepLaw: TypeAlias = Law | Literal["run"]
_LAWS = {"sap": 0, "mujoco": 1, "coulomb": 2, "run": 3}
# Mirrors `sap_mujoco_certificate`.
CERTIFICATE = np.dtype(
    [("islands", np.int64), ("unsolved", np.int64), ("iterations", np.int64), ("bound", float)]
)


class Advanced(NamedTuple):
    """How a step was solved.

    Attributes:
        islands: Number of islands.
        unsolved: Those that were not solved to the tolerance.
        iterations: Newton iterations, the largest number of an island.
    """

    islands: int
    unsolved: int
    iterations: int


class NativeSteps(NamedTuple):
    """The functions, and the handle that they need."""

    solver: int
    step: Any
    rollout: Any


def advance(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    *,
    law: StepLaw = "sap",
    options: Options | None = None,
    on_unsolved: OnUnsolved = "warn",
) -> Advanced:
    """Advances `data` by one time step with the bits of `step`, in one call of the C library.

    It runs in this process on the calling thread, and returns neither problem nor solution, which
    takes a small scene a tenth of the time of `step`.

    Args:
        model: The model; not changed.
        data: The state; changed.
        law: As for `step`; or "run", MuJoCo's own step with this solver in place of MuJoCo's
            where it is predicted to be faster, as in a program under `sap-islands run`. Then
            islands and iterations are of what this solver has solved, and tolerance and number of
            iterations are the model's.
        options: As for `step`; only the relative tolerance may be given, and none with "run".
        on_unsolved: As for `step`.

    Raises:
        SapError: The problem could not be built or solved, or MuJoCo failed; the state is not
            advanced.
    """
    settings = _settings(law, options, on_unsolved)
    check_model(model, law)
    refuse_data_of_another(model, data)
    functions, outcome = load_native_steps(), new_outcome()
    arguments = functions.solver, model._address, data._address, settings, outcome
    raise_error(call_native(functions.step, *arguments), outcome)
    if outcome.unsolved:
        _report(outcome, on_unsolved)
    return Advanced(outcome.islands, outcome.unsolved, outcome.iterations)


def check_model(model: mujoco.MjModel, law: StepLaw) -> None:
    """Raises InvalidArgument, or warns, where the model has what a law does not take."""
    if law == "run":
        return
    refuse_unsupported(model)
    warn_of_differences(model)


class Trajectories(NamedTuple):
    """Arguments and results of `roll_out`.

    Attributes:
        initial_state: [N, nstate].
        controls: [N, nstep, ncontrol], or None.
        control_spec: What a control consists of.
        state: [N, nstep, nstate] output.
        sensordata: [N, nstep, nsensordata] output.
        certificates: [N, nstep] output of `CERTIFICATE`, for the steps that were taken.
        warned_in: [N] output, the step in which MuJoCo warned of each environment; nstep: in none.
        warnings: [N] output, the bit `1 << kind` for each `mjtWarning` of an environment.
        until: When environments end before their last step.
    """

    initial_state: FloatArray
    controls: FloatArray | None
    control_spec: int
    state: FloatArray
    sensordata: FloatArray
    certificates: NDArray[Any]
    warned_in: NDArray[np.int64]
    warnings: NDArray[np.int64]
    until: AtRest | None


def begin(model: mujoco.MjModel, initial_state: FloatArray) -> mujoco.MjData:
    """A new state of the model that begins a rollout."""
    data = mujoco.MjData(model)
    mujoco.mj_setState(model, data, initial_state, _STATE)
    return data


def roll_out(
    models: Sequence[mujoco.MjModel],
    trajectories: Trajectories,
    threads: int,
    *,
    law: StepLaw,
    options: Options | None,
    on_unsolved: OnUnsolved,
    timeout: float | None = None,
) -> None:
    """Steps environments on threads of the C library. An error ends its environment only."""
    settings = _settings(law, options, on_unsolved)
    rollout = _Trajectories(models, trajectories, law)
    with ThreadPoolExecutor(1) as pool:  # an interrupt reaches this thread
        running = pool.submit(rollout.run, settings, threads)
        try:
            code, outcome = running.result(timeout)
        except FutureTimeoutError:
            raise DeadlineExceeded("the deadline of the call has passed") from None
        finally:
            rollout.stop()
    trajectories.warnings[:] = [each.warnings for each in rollout.outcomes]
    if code:
        error = _error_of(code, outcome, f"environment {outcome.environment}, step {outcome.step}")
        error.states = tuple(i for i, each in enumerate(rollout.outcomes) if each.code)
        raise error
    if outcome.unsolved:
        _report(outcome, on_unsolved)


def advance_all(
    models: Sequence[mujoco.MjModel],
    data: Sequence[mujoco.MjData],
    threads: int,
    steps: int,
    *,
    law: StepLaw,
    options: Options | None,
    on_unsolved: OnUnsolved,
) -> Advanced:
    """Advances states by some steps on threads of the C library."""
    settings = _settings(law, options, on_unsolved)
    rollout = _StatesOfCaller(models, data, law, steps)
    code, outcome = rollout.run(settings, threads)
    if code:
        step = f", step {outcome.step}" if steps > 1 else ""
        error = _error_of(code, outcome, f"data[{outcome.environment}]{step}")
        error.states = tuple(i for i, each in enumerate(rollout.outcomes) if each.code)
        raise error
    if outcome.unsolved:
        _report(outcome, on_unsolved)
    return Advanced(outcome.islands, outcome.unsolved, outcome.iterations)


class _Rollout:
    """Environments over some steps. An error ends its environment, an exception all of them."""

    def __init__(self, models: Sequence[mujoco.MjModel], steps: int, law: StepLaw) -> None:
        for model in dict.fromkeys(models):
            check_model(model, law)
        self._models = models
        self._addresses = np.array([each._address for each in models], np.uintp)
        self._steps = steps
        self._stop = ctypes.c_int32(0)
        self.outcomes = (struct_type("sap_mujoco_outcome") * len(models))()

    def stop(self) -> None:
        self._stop.value = 1

    def run(self, settings: Any, threads: int) -> tuple[int, Any]:
        """Steps them; returns the code and the outcome of the C library."""
        count = len(self._models)
        if not has_callbacks():
            return self._run(slice(0, count), self._arrays(slice(0, count)), threads, settings)
        # After the exception of a callback, which threads of the C library lose, none is called.
        if threads == 1:
            return self._sum([self._run_one(i, settings) for i in range(count)])
        with ThreadPoolExecutor(min(threads, max(count, 1))) as pool:
            running = [pool.submit(self._run_one, i, settings) for i in range(count)]
        return self._sum([each.result() for each in running])

    def _run_one(self, i: int, settings: Any) -> tuple[int, Any]:
        try:
            data = self._data_of(i)
            arrays = self._arrays(slice(i, i + 1))
            addresses = np.array([data._address], np.uintp)
            arrays.data = addresses.ctypes.data
            code, outcome = self._run(slice(i, i + 1), arrays, 1, settings)
        except BaseException:
            self.stop()
            raise
        outcome.environment = i
        return code, outcome

    def _run(self, part: slice, arrays: Any, threads: int, settings: Any) -> tuple[int, Any]:
        arrays.environments, arrays.steps = part.stop - part.start, self._steps
        arrays.model = self._addresses[part].ctypes.data
        arrays.stop = ctypes.addressof(self._stop)
        size = ctypes.sizeof(struct_type("sap_mujoco_outcome"))
        arrays.outcomes = ctypes.addressof(self.outcomes) + part.start * size
        arrays.state_kind, arrays.threads = _STATE, threads
        functions, outcome = load_native_steps(), new_outcome()
        code = call_native(functions.rollout, functions.solver, arrays, settings, outcome)
        return code, outcome

    def _data_of(self, i: int) -> mujoco.MjData:
        """The state of an environment, which callbacks know, as it begins."""
        raise NotImplementedError

    def _arrays(self, part: slice) -> Any:
        """The arrays of some environments that not every rollout has."""
        raise NotImplementedError

    @staticmethod
    def _sum(outcomes: Sequence[tuple[int, Any]]) -> tuple[int, Any]:
        """The first error that is not that of a rollout which was stopped, or the sums."""
        found = next((each for each in outcomes if each[0] not in (0, _CANCELLED)), None)
        if found is not None:
            return found
        total = new_outcome()
        for _, outcome in outcomes:
            total.islands += outcome.islands
            total.unsolved += outcome.unsolved
            total.iterations = max(total.iterations, outcome.iterations)
        return 0, total


class _StatesOfCaller(_Rollout):
    """Some steps of states of the caller."""

    def __init__(
        self,
        models: Sequence[mujoco.MjModel],
        data: Sequence[mujoco.MjData],
        law: StepLaw,
        steps: int,
    ) -> None:
        super().__init__(models, steps, law)
        self._data = data
        self._data_addresses = np.array([each._address for each in data], np.uintp)

    def _data_of(self, i: int) -> mujoco.MjData:
        return self._data[i]

    def _arrays(self, part: slice) -> Any:
        return struct_type("sap_mujoco_rollout_arrays")(data=self._data_addresses[part].ctypes.data)


class _Trajectories(_Rollout):
    """Some steps of states of the C library's own; of this process's if callbacks have to know."""

    def __init__(
        self, models: Sequence[mujoco.MjModel], arrays: Trajectories, law: StepLaw
    ) -> None:
        super().__init__(models, arrays.state.shape[1], law)
        self._given = arrays

    def _data_of(self, i: int) -> mujoco.MjData:
        return begin(self._models[i], self._given.initial_state[i])

    def _arrays(self, part: slice) -> Any:
        given = self._given
        arrays = struct_type("sap_mujoco_rollout_arrays")(
            initial_state=given.initial_state[part].ctypes.data,
            control_kind=given.control_spec,
            state=given.state[part].ctypes.data,
            state_size=given.state.shape[2],
            sensordata=given.sensordata[part].ctypes.data,
            warned_in=given.warned_in[part].ctypes.data,
            certificates=given.certificates[part].ctypes.data,
        )
        if given.until is not None:
            arrays.rest_speed, arrays.rest_seconds = given.until.speed, given.until.seconds
        if given.controls is not None:
            arrays.control = given.controls[part].ctypes.data
            arrays.control_size = given.controls.shape[2]
        return arrays


@functools.lru_cache(maxsize=64)
def _settings(law: StepLaw, options: Options | None, on_unsolved: OnUnsolved) -> Any:
    check_on_unsolved(on_unsolved)
    if law not in _LAWS:
        raise InvalidArgument(f"law is {law!r}; it must be one of {sorted(_LAWS)}", "law")
    if law == "run" and options is not None:
        raise InvalidArgument("the law 'run' takes its options from the model", "options")
    tolerance = None if options is None else options.relative_tolerance
    if options is not None and options != Options(relative_tolerance=tolerance):
        message = "a step in one call takes no option but relative_tolerance"
        raise InvalidArgument(message, "options")
    load_native_steps()
    return struct_type("sap_mujoco_settings")(
        law=_LAWS[law],
        refuses_unsolved=on_unsolved == "raise",
        relative_tolerance=tolerance or 0.0,
    )


def _error_of(code: int, outcome: Any, where: str) -> SapError:
    """The error of a rollout, with the environment that it is of."""
    message = f"{where}: {outcome.message.decode(errors='replace')}"
    if code == StatusCode.FAILED_PRECONDITION and outcome.unsolved:
        return Unsolved(message)
    return error_of_code(code, message)


def _report(outcome: Any, on_unsolved: OnUnsolved) -> None:
    report_counts(outcome.islands, outcome.unsolved, on_unsolved)


def report_counts(islands: int, unsolved: int, on_unsolved: OnUnsolved) -> None:
    """Raises or warns, as `on_unsolved` says, about islands of one or many steps."""
    message = f"{unsolved} of {islands} islands were not solved"
    if on_unsolved == "raise":
        raise Unsolved(message)
    if on_unsolved == "warn":
        warnings.warn(message, UnsolvedWarning, stacklevel=4)


@functools.cache
def load_native_steps() -> NativeSteps:
    """The functions, with the types of their arguments."""
    library = load(find_c_library())
    settings = ctypes.POINTER(struct_type("sap_mujoco_settings"))
    outcome = ctypes.POINTER(struct_type("sap_mujoco_outcome"))
    library.sap_mujoco_step.argtypes = (*(_POINTER,) * 3, settings, outcome)
    library.sap_mujoco_rollout.argtypes = (
        _POINTER,
        ctypes.POINTER(struct_type("sap_mujoco_rollout_arrays")),
        settings,
        outcome,
    )
    solver = load_native_calls().solver
    return NativeSteps(solver, library.sap_mujoco_step, library.sap_mujoco_rollout)
