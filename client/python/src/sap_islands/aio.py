"""Client for asyncio: the calls of `sap_islands.Client` and `Session` as coroutines.

async with sap_islands.aio.connect("embedded:") as client:
    solution = await client.solve(problem)
    async with client.session() as session:
        solution = await session.step(problem)
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from sap_islands._remote.address import check_embedded
from sap_islands._remote.attempts import check_reconnect_within, time_left
from sap_islands._remote.channel import Tls
from sap_islands._remote.remote_aio import AsyncRemoteSolver
from sap_islands._remote.remote_base import resolve_address
from sap_islands._split import splitting
from sap_islands._split.dealing import count_servers
from sap_islands._split.shards import Shard
from sap_islands.derivatives import Cotangent, Derivatives, DifferentiateRequest
from sap_islands.errors import SapError
from sap_islands.options import Options
from sap_islands.problem import Problem
from sap_islands.server_info import ServerInfo
from sap_islands.session import AsyncSession as Session
from sap_islands.solution import Solution

if TYPE_CHECKING:
    from sap_islands._library.native_solver import AsyncNativeSolver

__all__ = ["Client", "Session", "connect"]


def connect(
    address: str,
    *,
    tls: Tls | bool = False,
    token: str | None = None,
    reconnect_within: float = 5.0,
    allow_mixed_servers: bool = False,
    server_arguments: Sequence[str] = (),
    threads: int | None = None,
) -> Client:
    """Makes a client; the arguments and exceptions are those of `sap_islands.connect`.

    "embedded:process" blocks the event loop for 0.1 s, and a list while its names are looked up.
    """
    check_reconnect_within(reconnect_within)
    if check_embedded(address, threads, server_arguments):
        from sap_islands._library.native_solver import (  # which loads the C library
            AsyncNativeSolver,
            embedded_client,
        )

        return Client(AsyncNativeSolver(embedded_client(threads)))
    endpoint, server = resolve_address(address, tls, token, server_arguments)
    return Client(AsyncRemoteSolver(endpoint, server, reconnect_within, allow_mixed_servers))


class Client:
    """The calls of `sap_islands.Client` as coroutines, with the same arguments and exceptions.

    Use it in one event loop only.
    """

    def __init__(self, solver: AsyncRemoteSolver | AsyncNativeSolver) -> None:
        self._solver = solver
        self._solver_threads: int | None = None  # of a server, once a split has asked for it

    @property
    def address(self) -> str:
        """The address that `connect` got; of an embedded server, its Unix socket."""
        return self._solver.address

    async def solve(
        self,
        problem: Problem,
        options: Options | None = None,
        *,
        timeout: float | None = None,
        split: bool | int = False,
    ) -> Solution:
        """Solves one problem, on several servers at once if `split` says so."""
        if split is not False:
            start = time.monotonic()
            solution = await self._solve_split(problem, options, timeout, split)
            if solution is not None:
                return solution
            timeout = time_left(timeout, start)
        return await self._solver.solve(problem, options, timeout)

    async def solve_batch(
        self,
        problems: Sequence[Problem],
        options: Options | None = None,
        *,
        timeout: float | None = None,
    ) -> list[Solution | SapError]:
        """Solves independent problems concurrently; returns a solution or an error for each."""
        return await self._solver.solve_batch(problems, options, timeout)

    def stream_batch(
        self,
        problems: Sequence[Problem],
        options: Options | None = None,
        *,
        timeout: float | None = None,
    ) -> AsyncIterator[tuple[int, Solution | SapError]]:
        """Yields (index of the problem, solution or error) as each is finished."""
        return self._solver.stream_batch(problems, options, timeout)

    async def differentiate(
        self,
        problem: Problem,
        cotangents: Sequence[Cotangent] = (),
        *,
        tangents: Sequence[Problem] = (),
        velocity: ArrayLike = (),
        wanted: Sequence[str] = (),
        hold_delassus: bool = False,
        options: Options | None = None,
        timeout: float | None = None,
    ) -> Derivatives:
        """Derivatives of the solution of one problem with respect to its inputs."""
        request = DifferentiateRequest(
            problem, cotangents, tangents, velocity, wanted, hold_delassus, options
        )
        return await self._solver.differentiate(request, timeout)

    async def differentiate_batch(
        self,
        requests: Sequence[DifferentiateRequest],
        *,
        time_budget: float | None = None,
        timeout: float | None = None,
    ) -> list[Derivatives | SapError]:
        """Differentiates independent problems concurrently."""
        return await self._solver.differentiate_batch(requests, time_budget, timeout)

    def session(
        self,
        options: Options | None = None,
        *,
        timeout: float | None = None,
        reconnect_within: float | None = None,
        low_latency: bool = False,
    ) -> Session:
        """Makes a session; open it with `async with` or `await`."""
        return self._solver.session(options, timeout, reconnect_within, low_latency)

    async def info(self, *, timeout: float | None = None) -> ServerInfo:
        """Version, limits and hardware of the server."""
        return await self._solver.info(timeout)

    async def close(self) -> None:
        """Closes the connection; stops the server if it is embedded."""
        await self._solver.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _solve_split(
        self, problem: Problem, options: Options | None, timeout: float | None, split: bool | int
    ) -> Solution | None:
        """The solution from several calls; None: the problem is to be sent whole."""
        start = time.monotonic()
        # On another thread, since it may look a name up.
        servers = await asyncio.to_thread(count_servers, split, self.address)
        if servers == 1:
            return None
        if self._solver_threads is None:
            try:
                self._solver_threads = (
                    await self.info(timeout=time_left(timeout, start))
                ).solver_threads
            except SapError:
                return None
        shards = splitting.split_problem(problem, options, servers, self._solver_threads)
        if shards is None:
            return None
        of_shards = splitting.options_of_shards(options)

        async def solve(shard: Shard) -> Solution | SapError:
            try:
                return await self.solve(
                    shard.problem(), of_shards, timeout=time_left(timeout, start)
                )
            except SapError as error:
                return error

        outcomes = await asyncio.gather(*(solve(shard) for shard in shards.shards))
        return splitting.combine(shards, outcomes, options)
