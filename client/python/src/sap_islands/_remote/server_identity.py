"""The identity of a server: version, instruction set and boot id.

Servers send it with every status that they choose, and when they open a session. A boot id names
one process. Servers of equal version and instruction set return equal bits.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

from sap_islands.errors import SERVER_KEY, FailedPrecondition


def identity_of(trailing_metadata: Iterable[tuple[str, str | bytes]] | None) -> str:
    """The identity in the metadata with which a call ended; empty if it has none."""
    for key, value in trailing_metadata or ():
        if key == SERVER_KEY:
            return str(value)
    return ""


class BuildCheck:
    """Refuses answers of servers whose build is not that of the first one. Threads may share it."""

    def __init__(self, allow_mixed: bool) -> None:
        """Starts without a build.

        Args:
            allow_mixed: Whether nothing is refused.
        """
        self._allow_mixed = allow_mixed
        self._first = ""
        self._lock = threading.Lock()

    def check(self, identity: str) -> None:
        """Checks the identity of the server of an answer or of an opened session.

        Raises:
            FailedPrecondition: The server is of another build than the first one.
        """
        build, _, boot_id = identity.rpartition(" ")
        if build == self._first or not build or self._allow_mixed:
            return
        with self._lock:
            self._first = self._first or build
        if build != self._first:
            raise FailedPrecondition(
                f"server {boot_id} is {build}, the first one was {self._first}: bits may differ; "
                "set allow_mixed_servers",
                server=identity,
            )
