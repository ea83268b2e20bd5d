"""Several real servers on ports of this machine, which can be stopped and started one by one."""

from __future__ import annotations

from support.server_process import ServerProcess


class Fleet:
    """Servers at fixed ports.

    Attributes:
        servers: The processes.
        addresses: One for each.
    """

    def __init__(self, count: int, *flags: str) -> None:
        self._flags = flags
        self.servers = [ServerProcess("127.0.0.1:0", *flags) for _ in range(count)]
        self.addresses = [server.address for server in self.servers]

    @property
    def address(self) -> str:
        """All addresses as a list."""
        return ",".join(self.addresses)

    def __enter__(self) -> Fleet:
        return self

    def __exit__(self, *_: object) -> None:
        for server in self.servers:
            server.kill()

    def start(self, i: int) -> None:
        """Starts a server that was killed, at its old port."""
        self.servers[i] = ServerProcess(self.addresses[i], *self._flags)
