"""Bodies at rest, left out of the steps of a simulation until something moves them.

`Options(rest=Rest(horizon=...))` makes each answer bound how far every island can move within a
horizon. Islands within a tolerance are left out, and take one long step at the end of each horizon.
The page deploy/docs/rest.md has the rules, and what the simulator does itself.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sap_islands._library.c_resting import Moves, Resting
from sap_islands.arrays import FloatArray, IntArray, UIntArray
from sap_islands.problem import Problem
from sap_islands.solution import Solution

__all__ = ["BodyMoves", "LongSteps", "RestCounts", "RestingIslands", "WakeReason"]


class WakeReason(enum.IntEnum):
    """Why an island wakes."""

    PAIR = 0  # a body outside of the island within the margin
    INPUT = 1  # load, motor, target, material or gravity changed


class BodyMoves(NamedTuple):
    """How the poses of M bodies follow their velocities, which they have from now on.

    Attributes:
        body_id: [M].
        duration: [M] for which the pose follows the velocity; 0: it stays where it is [s].
        velocity: [M, 6] linear, then angular, in world axes [m/s, rad/s].
    """

    body_id: UIntArray
    duration: FloatArray
    velocity: FloatArray


class LongSteps(NamedTuple):
    """Outcome of the long steps.

    Attributes:
        resting: Bodies that rest for another horizon.
        woken: Bodies of refused steps.
    """

    resting: BodyMoves
    woken: BodyMoves


class RestCounts(NamedTuple):
    """Numbers of islands since the beginning.

    Attributes:
        woken_by_pair: By a body from outside.
        woken_by_input: By an input that changed.
        long_steps: That were taken, refused ones included.
        long_steps_refused: Each of which woke an island.
    """

    woken_by_pair: int
    woken_by_input: int
    long_steps: int
    long_steps_refused: int


class RestingIslands:
    """Which bodies rest, with which velocities, until when. Bodies are told apart by `body_id`.

    One step of a simulation: `due`, and the long step of these bodies with `take_long_steps`;
    `wake`; then the step of all that do not rest with `take_step`. Islands with articulated trees
    never rest. Every method that takes an answer raises InvalidArgument where it does not fit, and
    then changes nothing.

    Attributes:
        tolerance: As given [m].
        time_step: Of the ordinary steps [s].
    """

    def __init__(
        self, horizon: float = 0.25, tolerance: float = 1e-4, time_step: float = 0.01
    ) -> None:
        """Begins with all bodies awake.

        Args:
            horizon: Length of certificates and long steps, rounded to whole time steps, at most
                10000 [s].
            tolerance: Largest `rest_drift` of an island that rests [m].
            time_step: Of the ordinary steps [s].

        Raises:
            InvalidArgument: One of them is not finite and > 0, or the horizon is too long.
        """
        self._resting = Resting(horizon, tolerance, time_step)
        self.tolerance = tolerance
        self.time_step = time_step

    @property
    def horizon(self) -> float:
        """Horizon of `Options.rest` and of long steps: whole time steps [s]."""
        return self._resting.horizon()

    @property
    def counts(self) -> RestCounts:
        """Wakes by reason, and long steps."""
        return RestCounts(*self._resting.counts())

    def island_of(self, body_id: ArrayLike) -> IntArray:
        """The number of the island that each body rests in; -1: it is awake."""
        return self._resting.islands(_ids(body_id))

    def rests(self, body_id: ArrayLike) -> NDArray[np.bool_]:
        """Whether each body rests, and so is not in the next problem."""
        rests: NDArray[np.bool_] = self.island_of(body_id) >= 0
        return rests

    def due(self) -> BodyMoves:
        """Bodies of the islands whose horizon ends now, with the velocities that they kept."""
        return _moves(self._resting.due())

    def wake(self, body_id: ArrayLike, reason: WakeReason = WakeReason.PAIR) -> BodyMoves:
        """Wakes the islands of the bodies: all their bodies. Who is awake is passed over."""
        return _moves(self._resting.wake(_ids(body_id), int(reason)))

    def set_time_step(self, time_step: float) -> BodyMoves:
        """Wakes all, as where gravity changes, and goes on with steps of another length [s].

        Raises:
            InvalidArgument: It is not finite and > 0.
        """
        moves = _moves(self._resting.set_time_step(time_step))
        self.time_step = time_step
        return moves

    def take_long_steps(self, problem: Problem, solution: Solution) -> LongSteps:
        """Takes the answer to the long step of whole islands that are due.

        Args:
            problem: Its time step is the horizon, its reference time step the ordinary one; guess
                and initial velocity are those that the bodies kept.
            solution: With `velocity`, `island_of_tree` and `islands`.
        """
        moves = self._resting.take("take_long_steps", problem, solution)
        return LongSteps(
            _moves(moves, slice(moves.resting)), _moves(moves, slice(moves.resting, None))
        )

    def take_step(self, problem: Problem, solution: Solution) -> BodyMoves:
        """Takes the answer to the step of all that are awake, which ends a time step.

        Args:
            problem: With `body_id` and `initial_velocity`.
            solution: With `velocity`, `island_of_tree` and `islands`.

        Returns:
            The bodies that rest from now on, which the caller moves with all others.

        Raises:
            FailedPrecondition: Bodies are due for a long step.
        """
        return _moves(self._resting.take("take_step", problem, solution))


def _ids(body_id: ArrayLike) -> NDArray[np.uint32]:
    ids: NDArray[np.uint32] = np.ascontiguousarray(np.atleast_1d(body_id), np.uint32)
    return ids


def _moves(moves: Moves, which: slice = slice(None)) -> BodyMoves:
    body_id, duration, velocity = moves.arrays
    return BodyMoves(body_id[which], duration[which], velocity[which])
