"""The real server as a child process."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

from sap_islands.binaries import find_server


class ServerProcess:
    """A server that listens; killed at the end of its context.

    Attributes:
        address: Where, with the port that it got for port 0.
        pid: Number of the process.
    """

    def __init__(self, address: str, *flags: str) -> None:
        self._process = subprocess.Popen(
            [find_server(), "--listen", address, *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        listening = self._process.stdout.readline()
        if not listening.startswith("listening on "):
            self._process.kill()
            self._process.communicate()
            raise AssertionError(f"no server has started at {address}")
        self.address = listening.split()[-1]
        self.pid = self._process.pid

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def runs(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def terminate(self) -> None:
        """Asks it to shut down."""
        self._process.terminate()

    def kill(self) -> None:
        """Ends it at once, unless it has ended."""
        self._process.kill()
        self._process.wait(300)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def pause(self) -> None:
        """Stops all of its threads."""
        self._process.send_signal(signal.SIGSTOP)
        tasks = Path(f"/proc/{self._process.pid}/task")
        states = ["R"]
        while set(states) != {"T"}:
            time.sleep(0.001)
            stats = [(task / "stat").read_text() for task in tasks.iterdir()]
            states = [stat.rpartition(")")[2].split()[0] for stat in stats]

    def go_on(self) -> None:
        """Lets its threads run again."""
        self._process.send_signal(signal.SIGCONT)
