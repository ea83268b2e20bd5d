"""Judges recorded runs of a model, and finds the causes of the worst errors."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from sap_islands.arrays import FloatArray
from sap_islands.client import Client, connect
from sap_islands.errors import InvalidArgument
from sap_islands.problem_files import PathLike, save_problem
from sap_islands.referee.causes import find_cause, reset_of
from sap_islands.referee.counterfactuals import Trial
from sap_islands.referee.exact_steps import ExactSteps
from sap_islands.referee.judging import JUDGMENTS, Judgment, judge
from sap_islands.referee.native_judging import NativeJudge, Refused
from sap_islands.referee.run_reader import Source, read_runs
from sap_islands.referee.runs import Run, Step
from sap_islands.referee.verdict import NO_FAULTS, Verdict, WorstState

TOLERANCE = 1e-3
DIAGNOSE = 200
_MAX_WORST = 1000
_MAX_THREADS = 1024  # each has an MjData
_AT_ONCE = 512  # states between two looks at the keyboard


class _Found(NamedTuple):
    """A state above the tolerance."""

    number: int
    file: str
    step: Step
    judgment: Judgment
    reset: str

    def rank(self) -> tuple[bool, float]:
        """Ascending from the most important: faults before resets, large errors before small."""
        return bool(self.reset), -self.judgment.error


def certify(
    model: mujoco.MjModel | PathLike,
    runs: Source | Sequence[Source],
    *,
    tolerance: float = TOLERANCE,
    sample: int | None = None,
    skip_invalid: bool = False,
    diagnose: int = DIAGNOSE,
    worst: PathLike | None = None,
    threads: int | None = None,
    client: Client | None = None,
    progress: bool = False,
) -> Verdict:
    """Compares recorded steps of a simulator with the exact ones of a MuJoCo model.

    Args:
        model: The model that was simulated, or the path of its file (MJCF, URDF or MJB).
        runs: One or several runs, each the path of an .npz file or a mapping of names to arrays;
            for the arrays see `sap_islands.referee.runs`.
        tolerance: Largest error of an exact state [-].
        sample: Number of states to judge, chosen at random; None: all.
        skip_invalid: Whether states with numbers that are not finite are left out and counted;
            otherwise they are an error.
        diagnose: Number of states above the tolerance whose causes are looked for.
        worst: Directory for the worst states, each as a run of one state and as a problem file
            whose guess is the recorded velocity; None: not saved.
        threads: That judge states in this process, each with an MjData of its own; None: as many
            as the process may use. A verdict does not depend on it.
        client: Solves the problems; None: in this process, which is many times faster.
        progress: Whether to show a progress bar.

    Raises:
        InvalidArgument: A run does not fit the model, or the model has what MuJoCo's convex
            problem of one step is not: ipc, RK4.
    """
    _check(tolerance, sample, diagnose, threads)
    sources: list[Source] = [runs] if isinstance(runs, str | os.PathLike | Mapping) else [*runs]
    if not sources:
        raise InvalidArgument("there are no runs", "runs")
    steps = ExactSteps(model if isinstance(model, mujoco.MjModel) else load_model(model))
    directory = None if worst is None else Path(worst)
    if directory is not None:  # what cannot be made ends the call before the work, not after it
        directory.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        native = None
        if client is None:
            client = stack.enter_context(connect("embedded:"))
            processors = min(len(os.sched_getaffinity(0)), _MAX_THREADS)
            native = NativeJudge(steps, threads or processors)
        court = _Court(steps, client, native, tolerance)
        stack.enter_context(_without_warnings())
        for run in read_runs(steps.model, sources, sample, skip_invalid):
            court.hear(run, progress)
        return court.verdict(diagnose, directory)


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Keeps MuJoCo from printing what counterfactual steps lead to, and from writing a log."""
    former = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda _: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(former)


def load_model(path: PathLike) -> mujoco.MjModel:
    """Reads a model from an MJCF, URDF or MJB file.

    Raises:
        InvalidArgument: The file cannot be read; the message has the reason.
    """
    name = os.fspath(path)
    read = (
        mujoco.MjModel.from_binary_path if name.endswith(".mjb") else mujoco.MjModel.from_xml_path
    )
    try:
        return read(name)
    except (ValueError, OSError, mujoco.FatalError) as error:
        raise InvalidArgument(f"{name}: {' '.join(str(error).split())}", "model") from None


def _check(tolerance: float, sample: int | None, diagnose: int, threads: int | None) -> None:
    if not 0 < tolerance < np.inf:
        raise InvalidArgument(f"tolerance is {tolerance}; it must be positive", "tolerance")
    if sample is not None and sample < 1:
        raise InvalidArgument(f"sample is {sample}; it must be at least 1", "sample")
    if diagnose < 0:
        raise InvalidArgument(f"diagnose is {diagnose}; it must be at least 0", "diagnose")
    if threads is not None and not 1 <= threads <= _MAX_THREADS:
        message = f"threads is {threads}; it must be at least 1 and at most {_MAX_THREADS}"
        raise InvalidArgument(message, "threads")


class _Court:
    """Collects the judgments of runs."""

    def __init__(
        self, steps: ExactSteps, client: Client, native: NativeJudge | None, tolerance: float
    ) -> None:
        self._steps, self._client, self._native = steps, client, native
        self._tolerance = tolerance
        self._found: list[_Found] = []
        self._judged: list[NDArray[Any]] = [np.empty(0, JUDGMENTS)]
        self._states: list[FloatArray] = [np.empty((3, 0))]  # number, world and time of each
        self._recorded = self._skipped = self._above = 0
        self._assumed: dict[str, str] = {}
        self._unused: list[str] = []
        self._has_contacts = True

    def hear(self, run: Run, progress: bool) -> None:
        """Judges the chosen states of a run."""
        with tqdm(total=len(run.chosen), disable=None if progress else True, leave=False) as bar:
            for numbers, judged in self._judgments(run):
                time = run.rows(numbers).arrays.get("time", np.full(len(numbers), np.nan))
                self._states.append(
                    np.array([self._recorded + numbers, run.world[numbers], time], float)
                )
                self._judged.append(judged)
                for i in np.flatnonzero(~(judged["bound"] <= self._tolerance)).tolist():
                    self._convict(run, int(numbers[i]), Judgment(*judged[i].item()))
                bar.update(len(numbers))
        self._recorded += run.recorded
        self._assumed |= run.assumed
        self._skipped += run.skipped
        self._unused += [name for name in run.unused if name not in self._unused]
        self._has_contacts &= run.has_contacts

    def _judgments(self, run: Run) -> Iterator[tuple[NDArray[np.int64], NDArray[Any]]]:
        """Numbers of states, and their judgments."""
        one_by_one = judge(self._steps, self._client, map(run.state, run.chosen.tolist()))
        for first in range(0, len(run.chosen), _AT_ONCE):
            numbers = run.chosen[first : first + _AT_ONCE]
            if self._native is None:
                some = islice(one_by_one, len(numbers))
                yield numbers, np.array([judgment for _, judgment in some], JUDGMENTS)
                continue
            try:
                yield numbers, self._native.judge(run.rows(numbers))
            except Refused as refused:
                # State by state the error says what MuJoCo or the solver refuses.
                state = run.state(int(numbers[refused.row]))
                next(judge(self._steps, self._client, [state]))
                raise refused.error from None

    def _convict(self, run: Run, number: int, judgment: Judgment) -> None:
        """Takes a state above the tolerance."""
        self._above += 1
        step = run.step(number)
        reset = reset_of(self._steps, step)
        self._found.append(_Found(self._recorded + number, run.name, step, judgment, reset))
        if len(self._found) > 2 * _MAX_WORST:
            self._keep_the_worst()

    def _keep_the_worst(self) -> None:
        self._found.sort(key=_Found.rank)
        del self._found[_MAX_WORST:]

    def verdict(self, diagnose: int, directory: Path | None) -> Verdict:
        """The verdict, with the causes of `diagnose` states; writes files of the worst."""
        self._keep_the_worst()
        self._found.sort(key=lambda found: -found.judgment.error)
        worst = [self._describe(found) for found in self._found]
        chosen = self._to_diagnose(diagnose)
        for i in chosen:
            found = self._found[i]
            trial = Trial(self._steps, self._client, found.step.state, self._tolerance)
            cause = find_cause(trial, found.step, found.judgment)
            worst[i].cause, worst[i].detail, worst[i].bodies = cause
        if directory is not None:
            for found in self._found:
                self._save(found, directory / f"state-{found.number}")
        causes = Counter(state.cause for state in worst)
        causes["undiagnosed"] += self._above - len(worst)
        no_faults = sum(causes[name] for name in NO_FAULTS)
        number, world, time = np.concatenate(self._states, axis=1)
        judged = np.concatenate(self._judged)
        return Verdict(
            states=len(number),
            recorded=self._recorded,
            skipped=self._skipped,
            exact=len(number) - self._above,
            faults=self._above - no_faults,
            tolerance=self._tolerance,
            worst=worst,
            above=self._above,
            diagnosed=len(chosen),
            causes={name: count for name, count in causes.most_common() if count},
            assumed=self._assumed,
            unused=self._unused,
            number=number.astype(np.int64),
            world=world.astype(np.int64),
            time=time,
            error=judged["error"],
            bound=judged["bound"],
            island_error=judged["island_error"],
            lost_pairs=judged["lost_pairs"],
            found_error=judged["found_error"],
            asleep=int(np.count_nonzero(judged["asleep"])),
            has_contacts=self._has_contacts,
        )

    def _to_diagnose(self, count: int) -> list[int]:
        """Indices of faults: the worst of every world first, then the second of each, ..."""
        in_world: Counter[int] = Counter()
        ranks = []
        for i, found in enumerate(self._found):
            if not found.reset:
                world = found.step.state.world
                ranks.append((in_world[world], i))
                in_world[world] += 1
        return sorted(i for _, i in sorted(ranks)[:count])

    def _describe(self, found: _Found) -> WorstState:
        state, judgment = found.step.state, found.judgment
        return WorstState(
            state=found.number,
            file=found.file,
            row=state.number,
            error=judgment.error,
            bound=judgment.bound,
            island_error=judgment.island_error,
            world=state.world,
            time=None if np.isnan(state.time) else state.time,
            contacts=judgment.contacts,
            found_contacts=judgment.found_contacts,
            lost_pairs=judgment.lost_pairs,
            cause="reset" if found.reset else "undiagnosed",
            detail=found.reset,
        )

    def _save(self, found: _Found, path: Path) -> None:
        """Writes a state as a run and as a problem, with the recorded velocity as its guess."""
        state = found.step.state
        np.savez_compressed(path.with_suffix(".npz"), allow_pickle=False, **state.to_arrays())
        trial = Trial(self._steps, self._client, state, self._tolerance)
        trial.built.problem.trees.guess_velocity[:] = trial.recorded_solution()
        save_problem(trial.built.problem, path.with_suffix(".json.gz"))
