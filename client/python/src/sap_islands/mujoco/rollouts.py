"""Open-loop rollouts of many environments.

In this process the C library steps them on threads. At servers the same code does: models once,
then states and controls. For what neither of them does, each step is a batch of problems.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, overload

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from sap_islands.arrays import FloatArray
from sap_islands.client import Client
from sap_islands.errors import DeadlineExceeded, InvalidArgument, SapError, value_of
from sap_islands.mujoco.assembly import BuiltProblem
from sap_islands.mujoco.at_rest import AtRest, RestClock
from sap_islands.mujoco.callbacks import has_callbacks
from sap_islands.mujoco.lockstep import Models, Stepping, naming, one_each
from sap_islands.mujoco.material import Material
from sap_islands.mujoco.native_steps import (
    CERTIFICATE,
    StepLaw,
    Trajectories,
    begin,
    roll_out,
)
from sap_islands.mujoco.server_rollouts import can_be_served, roll_out_at_servers
from sap_islands.mujoco.stepping import (
    DEFAULT_MATERIAL,
    apply,
    let_mujoco_reset_unstable,
    options_of,
)
from sap_islands.options import Options
from sap_islands.solution import Solution
from sap_islands.unsolved_policy import OnUnsolved, check_on_unsolved, find_unsolved

_STATE = mujoco.mjtState.mjSTATE_FULLPHYSICS
_CONTROL = mujoco.mjtState.mjSTATE_CTRL
_MAX_LISTED = 3  # environments in a warning


class FrozenWarning(RuntimeWarning):
    """MuJoCo warned of environments of a rollout, whose states are repeated from then on.

    Attributes:
        environments: Their numbers.
        steps: The step in which MuJoCo warned of each.
    """

    def __init__(
        self, message: str, environments: Sequence[int] = (), steps: Sequence[int] = ()
    ) -> None:
        super().__init__(message)
        self.environments = tuple(environments)
        self.steps = tuple(steps)


@overload
def rollout(
    model: Models,
    initial_state: ArrayLike,
    control: ArrayLike | None,
    client: Client | None = None,
    *,
    control_spec: int = _CONTROL,
    nstep: int | None = None,
    law: StepLaw = "sap",
    material: Material = DEFAULT_MATERIAL,
    options: Options | None = None,
    on_unsolved: OnUnsolved = "warn",
    threads: int | None = None,
    timeout: float | None = None,
    until: AtRest | None = None,
    warned_in: NDArray[np.int64] | None = None,
    certificates: Literal[False] = False,
) -> tuple[FloatArray, FloatArray]: ...


@overload
def rollout(
    model: Models,
    initial_state: ArrayLike,
    control: ArrayLike | None,
    client: Client | None = None,
    *,
    control_spec: int = _CONTROL,
    nstep: int | None = None,
    law: StepLaw = "sap",
    material: Material = DEFAULT_MATERIAL,
    options: Options | None = None,
    on_unsolved: OnUnsolved = "warn",
    threads: int | None = None,
    timeout: float | None = None,
    until: AtRest | None = None,
    warned_in: NDArray[np.int64] | None = None,
    certificates: Literal[True],
) -> tuple[FloatArray, FloatArray, NDArray[Any]]: ...


def rollout(
    model: Models,
    initial_state: ArrayLike,
    control: ArrayLike | None,
    client: Client | None = None,
    *,
    control_spec: int = _CONTROL,
    nstep: int | None = None,
    law: StepLaw = "sap",
    material: Material = DEFAULT_MATERIAL,
    options: Options | None = None,
    on_unsolved: OnUnsolved = "warn",
    threads: int | None = None,
    timeout: float | None = None,
    until: AtRest | None = None,
    warned_in: NDArray[np.int64] | None = None,
    certificates: bool = False,
) -> tuple[FloatArray, FloatArray] | tuple[FloatArray, FloatArray, NDArray[Any]]:
    """Rolls out open-loop trajectories, as `mujoco.rollout.rollout` does with `mj_step`.

    The states have the same bits as by `step`. Where MuJoCo warns of an environment (of numbers
    that are not finite or huge, for which it resets the state, or of a full buffer), the state
    after that step is repeated to the end. Others go on.

    Args:
        model: The model of all environments, or one for each, with states of equal size.
        initial_state: [N or 1, nstate] states of `mjSTATE_FULLPHYSICS`, or [nstate].
        control: [N or 1, nstep or 1, ncontrol] controls, or fewer dimensions; None: all zero.
        client: None, or a client of "embedded:": environments are stepped in this process, without
            Python's lock. A client of servers: on all threads of all servers of its address, which
            need `--mujoco-library` with this version of MuJoCo; with a material, further options,
            callbacks, plugins or the flag `sleep` here, by a batch of problems for each step.
        control_spec: What a control consists of, as for `mujoco.mj_setState`.
        nstep: Number of steps; None: that of `control`.
        law: As for `step`; or "run", as for `advance`.
        material: As for `step`; it needs a client.
        options: As for `step`; without a client only the relative tolerance.
        on_unsolved: As for `step`.
        threads: Of this process; None: those of the client, 1 without one.
        timeout: Deadline [s]; None: there is none.
        until: When an environment ends; its last state fills the rest. None: after nstep steps.
        warned_in: [N] written: the step in which MuJoCo first warned of each environment, or nstep.
            None: a `FrozenWarning` tells them.
        certificates: Whether to return also how each step was solved.

    Returns:
        State [N, nstep, nstate] and sensordata [N, nstep, nsensordata] after each step, and if they
        are wanted certificates [N, nstep] with the fields `islands` (their number), `unsolved`
        (those not solved to the tolerance), `iterations` (the largest of an island) and `bound`
        (the largest bound of an island on its distance in energy from the optimum [J]); all 0 for
        steps that were not taken.

    Raises:
        InvalidArgument: Shapes do not agree.
        SapError: A problem could not be built or solved; the message names environment and step,
            `states` all with an error. Others were stepped to their end, unless by batches.
    """
    check_on_unsolved(on_unsolved)
    plan = _plan(model, initial_state, control, control_spec, nstep, until)
    _check_warned_in(warned_in, plan)
    settings: dict[str, Any] = {"law": law, "options": options, "on_unsolved": on_unsolved}
    if client is None or _needs_no_problems(plan, client, law, material, options):
        _check_native(material, threads)
        _roll_out_whole(plan, client, threads, timeout, settings)
    else:
        assert law != "run"
        stepping = Stepping(client, law, material, options_of(law, options), on_unsolved)
        _roll_out_by_problems(plan, stepping, timeout)
    plan.tell_frozen(warned_in)
    return plan.outputs if certificates else plan.outputs[:2]


def _needs_no_problems(
    plan: _Plan, client: Client, law: StepLaw, material: Material, options: Options | None
) -> bool:
    """Whether whole steps are taken where the client solves."""
    if law == "run":
        return True
    if material != DEFAULT_MATERIAL:
        return False
    if client._solver.client.waits:
        return can_be_served(plan.models, options) and not has_callbacks()
    return options is None or options == Options(relative_tolerance=options.relative_tolerance)


def _roll_out_whole(
    plan: _Plan,
    client: Client | None,
    threads: int | None,
    timeout: float | None,
    settings: dict[str, Any],
) -> None:
    native = None if client is None else client._solver.client
    arrays = plan.trajectories()
    if native is not None and native.waits:
        roll_out_at_servers(native, plan.models, arrays, **settings, timeout=timeout)
        return
    count = threads or (1 if native is None else native.threads)
    roll_out(plan.models, arrays, count, **settings, timeout=timeout)


def _roll_out_by_problems(plan: _Plan, stepping: Stepping, timeout: float | None) -> None:
    environments = _Environments(plan, stepping)
    until = None if timeout is None else time.monotonic() + timeout
    for step in range(plan.nstep):
        if environments.all_frozen():
            return
        if until is not None and time.monotonic() >= until:
            raise DeadlineExceeded("the deadline of the call has passed")
        built = environments.build(step)
        environments.apply(step, built, environments.solve(built))


class _Environments:
    """All environments. Those that MuJoCo has warned of take no more steps."""

    def __init__(self, plan: _Plan, stepping: Stepping) -> None:
        self._plan, self._stepping = plan, stepping
        count = len(plan.models)
        self._stepped = {i: begin(plan.models[i], plan.initial_state[i]) for i in range(count)}
        self._clocks = [RestClock(plan.until) for _ in range(count)] if plan.until else None

    def all_frozen(self) -> bool:
        return not self._stepped

    def build(self, step: int) -> list[BuiltProblem | SapError]:
        for i, data in self._stepped.items():
            self._plan.control(i, data, step)
        return [self._build(i) for i in self._stepped]

    def solve(self, built: Sequence[BuiltProblem | SapError]) -> list[Solution | SapError]:
        problems = [each for each in built if isinstance(each, BuiltProblem)]
        outcomes = iter(self._stepping.solve(problems))
        return [next(outcomes) if isinstance(each, BuiltProblem) else each for each in built]

    def apply(
        self,
        step: int,
        built: Sequence[BuiltProblem | SapError],
        outcomes: Sequence[Solution | SapError],
    ) -> None:
        """Advances and records them."""
        for i, problem, outcome in zip(tuple(self._stepped), built, outcomes, strict=True):
            data = self._stepped[i]
            with naming(f"environment {i}, step {step}"):
                self._apply(i, problem, outcome, step)
            self._plan.record(i, data, step)
            if data.warning.number.any():
                self._plan.freeze(i, data, step)
                del self._stepped[i]
            elif self._is_at_rest(i, data):
                self._plan.repeat(i, step)
                del self._stepped[i]

    def _is_at_rest(self, i: int, data: mujoco.MjData) -> bool:
        if self._clocks is None:
            return False
        return self._clocks[i].is_at_rest_after_step(self._plan.models[i], data)

    def _build(self, i: int) -> BuiltProblem | SapError:
        try:
            return self._stepping.build(self._plan.models[i], self._stepped[i])
        except InvalidArgument as error:
            return error

    def _apply(
        self, i: int, problem: BuiltProblem | SapError, outcome: Solution | SapError, step: int
    ) -> None:
        model, data = self._plan.models[i], self._stepped[i]
        if isinstance(outcome, InvalidArgument) and let_mujoco_reset_unstable(model, data):
            problem = self._build(i)
            (outcome,) = self.solve([problem])
            if isinstance(outcome, InvalidArgument):
                return  # it was not reset, and stays where it is
        if isinstance(problem, SapError):
            raise problem
        solution = value_of(outcome)
        self._plan.certify(i, step, solution)
        self._stepping.report(data, solution)
        apply(model, data, problem, solution)


def _check_warned_in(warned_in: NDArray[np.int64] | None, plan: _Plan) -> None:
    if warned_in is not None and warned_in.shape != plan.warned_in.shape:
        shapes = f"{list(warned_in.shape)}; {list(plan.warned_in.shape)}"
        raise InvalidArgument(f"warned_in has the shape {shapes} is needed", "warned_in")


def _check_native(material: Material, threads: int | None) -> None:
    if material != DEFAULT_MATERIAL:
        message = "a material needs a client, and another law than 'run'"
        raise InvalidArgument(message, "material")
    if threads is not None and threads < 1:
        raise InvalidArgument(f"threads is {threads}; it must be >= 1", "threads")


@dataclass
class _Plan:
    """Inputs of a rollout for every environment and step, and its outputs."""

    models: Sequence[mujoco.MjModel]
    initial_state: FloatArray  # [N, nstate]
    controls: FloatArray | None  # [N, nstep, ncontrol]
    control_spec: int
    nstep: int
    state: FloatArray
    sensordata: FloatArray
    certificates: NDArray[Any]  # [N, nstep] of CERTIFICATE
    warned_in: NDArray[np.int64]  # [N]
    warnings: NDArray[np.int64]  # [N] the bit 1 << kind for each mjtWarning of an environment
    until: AtRest | None

    def trajectories(self) -> Trajectories:
        return Trajectories(
            np.ascontiguousarray(self.initial_state),
            None if self.controls is None else np.ascontiguousarray(self.controls),
            self.control_spec,
            self.state,
            self.sensordata,
            self.certificates,
            self.warned_in,
            self.warnings,
            self.until,
        )

    @property
    def outputs(self) -> tuple[FloatArray, FloatArray, NDArray[Any]]:
        return self.state, self.sensordata, self.certificates

    def control(self, i: int, data: mujoco.MjData, step: int) -> None:
        if self.controls is not None:
            mujoco.mj_setState(self.models[i], data, self.controls[i, step], self.control_spec)

    def record(self, i: int, data: mujoco.MjData, step: int) -> None:
        mujoco.mj_getState(self.models[i], data, self.state[i, step], _STATE)
        self.sensordata[i, step] = data.sensordata

    def certify(self, i: int, step: int, solution: Solution) -> None:
        """Records how a step was solved."""
        islands = solution.islands
        self.certificates[i, step] = (
            len(islands),
            len(find_unsolved(islands)),
            islands.iterations.max(initial=0),
            islands.optimality_gap_bound.max(initial=0.0),
        )

    def repeat(self, i: int, step: int) -> None:
        """Fills the records after a step with those of it."""
        self.state[i, step + 1 :] = self.state[i, step]
        self.sensordata[i, step + 1 :] = self.sensordata[i, step]

    def freeze(self, i: int, data: mujoco.MjData, step: int) -> None:
        """Repeats the records of a step, since MuJoCo warned of it."""
        self.repeat(i, step)
        self.warned_in[i] = step
        kinds = np.flatnonzero(data.warning.number)
        self.warnings[i] = np.bitwise_or.reduce(1 << kinds)

    def tell_frozen(self, warned_in: NDArray[np.int64] | None) -> None:
        """Writes the steps of warnings, or gives a warning."""
        if warned_in is not None:
            warned_in[:] = self.warned_in
            return
        environments = np.flatnonzero(self.warned_in < self.nstep).tolist()
        if not environments:
            return
        steps = self.warned_in[environments].tolist()
        named = [
            f"{i} in step {step} ({_names_of(int(self.warnings[i]))})"
            for i, step in zip(environments, steps, strict=True)
        ]
        more = f" and {len(named) - _MAX_LISTED} more" if len(named) > _MAX_LISTED else ""
        message = (
            f"MuJoCo warned of {len(named)} of {len(self.models)} environments, whose states are "
            f"repeated from then on: {', '.join(named[:_MAX_LISTED])}{more}"
        )
        warnings.warn(FrozenWarning(message, environments, steps), stacklevel=3)


def _names_of(bits: int) -> str:
    """For example BADQACC."""
    kinds = (mujoco.mjtWarning(kind) for kind in range(bits.bit_length()) if bits >> kind & 1)
    return ", ".join(kind.name.removeprefix("mjWARN_") for kind in kinds)


def _plan(
    model: Models,
    initial_state: ArrayLike,
    control: ArrayLike | None,
    control_spec: int,
    nstep: int | None,
    until: AtRest | None,
) -> _Plan:
    one = model if isinstance(model, mujoco.MjModel) else model[0]
    initial = _shaped(initial_state, 2, mujoco.mj_stateSize(one, _STATE), "initial_state")
    controls = None
    counts = {len(initial)}
    if not isinstance(model, mujoco.MjModel):
        counts.add(len(model))
    if control is not None:
        controls = _shaped(control, 3, mujoco.mj_stateSize(one, control_spec), "control")
        counts.add(len(controls))
        if nstep is None:
            nstep = controls.shape[1]
    if nstep is None or nstep < 0:
        raise InvalidArgument(f"nstep is {nstep}; it must be given without controls", "nstep")
    if len(counts - {1}) > 1:
        message = f"models, initial_state and control are of {sorted(counts)} environments"
        raise InvalidArgument(message, "initial_state")
    count = max(counts)
    if controls is not None:
        if controls.shape[1] not in (1, nstep):
            message = f"control has {controls.shape[1]} steps; it must have 1 or {nstep}"
            raise InvalidArgument(message, "control")
        controls = np.broadcast_to(controls, (count, nstep, controls.shape[2]))
    initial = np.broadcast_to(initial, (count, initial.shape[1]))
    models = one_each(model, count)
    _check_sizes(models, control_spec)
    return _Plan(
        models,
        initial,
        controls,
        control_spec,
        nstep,
        np.empty((count, nstep, initial.shape[1])),
        np.empty((count, nstep, one.nsensordata)),
        np.zeros((count, nstep), CERTIFICATE),
        np.full(count, nstep, np.int64),
        np.zeros(count, np.int64),
        until,
    )


def _check_sizes(models: Sequence[mujoco.MjModel], control_spec: int) -> None:
    """Raises InvalidArgument unless states, controls and sensordata of all models are as long."""

    def sizes(model: mujoco.MjModel) -> tuple[int, ...]:
        states = (mujoco.mj_stateSize(model, spec) for spec in (int(_STATE), control_spec))
        return (*states, model.nsensordata)

    expected = sizes(models[0])
    for i, model in enumerate(models):
        if model is not models[0] and sizes(model) != expected:
            message = (
                f"model[{i}] has {sizes(model)} numbers of state, control and sensordata; model[0] "
                f"has {expected}"
            )
            raise InvalidArgument(message, f"model[{i}]")


def _shaped(values: ArrayLike, dimensions: int, size: int, name: str) -> FloatArray:
    """The values as an array of these dimensions, the last of a given size."""
    array = np.asarray(values, float)
    if array.ndim > dimensions or array.shape[-1:] != (size,):
        message = f"{name} has the shape {list(array.shape)}; its last dimension must be {size}"
        raise InvalidArgument(message, name)
    return array.reshape((1,) * (dimensions - array.ndim) + array.shape)
