"""The calls of `Client`, made by the C library.

In this process no message is made, and no other process or socket is involved. The bits are those
of a server of the same version and instruction set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sap_islands._library.native_batch import NativeBatch
from sap_islands._library.native_client import SLICE, NativeClient
from sap_islands._library.native_session import NativeSession, SessionSettings
from sap_islands.derivatives import Derivatives, DifferentiateRequest
from sap_islands.errors import SapError
from sap_islands.options import Options
from sap_islands.problem import Problem
from sap_islands.server_info import ServerInfo
from sap_islands.session import Session
from sap_islands.solution import Solution


class NativeSolver:
    """The calls of a client that wait for their outcomes. Threads may share it."""

    def __init__(self, client: NativeClient) -> None:
        self._client = client
        self.address = client.address

    @property
    def client(self) -> NativeClient:
        """The client that makes the calls."""
        return self._client

    def close(self) -> None:
        self._client.close()

    def solve(
        self, problem: Problem, options: Options | None, timeout: float | None, servers: int
    ) -> Solution:
        return self._client.run(self._client.solve(problem, options), timeout, servers).result()

    def solve_batch(
        self, problems: Iterable[Problem], options: Options | None, timeout: float | None
    ) -> list[Solution | SapError]:
        return self._client.run(self._client.solve_batch(problems, options), timeout).results()

    def stream_batch(
        self, problems: Iterable[Problem], options: Options | None, timeout: float | None
    ) -> Iterator[tuple[int, Solution | SapError]]:
        batch = NativeBatch(self._client, problems, options, timeout)
        try:
            for _ in range(batch.count):
                while (number := batch.next(SLICE)) < 0:
                    pass
                yield number, batch.outcome(number)
        finally:
            batch.free()

    def differentiate(self, request: DifferentiateRequest, timeout: float | None) -> Derivatives:
        return self._client.run(self._client.differentiate(request), timeout).result()

    def differentiate_batch(
        self,
        requests: Iterable[DifferentiateRequest],
        time_budget: float | None,
        timeout: float | None,
    ) -> list[Derivatives | SapError]:
        call = self._client.differentiate_batch(requests, time_budget)
        return self._client.run(call, timeout).results()

    def session(self, settings: SessionSettings) -> Session:
        return NativeSession(self._client, settings)

    def info(self, timeout: float | None = None) -> ServerInfo:
        return self._client.run(self._client.info(), timeout).result()
