"""The steps of a session in flight, and how they are resent on a new stream after a failure.

The server starts a step from the velocities of the last solved step, matched by the identifiers of
trees and bodies. A new stream has no last step. So the first step that is resent carries these
velocities as its guess, which gives the same bits as on the old stream. The other steps are held
back until it is answered: if it fails, the next one has to carry the guess. In the same way the
first step after `reset` carries v*, where a step starts that follows none.

The server must return what a guess needs. Where a response mask excludes it, it is asked for, and
removed from the solution.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np

from sap_islands._remote.messages import step_request
from sap_islands.arrays import FloatArray, UIntArray
from sap_islands.options import Options, from_message
from sap_islands.problem import Problem
from sap_islands.session import StepOutcome
from sap_islands.solution import IslandStatus, Solution
from sap_islands.v1 import solver_service_pb2 as service

_NEEDED_FIELDS = ("velocity", "island_of_tree", "islands")


class _Step(NamedTuple):
    step_id: int
    request: bytes
    unwanted: tuple[str, ...]  # fields that its response mask excludes


LastSolved: TypeAlias = tuple[bytes, Solution]  # its request, and its solution


class SessionState:
    """The unanswered steps in the order of `send`, and the last solved one. Does no I/O."""

    def __init__(self, options: Options | None, reconnects: bool) -> None:
        """Starts without steps.

        Args:
            options: Of the steps without their own.
            reconnects: Whether a new stream may follow a broken one.
        """
        self._reconnects = reconnects
        self.options, self._unwanted = self._widen(options)
        self._last_id = 0
        self._unanswered: deque[_Step] = deque()
        self._on_stream = 0  # how many of them, from the first on, were written to the stream
        self._last_solved: LastSolved | None = None
        self._guess_pending = False
        self._guessed = False  # whether the first step has the last velocities as its guess

    @property
    def unanswered(self) -> int:
        """Number of steps without an answer."""
        return len(self._unanswered)

    @property
    def last_solved(self) -> LastSolved | None:
        """The last solved step, from whose velocities the next one starts."""
        return self._last_solved

    @property
    def on_stream(self) -> int:
        """Number of steps without an answer that were written to the stream."""
        return self._on_stream

    @property
    def has_unsent(self) -> bool:
        """Whether some steps have not been written to the stream."""
        return self._on_stream < len(self._unanswered)

    def add(self, problem: Problem, options: Options | None) -> int:
        """Appends a step and returns its number."""
        unwanted = self._unwanted
        if options is not None:
            options, unwanted = self._widen(options)
        request = step_request(self._last_id + 1, problem, options)
        self._last_id += 1
        self._unanswered.append(_Step(self._last_id, request, unwanted))
        return self._last_id

    def take_sendable(self, max_in_flight: int) -> list[bytes]:
        """The requests to write to the stream now; they count as written."""
        if self._guess_pending:
            if self._on_stream or not self._unanswered:
                return []
            self._on_stream = 1
            request, self._guessed = _with_guess(self._unanswered[0], self._last_solved)
            return [request]
        first = self._on_stream
        self._on_stream = max(first, min(max_in_flight, len(self._unanswered)))
        return [self._unanswered[i].request for i in range(first, self._on_stream)]

    def answer(self, outcome: StepOutcome) -> StepOutcome:
        """Records the outcome of the oldest step, removes it, and returns what the caller sees."""
        step = self._unanswered.popleft()
        self._on_stream -= 1
        guessed, self._guessed = self._guessed, False
        solution = outcome.outcome
        if not isinstance(solution, Solution):
            return outcome
        self._last_solved = (step.request, solution)
        self._guess_pending = False
        if step.unwanted:
            solution = solution.without(step.unwanted)
        return StepOutcome(outcome.step_id, solution, outcome.warm_started or guessed)

    def reset(self) -> None:
        """Makes the next step start as the first one of a session."""
        self._last_solved = None
        self._guess_pending = True

    def withdraw(self, step_id: int, last_solved: LastSolved | None) -> None:
        """Forgets the steps from `step_id` on; the next one starts from `last_solved`.

        For a stream that is given up, since it may have taken these steps.
        """
        while self._unanswered and self._unanswered[-1].step_id >= step_id:
            self._unanswered.pop()
        self._last_solved = last_solved

    def restart_stream(self) -> None:
        """Marks all steps as not written, after a new stream has replaced the broken one."""
        self._on_stream = 0
        self._guessed = False
        self._guess_pending = self._last_solved is not None

    def _widen(self, options: Options | None) -> tuple[Options | None, tuple[str, ...]]:
        """The options to send, and the fields that they ask for beyond the given ones."""
        if options is None or not options.response_mask or not self._reconnects:
            return options, ()
        unwanted = tuple(name for name in _NEEDED_FIELDS if name not in options.response_mask)
        return replace(options, response_mask=options.response_mask + unwanted), unwanted


def _parse(request: bytes) -> tuple[Problem, Options | None]:
    step = service.SolveSessionRequest.FromString(request).step
    options = from_message(step.options) if step.HasField("options") else None
    return Problem.from_bytes(step.problem.SerializeToString()), options


def _with_guess(step: _Step, last: LastSolved | None) -> tuple[bytes, bool]:
    """The step's request with the velocities of the last solved step as its guess, or v*.

    Also returns whether any tree or body has such a velocity.
    """
    problem, options = _parse(step.request)
    known = {} if last is None else _velocities_by_name(_parse(last[0])[0], last[1])
    trees, bodies = problem.trees, problem.bodies
    guessed = False
    if not trees.guess_velocity.size:
        trees.guess_velocity, found = _guess(
            known, trees.tree_id, trees.dofs, trees.free_motion_velocity.ravel()
        )
        guessed |= found
    if not bodies.guess_velocity.size:
        dofs = np.full(bodies.body_id.size, 6, np.uint32)
        bodies.guess_velocity, found = _guess(
            known, bodies.body_id, dofs, bodies.free_motion_velocity.ravel()
        )
        guessed |= found
    return step_request(step.step_id, problem, options), guessed


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
        return {}
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
) -> tuple[FloatArray, bool]:
    """Guess [nv]: known velocities where there are any, v* elsewhere; and whether any is known."""
    guess = v_star.copy()
    found = False
    start = 0
    for name, n in zip(names.tolist(), dofs.tolist(), strict=False):
        velocity = known.get(name)
        if velocity is not None and len(velocity) == n:
            guess[start : start + n] = velocity
            found = True
        start += n
    return guess, found
