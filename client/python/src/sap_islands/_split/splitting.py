"""One scene over several servers: whole islands in concurrent calls, the bits of the undivided one.

The part of it that does no I/O, shared by the synchronous and the asyncio client.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sap_islands._arrays.array_group import ArrayGroup
from sap_islands._split.dealing import deal_largest_first, pays_off
from sap_islands._split.shards import Shards, mask_of_shards
from sap_islands.errors import InvalidArgument, SapError, Unavailable
from sap_islands.options import Options
from sap_islands.problem import Problem
from sap_islands.solution import Solution

if TYPE_CHECKING:
    from sap_islands._library.native_solver import NativeSolver


@functools.cache
def island_finder() -> NativeSolver:
    """The solver in this process, which finds islands on the calling thread.

    Raises:
        Unavailable: There is no C library.
    """
    from sap_islands._library.native_solver import NativeSolver, embedded_client

    try:
        return NativeSolver(embedded_client(1))
    except Unavailable as error:
        raise Unavailable(f"split needs the C library to find islands: {error}") from error


def split_problem(
    problem: Problem, options: Options | None, servers: int, threads: int
) -> Shards | None:
    """The shards of a problem for so many servers, each with so many threads.

    Returns:
        None if the problem is to be sent whole: to split it would not pay, or it has counts or
        indices that are refused. Values are checked by the servers.
    """
    if options is not None and options.islands is False:
        return None
    forecast = island_finder().find_islands(problem)
    if isinstance(forecast, SapError):
        return None
    dealt = deal_largest_first(forecast.solve_time_s, servers)
    if not pays_off(forecast.solve_time_s, dealt, threads, _size(problem)):
        return None
    return Shards(problem, forecast.island_of_tree, dealt)


def options_of_shards(options: Options | None) -> Options | None:
    """The options of the shards."""
    if options is None:
        return None
    return dataclasses.replace(options, response_mask=mask_of_shards(options.response_mask))


def combine(
    shards: Shards, outcomes: Sequence[Solution | SapError], options: Options | None
) -> Solution | None:
    """The solution of the whole.

    Returns:
        None if a shard was refused, and the problem is to be sent whole for its error.

    Raises:
        SapError: That of the first shard that failed.
    """
    errors = [outcome for outcome in outcomes if isinstance(outcome, SapError)]
    if any(isinstance(error, InvalidArgument) for error in errors):
        return None
    if errors:
        raise errors[0]
    solutions = [outcome for outcome in outcomes if isinstance(outcome, Solution)]
    return shards.merge(solutions, () if options is None else options.response_mask)


def _size(problem: Problem) -> int:
    """Bytes in the arrays of a problem."""
    return sum(
        array.nbytes
        for group in vars(problem).values()
        if isinstance(group, ArrayGroup)
        for array in (getattr(group, name) for name in group._fields)
    )
