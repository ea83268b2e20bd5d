"""A client that keeps what it is asked, to tell one call from many."""

from __future__ import annotations

from typing import Any

import sap_islands as sap


class CountedClient:
    """Passes calls on to a client.

    Attributes:
        solved: The number of problems of each `solve_batch`.
        requests: The requests of each `differentiate_batch`.
        cotangents: Their number in each `differentiate`.
        wanted: The inputs of each `differentiate`.
    """

    def __init__(self, client: sap.Client) -> None:
        self._client = client
        self.solved: list[int] = []
        self.requests: list[list[sap.DifferentiateRequest]] = []
        self.cotangents: list[int] = []
        self.wanted: list[list[str]] = []

    def solve(self, problem: sap.Problem, options: sap.Options) -> Any:
        """Solves one problem."""
        return self._client.solve(problem, options)

    def differentiate(
        self, problem: sap.Problem, cotangents: list[sap.Cotangent], **others: Any
    ) -> Any:
        """Counts the cotangents."""
        self.cotangents.append(len(cotangents))
        self.wanted.append(others["wanted"])
        return self._client.differentiate(problem, cotangents, **others)

    def solve_batch(self, problems: list[sap.Problem], options: sap.Options) -> Any:
        """Counts the problems."""
        self.solved.append(len(problems))
        return self._client.solve_batch(problems, options)

    def differentiate_batch(self, requests: list[sap.DifferentiateRequest], **others: Any) -> Any:
        """Keeps the requests."""
        self.requests.append(requests)
        return self._client.differentiate_batch(requests, **others)

    def info(self) -> sap.ServerInfo:
        """Asks the server."""
        return self._client.info()
