"""The steps of a session in flight, and how they are resent on a new stream after a failure.

The server starts a step from the velocities of the last solved step, matched by the identifiers of
trees and bodies. A new stream has no last step. So the first step that is resent carries these
velocities as its guess, which gives the same bits as on the old stream. The other steps are held
back until it is answered: if it fails, the next one has to carry the guess.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from sap_islands.arrays import FloatArray, UIntArray
from sap_islands.messages import StepOutcome, step_request
from sap_islands.options import Options, from_message
from sap_islands.problem import Problem
from sap_islands.solution import IslandStatus, Solution
from sap_islands.v1 import solver_service_pb2 as service


class _Step(NamedTuple):
    step_id: int
    request: bytes


class SessionState:
    """The unanswered steps in the order of `send`, and the last solved one. Does no I/O."""

    def __init__(self) -> None:
        self._last_id = 0
        self._unanswered: deque[_Step] = deque()
        self._on_stream = 0  # how many of them, from the first on, were written to the stream
        self._last_solved: tuple[bytes, Solution] | None = None
        self._guess_pending = False

    @property
    def unanswered(self) -> int:
        """Number of steps without an answer."""
        return len(self._unanswered)

    @property
    def has_unsent(self) -> bool:
        """Whether some steps have not been written to the stream."""
        return self._on_stream < len(self._unanswered)

    def add(self, problem: Problem, options: Options | None) -> int:
        """Appends a step and returns its number."""
        request = step_request(self._last_id + 1, problem, options)
        self._last_id += 1
        self._unanswered.append(_Step(self._last_id, request))
        return self._last_id

    def take_sendable(self) -> list[bytes]:
        """The requests to write to the stream now; they count as written."""
        if self._guess_pending:
            if self._on_stream or not self._unanswered or self._last_solved is None:
                return []
            self._on_stream = 1
            return [_with_guess(self._unanswered[0], *self._last_solved)]
        first, self._on_stream = self._on_stream, len(self._unanswered)
        return [self._unanswered[i].request for i in range(first, self._on_stream)]

    def answer(self, outcome: StepOutcome) -> None:
        """Records the outcome of the oldest step and removes it."""
        step = self._unanswered.popleft()
        self._on_stream -= 1
        if isinstance(outcome.outcome, Solution):
            self._last_solved = (step.request, outcome.outcome)
            self._guess_pending = False

    def restart_stream(self) -> None:
        """Marks all steps as not written, after a new stream has replaced the broken one."""
        self._on_stream = 0
        self._guess_pending = self._last_solved is not None


def _parse(request: bytes) -> tuple[Problem, Options | None]:
    step = service.SolveSessionRequest.FromString(request).step
    options = from_message(step.options) if step.HasField("options") else None
    return Problem.from_bytes(step.problem.SerializeToString()), options


def _with_guess(step: _Step, last_request: bytes, last: Solution) -> bytes:
    """The step's request with the velocities of the last solved step as its guess."""
    problem, options = _parse(step.request)
    known = _velocities_by_name(_parse(last_request)[0], last)
    if not known:
        return step.request
    trees, bodies = problem.trees, problem.bodies
    if not trees.guess_velocity.size:
        trees.guess_velocity = _guess(
            known, trees.tree_id, trees.dofs, trees.free_motion_velocity.ravel()
        )
    if not bodies.guess_velocity.size:
        dofs = np.full(bodies.body_id.size, 6, np.uint32)
        bodies.guess_velocity = _guess(
            known, bodies.body_id, dofs, bodies.free_motion_velocity.ravel()
        )
    return step_request(step.step_id, problem, options)


def _velocities_by_name(problem: Problem, solution: Solution) -> dict[int, FloatArray]:
    """Velocities of trees and bodies by identifier, without those of numerically failed islands."""
    trees, bodies = problem.trees, problem.bodies
    # -1 marks a tree or body without an identifier.
    names = np.full(trees.count + bodies.count, -1, np.int64)
    if trees.tree_id.size == trees.count:
        names[: trees.count] = trees.tree_id
    if bodies.body_id.size == bodies.count:
        names[trees.count :] = bodies.body_id
    dofs = np.concatenate((trees.dofs, np.full(bodies.count, 6, np.uint32)))
    if solution.velocity.size != dofs.sum():
        return {}  # the response mask excluded the velocities
    status = solution.islands.status
    failed = np.zeros(len(names), bool)
    if len(status) and len(solution.island_of_tree) == len(names):
        in_island = solution.island_of_tree >= 0
        failed[in_island] = (
            status[solution.island_of_tree[in_island]] == IslandStatus.NUMERICAL_FAILURE
        )
    pieces = np.split(solution.velocity, np.cumsum(dofs)[:-1])
    return {
        int(name): piece
        for name, piece, has_failed in zip(names, pieces, failed, strict=True)
        if name >= 0 and not has_failed
    }


def _guess(
    known: dict[int, FloatArray], names: UIntArray, dofs: UIntArray, v_star: FloatArray
) -> FloatArray:
    """Guess [nv]: known velocities where there are any, v* elsewhere; empty if none is known."""
    guess = v_star.copy()
    found = False
    start = 0
    for name, n in zip(names.tolist(), dofs.tolist(), strict=False):
        velocity = known.get(name)
        if velocity is not None and len(velocity) == n:
            guess[start : start + n] = velocity
            found = True
        start += n
    return guess if found else np.empty(0)
