"""Steps under changed conditions: the change that leads to the recorded velocity is its cause."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import mujoco
import numpy as np

from sap_islands.arrays import FloatArray
from sap_islands.client import Client
from sap_islands.errors import SapError
from sap_islands.mujoco.assembly import BuiltProblem
from sap_islands.referee.exact_steps import Edit, ExactSteps
from sap_islands.referee.judging import CONVERGED, Comparison, compare, tree_squares
from sap_islands.referee.runs import State
from sap_islands.solution import Solution

_OF_THE_ERROR = 30  # what a change must divide the error by to be the cause
_NEARLY_RIGID = 1e-3  # factor of R where the law does not count
_GOLDEN = (5**0.5 - 1) / 2
_PRECISION = 1e-6  # of the logarithm of a factor
_COARSE, _OF_COARSE = 1e-2, 3  # one that is so near the right factor divides the error by that
_ALL_DIGITS = 17
_MAX_VALLEYS = 3  # of errors over a factor that are searched
_AS_GOOD = 10.0  # errors within this factor are equally good


class Change(NamedTuple):
    """A condition of a step that differs from the model or recording.

    Attributes:
        cause: Its name in the report.
        detail: What was changed, and by how much.
        patches: (object, field, value) in the model.
        edit: Changes the contacts.
        state: The state with other inputs; None: as recorded.
    """

    cause: str
    detail: str
    patches: tuple[tuple[Any, str, Any], ...] = ()
    edit: Edit | None = None
    state: State | None = None


class Explanation(NamedTuple):
    """Possible cause of the recorded velocity.

    Attributes:
        cause: Its name in the report.
        detail: What was changed, and by how much.
        error: What the change leaves of the error.
    """

    cause: str
    detail: str
    error: float


class Fit(NamedTuple):
    """A change by a factor that explains the record.

    Attributes:
        change: The change.
        error: Of the record under it.
        digits: Of the factor; one that somebody has chosen has few.
    """

    change: Change
    error: float
    digits: int


class Trial:
    """A state above the tolerance, and its steps under changes.

    Attributes:
        steps: Problems of the model.
        client: Solves them.
        state: The state.
        tolerance: Of the error [-].
        data: Memory, as `build` left it for the unchanged problem until the next step.
        built: The unchanged problem.
        solution: Its solution.
        comparison: Its comparison with the record.
        scratch: Memory of the steps under changes.
    """

    def __init__(self, steps: ExactSteps, client: Client, state: State, tolerance: float) -> None:
        """Solves the unchanged step."""
        self.steps, self.client, self.state, self.tolerance = steps, client, state, tolerance
        self.data = steps.new_data()
        self.scratch = steps.new_data()
        self.built, self.solution = self.solve(self.data)
        self.comparison: Comparison = compare(steps, self.data, state, self.built, self.solution)

    def solve(self, data: mujoco.MjData, **build: Any) -> tuple[BuiltProblem, Solution]:
        """The problem of the state, or one of `build`, and its solution."""
        state = build.pop("state", None) or self.state
        built = self.steps.build(data, state, **build)
        return built, self.client.solve(built.problem, CONVERGED)

    def error_of(self, velocity: FloatArray) -> float:
        """Distance of the recorded velocity from another, over the scale of the unchanged step."""
        difference = self.state.next_qvel - velocity
        if self.steps.sleeps:
            difference = np.where(self.state.next_qvel == 0, 0.0, difference)
        square = tree_squares(self.steps.model, self.data, difference).sum()
        return float(np.sqrt(square) / self.comparison.found.scale)

    def next_velocity(self, change: Change, **build: Any) -> FloatArray:
        """Velocity after the step under a change; NaN where the change makes no solvable step."""
        with patched(change.patches):
            try:
                _, solution = self.solve(
                    self.scratch, edit=change.edit, state=change.state, **build
                )
                return self.steps.next_velocity(self.scratch, solution.velocity)
            except SapError:
                return np.full(self.steps.model.nv, np.nan)

    def error(self, change: Change, **build: Any) -> float:
        """Error of the record against the step under a change."""
        velocity = self.next_velocity(change, **build)
        return float(np.nan_to_num(self.error_of(velocity), nan=np.inf))

    def explains(self, error: float) -> bool:
        """Whether a change with this error is the cause: nearly nothing is left to explain."""
        return bool(error <= min(self.tolerance, self.comparison.found.error / _OF_THE_ERROR))

    def explanations(self, changes: Iterator[Change]) -> Iterator[Explanation]:
        """The changes that explain the record."""
        for change in changes:
            error = self.error(change)
            if self.explains(error):
                yield Explanation(change.cause, change.detail, error)

    def error_of_problem(self, data: mujoco.MjData, built: BuiltProblem) -> float:
        """Error of the record against the solution of a changed problem, built in `data`."""
        self.steps.restore(data, self.state)
        velocity = self.client.solve(built.problem, CONVERGED).velocity
        return self.error_of(self.steps.next_velocity(data, velocity))

    def recorded_solution(self) -> FloatArray:
        """The solution that the integrator turns into the recorded velocity; affine in it."""
        v_star, exact = self.solution.velocity, self.comparison.exact
        if np.allclose(v_star, exact, rtol=1e-12, atol=1e-12):
            return self.state.next_qvel
        gain = np.empty((len(v_star), len(v_star)))
        for dof, unit in enumerate(np.eye(len(v_star))):
            self.steps.restore(self.data, self.state)
            gain[:, dof] = self.steps.next_velocity(self.data, v_star + unit) - exact
        found: FloatArray = v_star + np.linalg.solve(gain, self.state.next_qvel - exact)
        return found

    def unexplained_momentum(self) -> float:
        """Part of the momentum of the constraints that no admissible forces give, under any law.

        The projection of M (v - v_free) on the cone of these forces is a problem with the free
        motion v_free - v, without bias and with little compliance; what remains is the motion after
        its solution.
        """
        recorded = self.recorded_solution()
        problem = self.steps.build(self.scratch, self.state).problem
        trees, contacts, rows = problem.trees, problem.contacts, problem.rows
        momentum = trees.free_motion_velocity - recorded
        trees.free_motion_velocity[:] = trees.guess_velocity[:] = momentum
        targets = (
            rows.target_velocity,
            contacts.target_velocity,
            contacts.target_angular_velocity,
        )
        for target in targets:
            target[:] = 0.0
        for R in (rows.regularization, contacts.regularization_n, contacts.regularization_t):
            R *= _NEARLY_RIGID
        left = self.client.solve(problem, CONVERGED).velocity
        squares = [tree_squares(self.steps.model, self.data, v).sum() for v in (left, momentum)]
        return float(np.sqrt(squares[0] / squares[1])) if squares[1] > 0 else 0.0

    def fit(self, grid: tuple[float, ...], change_by: Callable[[float], Change]) -> Fit | None:
        """The factor that explains the record: near the least errors of a grid."""
        errors = np.array([np.inf, *(self.error(change_by(factor)) for factor in grid), np.inf])
        inner = errors[1:-1]
        valleys = np.flatnonzero((inner < errors[:-2]) & (inner <= errors[2:]))
        for at in valleys[np.argsort(inner[valleys])][:_MAX_VALLEYS].tolist():
            around = grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)]
            error, factor = self._search(*around, change_by)
            if self.explains(error):
                return self._rounded(error, factor, change_by)
        return None

    def _search(
        self, low: float, high: float, change_by: Callable[[float], Change]
    ) -> tuple[float, float]:
        """The least error between two factors and its factor, by golden section."""
        low, high = np.log(low), np.log(high)
        inner = [high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)]
        found = [self.error(change_by(float(np.exp(x)))) for x in inner]
        best = min(zip(found, inner, strict=True))
        while high - low > _PRECISION:
            if high - low < _COARSE and best[0] > self.comparison.found.error / _OF_COARSE:
                break
            if found[0] < found[1]:
                high, new = inner[1], 0
                inner = [high - _GOLDEN * (high - low), inner[0]]
                found = [np.inf, found[0]]
            else:
                low, new = inner[0], 1
                inner = [inner[1], low + _GOLDEN * (high - low)]
                found = [found[1], np.inf]
            found[new] = self.error(change_by(float(np.exp(inner[new]))))
            best = min(best, (found[new], inner[new]))
        return best[0], float(np.exp(best[1]))

    def _rounded(self, error: float, factor: float, change_by: Callable[[float], Change]) -> Fit:
        """The fit of a factor, or of one of fewer digits that is as good."""
        limit = max(_AS_GOOD * error, _AS_GOOD * _PRECISION * self.comparison.found.error)
        for digits in (1, 2):
            rounded = float(f"{factor:.{digits}g}")
            error_of_rounded = self.error(change_by(rounded))
            if error_of_rounded <= limit:
                return Fit(change_by(rounded), error_of_rounded, digits)
        return Fit(change_by(factor), error, _ALL_DIGITS)


@contextmanager
def patched(patches: tuple[tuple[Any, str, Any], ...]) -> Iterator[None]:
    """Sets numbers and arrays of the model, and sets them back."""
    former = []
    for where, name, value in patches:
        old = getattr(where, name)
        former.append((where, name, old.copy() if isinstance(old, np.ndarray) else old))
        _set(where, name, value)
    try:
        yield
    finally:
        for where, name, old in reversed(former):
            _set(where, name, old)


def _set(where: Any, name: str, value: Any) -> None:
    if isinstance(getattr(where, name), np.ndarray):
        getattr(where, name)[...] = value
    else:
        setattr(where, name, value)
