"""Client for asyncio: the calls of `sap_islands.Client` and `Session` as coroutines.

async with sap_islands.aio.connect("embedded:") as client:
    solution = await client.solve(problem)
    async with client.session() as session:
        solution = await session.step(problem)
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence

from numpy.typing import ArrayLike

from sap_islands._library.connect import open_client
from sap_islands._library.native_aio import AsyncNativeSolver
from sap_islands._library.native_client import number_of_servers
from sap_islands._library.native_session import SessionSettings
from sap_islands._process.embedded_server import EmbeddedServer
from sap_islands.derivatives import Cotangent, Derivatives, DifferentiateRequest
from sap_islands.errors import SapError
from sap_islands.options import Options
from sap_islands.problem import Problem
from sap_islands.server_info import ServerInfo
from sap_islands.session import AsyncSession as Session
from sap_islands.solution import Solution
from sap_islands.tls import Tls

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
    scene_connections: int = 1,
) -> Client:
    """Makes a client; the arguments and exceptions are those of `sap_islands.connect`.

    "embedded:process" blocks the event loop for 0.1 s, and a list while its names are looked up.
    """
    client, server = open_client(
        address,
        tls,
        token,
        reconnect_within,
        allow_mixed_servers,
        server_arguments,
        threads,
        scene_connections,
    )
    return Client(AsyncNativeSolver(client), server)


class Client:
    """The calls of `sap_islands.Client` as coroutines, with the same arguments and exceptions.

    Use it in one event loop only. Arrays of a problem may be replaced while a call runs, but not be
    changed in place.
    """

    def __init__(self, solver: AsyncNativeSolver, server: EmbeddedServer | None = None) -> None:
        self._solver = solver
        self._server = server

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
        return await self._solver.solve(problem, options, timeout, number_of_servers(split))

    async def solve_batch(
        self,
        problems: Iterable[Problem],
        options: Options | None = None,
        *,
        timeout: float | None = None,
    ) -> list[Solution | SapError]:
        """Solves independent problems concurrently; returns a solution or an error for each."""
        return await self._solver.solve_batch(problems, options, timeout)

    def stream_batch(
        self,
        problems: Iterable[Problem],
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
        requests: Iterable[DifferentiateRequest],
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
        settings = SessionSettings(options, timeout, reconnect_within, low_latency)
        return self._solver.session(settings)

    async def info(self, *, timeout: float | None = None) -> ServerInfo:
        """Version, limits and hardware of the server."""
        return await self._solver.info(timeout)

    async def close(self) -> None:
        """Closes the connection; stops the server if it is embedded."""
        await self._solver.close()
        if self._server is not None:
            self._server.stop()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
