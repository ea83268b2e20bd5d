"""Many environments in lockstep: each step of them is one batch of problems.

`rollout` may have several groups, each with a thread and batches of its own: while the batch of one
is solved, another builds its problems. Only one thread at a time is in MuJoCo and Python. Two at
once would be slower: MuJoCo releases Python's lock in each of its functions, for 10 to 60 us in
small scenes, and it takes as long to wake the other thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from sap_islands.arrays import FloatArray
from sap_islands.client import Client
from sap_islands.errors import InvalidArgument, value_of
from sap_islands.mujoco.assembly import BuiltProblem, Law
from sap_islands.mujoco.material import Material
from sap_islands.mujoco.native_steps import Advanced, Trajectories, advance_all, roll_out
from sap_islands.mujoco.stepping import (
    DEFAULT_MATERIAL,
    apply,
    build_problem,
    options_of,
)
from sap_islands.options import Options
from sap_islands.solution import Solution
from sap_islands.unsolved_policy import OnUnsolved, check_on_unsolved, report_unsolved

Models: TypeAlias = mujoco.MjModel | Sequence[mujoco.MjModel]

_STATE = mujoco.mjtState.mjSTATE_FULLPHYSICS
_CONTROL = mujoco.mjtState.mjSTATE_CTRL


def step_batch(
    model: Models,
    data: Sequence[mujoco.MjData],
    client: Client,
    *,
    law: Law = "sap",
    material: Material = DEFAULT_MATERIAL,
    options: Options | None = None,
    on_unsolved: OnUnsolved = "warn",
) -> list[tuple[BuiltProblem, Solution]]:
    """Advances many states by one time step, with one batch of problems.

    Each has the same bits as after a `step` of its own.

    Args:
        model: The model of all states, or one for each.
        data: The states; changed.
        client: The client.
        law: As for `step`.
        material: As for `step`.
        options: As for `step`.
        on_unsolved: As for `step`.

    Returns:
        For each state its problem and solution.

    Raises:
        SapError: A problem could not be built or solved; no state is advanced.
    """
    check_on_unsolved(on_unsolved)
    stepping = _Stepping(client, law, material, options_of(law, options), on_unsolved)
    return stepping.step(_one_each(model, len(data)), data)


def advance_batch(
    model: Models,
    data: Sequence[mujoco.MjData],
    *,
    law: Law = "sap",
    options: Options | None = None,
    on_unsolved: OnUnsolved = "warn",
    threads: int = 1,
) -> Advanced:
    """Advances many states by one time step in this process, on threads without Python's lock.

    Each has the same bits as after a `step` of its own. Neither problems nor solutions are made.

    Args:
        model: The model of all states, or one for each.
        data: The states, all different; changed.
        law: As for `step`.
        options: As for `advance`.
        on_unsolved: As for `step`.
        threads: Number of threads, which are kept for the next call.

    Returns:
        The sums of islands, and the largest number of iterations.

    Raises:
        SapError: A problem could not be built or solved; some states may be advanced.
    """
    if threads < 1:
        raise InvalidArgument(f"threads is {threads}; it must be >= 1", "threads")
    if len({each._address for each in data}) != len(data):
        raise InvalidArgument("data has a state twice", "data")
    models = _one_each(model, len(data))
    return advance_all(models, data, threads, law=law, options=options, on_unsolved=on_unsolved)


class _Stepping(NamedTuple):
    """How states are stepped."""

    client: Client
    law: Law
    material: Material
    options: Options | None
    on_unsolved: OnUnsolved

    def step(
        self, models: Sequence[mujoco.MjModel], data: Sequence[mujoco.MjData]
    ) -> list[tuple[BuiltProblem, Solution]]:
        built = self.build(models, data)
        solutions = self.solve(built)
        self.apply(models, data, built, solutions)
        return list(zip(built, solutions, strict=True))

    def build(
        self, models: Sequence[mujoco.MjModel], data: Sequence[mujoco.MjData]
    ) -> list[BuiltProblem]:
        return [
            build_problem(model, state, law=self.law, material=self.material)
            for model, state in zip(models, data, strict=True)
        ]

    def solve(self, built: Sequence[BuiltProblem]) -> list[Solution]:
        outcomes = self.client.solve_batch([each.problem for each in built], self.options)
        return [value_of(outcome) for outcome in outcomes]

    def apply(
        self,
        models: Sequence[mujoco.MjModel],
        data: Sequence[mujoco.MjData],
        built: Sequence[BuiltProblem],
        solutions: Sequence[Solution],
    ) -> None:
        for state, solution in zip(data, solutions, strict=True):
            report_unsolved(solution, self.on_unsolved, state.time)
        for model, state, each, solution in zip(models, data, built, solutions, strict=True):
            apply(model, state, each, solution)


def rollout(
    model: Models,
    initial_state: ArrayLike,
    control: ArrayLike | None,
    client: Client | None = None,
    *,
    control_spec: int = _CONTROL,
    nstep: int | None = None,
    law: Law = "sap",
    material: Material = DEFAULT_MATERIAL,
    options: Options | None = None,
    on_unsolved: OnUnsolved = "warn",
    groups: int = 1,
    threads: int = 1,
) -> tuple[FloatArray, FloatArray]:
    """Rolls out open-loop trajectories, as `mujoco.rollout.rollout` does with `mj_step`.

    The states have the same bits as by `step`, whatever the number of groups.

    Args:
        model: The model of all environments, or one for each, with states of equal size.
        initial_state: [N or 1, nstate] states of `mjSTATE_FULLPHYSICS`, or [nstate].
        control: [N or 1, nstep or 1, ncontrol] controls, or fewer dimensions; None: all zero.
        client: The client; its server solves a batch on all of its threads. None: environments
            are stepped in this process, each on one of `threads` threads, without Python's lock.
        control_spec: What a control consists of, as for `mujoco.mj_setState`.
        nstep: Number of steps; None: that of `control`.
        law: As for `step`.
        material: As for `step`.
        options: As for `step`.
        on_unsolved: As for `step`.
        groups: Number of groups of environments with batches of their own. With 2, problems of one
            are built while a server solves those of the other. Not without a client.
        threads: Number of threads without a client, which takes neither a material nor options
            but the relative tolerance.

    Returns:
        State [N, nstep, nstate] and sensordata [N, nstep, nsensordata] after each step.

    Raises:
        InvalidArgument: Shapes do not agree.
        SapError: A problem could not be built or solved.
    """
    check_on_unsolved(on_unsolved)
    plan = _plan(model, initial_state, control, control_spec, nstep)
    if client is not None:
        stepping = _Stepping(client, law, material, options_of(law, options), on_unsolved)
        _roll_out_in_groups(plan, stepping, groups)
        return plan.state, plan.sensordata
    _check_native(material, threads)
    data = [plan.begin(i) for i in range(len(plan.models))]
    trajectories = plan.trajectories()
    roll_out(
        plan.models, data, trajectories, threads, law=law, options=options, on_unsolved=on_unsolved
    )
    return plan.state, plan.sensordata


def _roll_out_in_groups(plan: _Plan, stepping: _Stepping, groups: int) -> None:
    lock, stop = threading.Lock(), threading.Event()

    def run(group: Sequence[int]) -> None:
        models = [plan.models[i] for i in group]
        with lock:
            data = [plan.begin(i) for i in group]
        for step in range(plan.nstep):
            if stop.is_set():
                return
            with lock:
                plan.control(group, data, step)
                built = stepping.build(models, data)
            solutions = stepping.solve(built)
            with lock:
                stepping.apply(models, data, built, solutions)
                plan.record(group, data, step)

    count = len(plan.models)
    groups = max(1, min(groups, count))
    _run_all(run, [range(i, count, groups) for i in range(groups)], stop)


def _check_native(material: Material, threads: int) -> None:
    if material != DEFAULT_MATERIAL:
        raise InvalidArgument("a material needs a client", "material")
    if threads < 1:
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

    def begin(self, i: int) -> mujoco.MjData:
        data = mujoco.MjData(self.models[i])
        mujoco.mj_setState(self.models[i], data, self.initial_state[i], _STATE)
        return data

    def trajectories(self) -> Trajectories:
        controls = None if self.controls is None else np.ascontiguousarray(self.controls)
        return Trajectories(controls, self.control_spec, self.state, self.sensordata)

    def control(self, group: Sequence[int], data: list[mujoco.MjData], step: int) -> None:
        if self.controls is None:
            return
        for i, state in zip(group, data, strict=True):
            mujoco.mj_setState(self.models[i], state, self.controls[i, step], self.control_spec)

    def record(self, group: Sequence[int], data: list[mujoco.MjData], step: int) -> None:
        for i, state in zip(group, data, strict=True):
            mujoco.mj_getState(self.models[i], state, self.state[i, step], _STATE)
            self.sensordata[i, step] = state.sensordata


def _plan(
    model: Models,
    initial_state: ArrayLike,
    control: ArrayLike | None,
    control_spec: int,
    nstep: int | None,
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
    return _Plan(
        _one_each(model, count),
        initial,
        controls,
        control_spec,
        nstep,
        np.empty((count, nstep, initial.shape[1])),
        np.empty((count, nstep, one.nsensordata)),
    )


def _shaped(values: ArrayLike, dimensions: int, size: int, name: str) -> FloatArray:
    """The values as an array of so many dimensions, the last of a given size."""
    array = np.asarray(values, float)
    if array.ndim > dimensions or array.shape[-1:] != (size,):
        message = f"{name} has the shape {list(array.shape)}; its last dimension must be {size}"
        raise InvalidArgument(message, name)
    return array.reshape((1,) * (dimensions - array.ndim) + array.shape)


def _one_each(model: Models, count: int) -> Sequence[mujoco.MjModel]:
    models = [model] if isinstance(model, mujoco.MjModel) else model
    if len(models) == 1:
        return [*models] * count
    if len(models) != count:
        raise InvalidArgument(f"there are {len(models)} models for {count} states", "model")
    return models


def _run_all(
    run: Callable[[Sequence[int]], None], groups: Sequence[Sequence[int]], stop: threading.Event
) -> None:
    """Runs each group in a thread; after an error, also an interrupt, all stop soon."""
    with ThreadPoolExecutor(len(groups)) as pool:
        futures = [pool.submit(run, group) for group in groups]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            stop.set()
        for future in futures:
            future.result()
