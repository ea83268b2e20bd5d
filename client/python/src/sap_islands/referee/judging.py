"""Compares recorded velocities with exact ones, state by state and island by island.

    error = |v - v*|_M / max(|v*|_M, |v_free - v*|_M, small),   |x|_M^2 = x' M x

with v the recorded and v* the exact velocity after the step, v_free that without constraints, and
small = 1e-3 δt max(g, 1) sqrt(tr M / nv), a speed far below that of free fall over a step. The
norms are computed in the C library. The exact velocity is known up to its certificate: bound =
error + sqrt(2 sum gap) / scale, since the cost of a solve is strongly convex in the norm of M and
integrators contract.

In this process `native_judging` does all of it; here it is done state by state, with any client.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, get_type_hints

import mujoco
import numpy as np

from sap_islands._library.declarations import struct_type
from sap_islands.arrays import FloatArray, IntArray
from sap_islands.client import Client
from sap_islands.errors import InvalidArgument, value_of
from sap_islands.mujoco.assembly import BuiltProblem
from sap_islands.mujoco.native_calls import load_native_calls
from sap_islands.options import Options
from sap_islands.referee.contacts import lost_contacts, pair_keys
from sap_islands.referee.exact_steps import ExactSteps
from sap_islands.referee.runs import State
from sap_islands.solution import Solution

CONVERGED = Options(
    relative_tolerance=1e-10, response_mask=("velocity", "islands", "island_of_tree", "cost")
)
_MAX_STATES_AT_ONCE = 32
_MEMORY = 1 << 32  # of states at once [bytes]


class Judgment(NamedTuple):
    """Judgment of one state.

    Attributes:
        error: Of the recorded velocity [-].
        bound: Upper bound of the error against the exact optimum [-]; infinite: not solved.
        island_error: Largest error of an island [-].
        contacts: Contacts of the problem.
        found_contacts: Contacts that MuJoCo finds.
        lost_pairs: Pairs of geoms that overlap and were not recorded.
        found_error: The error against the step with the contacts that MuJoCo finds [-].
        asleep: Trees left out since they sleep.
    """

    error: float
    bound: float
    island_error: float
    contacts: int
    found_contacts: int
    lost_pairs: int
    found_error: float
    asleep: int


# Judgments as the elements of an array, and as `sap_mujoco_judgment`.
JUDGMENTS = np.dtype(
    [(name, "i8" if hint is int else "f8") for name, hint in get_type_hints(Judgment).items()]
)


class Comparison(NamedTuple):
    """A recorded velocity and an exact one.

    Attributes:
        exact: [nv] the velocity after the exact step.
        tree_error: [ntree] |v - v*|_M of each tree.
        island_of_tree: [ntree] island of each tree; -1: it has no constraint.
        found: The `sap_mujoco_comparison` of `client/mujoco/python_calls.h`.
    """

    exact: FloatArray
    tree_error: FloatArray
    island_of_tree: IntArray
    found: Any

    def worst_trees(self) -> list[int]:
        """The trees of the island with the largest error."""
        worst = int(self.found.worst_tree)
        island = self.island_of_tree[worst]
        return [worst] if island < 0 else np.flatnonzero(self.island_of_tree == island).tolist()


def judge(
    steps: ExactSteps, client: Client, recorded: Iterable[State]
) -> Iterator[tuple[State, Judgment]]:
    """Solves recorded steps and compares the recorded velocities with the solutions.

    Raises:
        SapError: A problem could not be built or solved; the message names state and world.
    """
    size = steps.model.narena + steps.model.nbuffer + 1
    at_once = int(np.clip(_MEMORY // (2 * size), 1, _MAX_STATES_AT_ONCE))
    own = [steps.new_data() for _ in range(at_once)]
    found = [steps.new_data() for _ in range(at_once)]
    remaining = iter(recorded)
    while chunk := list(itertools.islice(remaining, at_once)):
        built = [steps.build(data, state) for state, data in zip(chunk, own, strict=False)]
        twice = [i for i, state in enumerate(chunk) if state.contacts is not None]
        built += [steps.build(found[i], chunk[i], contacts="found") for i in twice]
        solutions = solve(client, [*chunk, *(chunk[i] for i in twice)], built)
        second = {i: (found[i], built[k], solutions[k]) for k, i in enumerate(twice, len(chunk))}
        for i, state in enumerate(chunk):
            one = (own[i], built[i], solutions[i])
            yield state, _judgment(steps, state, one, second.get(i))


def solve(
    client: Client, states: list[State], built: list[BuiltProblem], options: Options = CONVERGED
) -> list[Solution]:
    """The solutions of problems; where some fail, the error of the first names its state."""
    solutions: dict[int, Solution] = {}
    for i, outcome in client.stream_batch([each.problem for each in built], options):
        if isinstance(outcome, InvalidArgument):
            state = states[i]
            message = f"state {state.number} (world {state.world}): {outcome.message}"
            raise InvalidArgument(message, f"qpos[{state.number}]")
        solutions[i] = value_of(outcome)
    return [solutions[i] for i in range(len(built))]


_Solved = tuple[mujoco.MjData, BuiltProblem, Solution]


def _judgment(steps: ExactSteps, state: State, one: _Solved, other: _Solved | None) -> Judgment:
    data, built, solution = one
    own = compare(steps, data, state, built, solution).found
    contacts = found_contacts = int(np.count_nonzero(data.contact.exclude == 0))
    found_error, lost = own.error, 0
    if other is not None and state.contacts is not None:
        found_error = compare(steps, other[0], state, *other[1:]).found.error
        found_contacts = int(np.count_nonzero(other[0].contact.exclude == 0))
        missing = lost_contacts(steps.model, other[0], state.contacts["geom"])
        lost = len(set(pair_keys(steps.model, other[0].contact.geom[missing]).tolist()))
    return Judgment(
        own.error,
        own.bound,
        own.island_error,
        contacts,
        found_contacts,
        lost,
        found_error,
        own.asleep,
    )


def compare(
    steps: ExactSteps,
    data: mujoco.MjData,
    state: State,
    built: BuiltProblem,
    solution: Solution,
) -> Comparison:
    """Compares the recorded velocity with that of a solution; `data` makes the step."""
    model, calls = steps.model, load_native_calls()
    exact = steps.next_velocity(data, solution.velocity)
    dofs, island = built.problem.trees.dofs, solution.island_of_tree
    if not len(island):  # a problem without constraints
        island = np.full(len(dofs), -1, np.int32)
    found, tree_error = struct_type("sap_mujoco_comparison")(), np.empty(model.ntree)
    gap = np.ascontiguousarray(solution.islands.optimality_gap_bound)
    velocities = struct_type("sap_mujoco_velocities")(
        recorded=state.next_qvel.ctypes.data,
        exact=exact.ctypes.data,
        v_free=built.dynamics.v_star.ctypes.data,
        solution=solution.velocity.ctypes.data,
        island_of_tree=island.ctypes.data,
        gap=gap.ctypes.data,
        islands=len(gap),
        slow=steps.slow,
        sleeps=steps.sleeps,
    )
    address = calls.fields.address
    calls.compare(address, model._address, data._address, velocities, tree_error.ctypes.data, found)
    first_of_tree = np.searchsorted(np.cumsum(dofs), model.tree_dofadr, side="right")
    return Comparison(exact, tree_error, island[first_of_tree], found)


def tree_squares(model: mujoco.MjModel, data: mujoco.MjData, x: FloatArray) -> FloatArray:
    """[ntree] x' M x of each tree, at least 0."""
    product = np.empty_like(x)
    mujoco.mj_mulM(model, data, product, x)
    squares: FloatArray = np.add.reduceat(x * product, model.tree_dofadr)
    np.maximum(squares, 0.0, out=squares)
    return squares
