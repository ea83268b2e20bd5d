"""Steps of many states: as one batch of problems, on threads of this process, or at servers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import mujoco

from sap_islands.client import Client
from sap_islands.errors import InvalidArgument, SapError, value_of
from sap_islands.mujoco.assembly import BuiltProblem, Law
from sap_islands.mujoco.material import Material
from sap_islands.mujoco.native_steps import Advanced, StepLaw, advance_all
from sap_islands.mujoco.server_rollouts import advance_at_servers
from sap_islands.mujoco.stepping import (
    DEFAULT_MATERIAL,
    apply,
    build_problem,
    options_of,
)
from sap_islands.mujoco.unsupported_features import refuse_data_of_another
from sap_islands.options import Options
from sap_islands.solution import Solution
from sap_islands.unsolved_policy import OnUnsolved, check_on_unsolved, report_unsolved

Models: TypeAlias = mujoco.MjModel | Sequence[mujoco.MjModel]


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
        SapError: A problem could not be built or solved, and the message names its state as
            `data[i]`; no state is advanced.
    """
    check_on_unsolved(on_unsolved)
    stepping = Stepping(client, law, material, options_of(law, options), on_unsolved)
    return stepping.step(one_each(model, len(data)), data)


def advance_batch(
    model: Models,
    data: Sequence[mujoco.MjData],
    client: Client | None = None,
    *,
    steps: int = 1,
    law: StepLaw = "sap",
    options: Options | None = None,
    on_unsolved: OnUnsolved = "warn",
    threads: int | None = None,
    timeout: float | None = None,
) -> Advanced:
    """Advances many states, in this process or at servers, without problems and solutions.

    Each has the same bits as after `step`. At servers the states go out and come back whole
    (`mjSTATE_INTEGRATION`), with their controls and applied forces, and so does `sensordata`; other
    derived fields of `data` are not computed: call `mujoco.mj_forward` where they are needed.

    Args:
        model: The model of all states, or one for each.
        data: The states, all different; changed.
        client: As for `rollout`; its servers take no callbacks, plugins and `sleep`.
        steps: Number of time steps, with the controls as they are.
        law: As for `advance`.
        options: As for `advance`; at servers also the number of iterations.
        on_unsolved: As for `step`.
        threads: Of this process, kept for the next call; None: those of the client, 1 without one.
        timeout: Deadline at servers [s]; None: there is none.

    Returns:
        The sums of islands, and the largest number of iterations.

    Raises:
        SapError: The problems of some states could not be built or solved: `states` has their
            numbers, and the message is that of the first. All other states are advanced.
        Exception: What a callback has raised; some states may be advanced, as their `time` tells.
    """
    native = None if client is None else client._solver.client
    if threads is not None and threads < 1:
        raise InvalidArgument(f"threads is {threads}; it must be >= 1", "threads")
    if steps < 1:
        raise InvalidArgument(f"steps is {steps}; it must be >= 1", "steps")
    if len({each._address for each in data}) != len(data):
        raise InvalidArgument("data has a state twice", "data")
    models = one_each(model, len(data))
    for each, state in zip(models, data, strict=True):
        refuse_data_of_another(each, state)
    settings: dict[str, Any] = {"law": law, "options": options, "on_unsolved": on_unsolved}
    if native is not None and native.waits:
        return advance_at_servers(native, models, data, steps, **settings, timeout=timeout)
    count = threads or (1 if native is None else native.threads)
    return advance_all(models, data, count, steps, **settings)


class Stepping(NamedTuple):
    """How states are stepped."""

    client: Client
    law: Law
    material: Material
    options: Options | None
    on_unsolved: OnUnsolved

    def step(
        self, models: Sequence[mujoco.MjModel], data: Sequence[mujoco.MjData]
    ) -> list[tuple[BuiltProblem, Solution]]:
        """One step of all states, or of none."""
        found = []
        for i, (model, state) in enumerate(zip(models, data, strict=True)):
            with naming(f"data[{i}]"):
                found.append(self.build(model, state))
        outcomes = self.solve(found)
        solutions = []
        for i, (state, outcome) in enumerate(zip(data, outcomes, strict=True)):
            with naming(f"data[{i}]"):
                solutions.append(value_of(outcome))
                self.report(state, solutions[-1])
        for model, state, built, solution in zip(models, data, found, solutions, strict=True):
            apply(model, state, built, solution)
        return list(zip(found, solutions, strict=True))

    def build(self, model: mujoco.MjModel, data: mujoco.MjData) -> BuiltProblem:
        """The problem of a state."""
        return build_problem(model, data, law=self.law, material=self.material)

    def solve(self, built: Sequence[BuiltProblem]) -> list[Solution | SapError]:
        """The outcomes of problems."""
        return self.client.solve_batch([each.problem for each in built], self.options)

    def report(self, data: mujoco.MjData, solution: Solution) -> None:
        """Raises or warns if an island was not solved."""
        report_unsolved(solution, self.on_unsolved, data.time)


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Puts the name of a state or environment before the message of an error."""
    try:
        yield
    except SapError as error:
        error.message = f"{what}: {error.message}"
        error.args = (error.message, *error.args[1:])
        raise


def one_each(model: Models, count: int) -> Sequence[mujoco.MjModel]:
    """The model of each state."""
    models = [model] if isinstance(model, mujoco.MjModel) else model
    if len(models) == 1:
        return [*models] * count
    if len(models) != count:
        raise InvalidArgument(f"there are {len(models)} models for {count} states", "model")
    return models
