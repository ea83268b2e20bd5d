"""Which process made a connection. A child that os.fork makes cannot use it.

gRPC runs threads of its own, which a fork does not copy: a call in the child waits for ever, and
writes to the connection of the parent.
"""

from __future__ import annotations

import os

_HOW_TO = (
    "start processes by 'spawn' or 'forkserver' (multiprocessing.set_start_method), "
    "or connect in the child alone"
)
# gRPC reads this when it is imported; then a child may make channels of its own.
_FORK_SUPPORT = "GRPC_ENABLE_FORK_SUPPORT"


class OwnerProcess:
    """The process that made an object with a connection."""

    def __init__(self) -> None:
        self._pid = os.getpid()

    @property
    def is_current(self) -> bool:
        """Whether this is the process that made the object."""
        return os.getpid() == self._pid

    def check(self, kind: str) -> None:
        """Raises RuntimeError in another process; `kind` names the object."""
        if not self.is_current:
            message = f"the {kind} was made by process {self._pid}, before the fork; {_HOW_TO}"
            raise RuntimeError(message)


_first_user: OwnerProcess | None = None


def check_grpc_works() -> None:
    """To be called before gRPC is used.

    Raises:
        RuntimeError: gRPC has run in the process from which this one was forked.
    """
    global _first_user
    if _first_user is None:
        _first_user = OwnerProcess()
    has_support = os.environ.get(_FORK_SUPPORT, "").lower() in ("1", "true", "yes", "y", "on")
    if not _first_user.is_current and not has_support:
        message = f"gRPC ran before the fork, and works in no child; {_HOW_TO}"
        raise RuntimeError(f"{message}, or set {_FORK_SUPPORT}=1 before grpc is imported")
