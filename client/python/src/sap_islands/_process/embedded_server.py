"""Embedded server: sap-server as a child process on a private Unix socket.

The socket is in a directory with mode 0700. The server is terminated by `stop`, when the last
reference is dropped, and when the interpreter exits. If this process is killed, a guard process
terminates the server: it is a shell that reads from a pipe held open by this process, and at end
of file it sends SIGTERM to the server and removes the directory. A process forked from this one
does not own the server: there `stop` does nothing, and the end of the pipe is closed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
import weakref
from collections.abc import Sequence
from typing import IO

from sap_islands.binaries import find_server
from sap_islands.errors import InvalidArgument, Unavailable

START_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 10.0

_MAX_SOCKET_PATH = 100  # bytes; the kernel accepts 107
_START_OF_LOG = 1 << 16  # bytes, more than a server writes before it listens
_DRAIN_ARGUMENTS = ("--drain-timeout-s", "1")
_GUARD_SCRIPT = 'read -r _ && exit; kill -TERM "$1" 2> /dev/null; rm -rf -- "$2"'


class EmbeddedServer:
    """A running sap-server that this object owns.

    Attributes:
        address: "unix:PATH" of its socket, or where it was told to listen.
        pid: Its process id.
    """

    def __init__(self, arguments: Sequence[str] = (), address: str | None = None) -> None:
        """Starts the server and waits until it takes calls.

        Args:
            arguments: Further command-line arguments, for example ("--threads", "4").
            address: "unix:PATH" or "HOST:PORT" to listen on; None: a private Unix socket.

        Raises:
            InvalidArgument: The arguments are no list of strings.
            Unavailable: The server was not found, or did not serve within 20 s; the message has
                its log.
        """
        if isinstance(arguments, str) or not all(isinstance(text, str) for text in arguments):
            message = f"server_arguments is {arguments!r}; a list of strings is needed"
            raise InvalidArgument(message, "server_arguments")
        program = find_server()
        self._directory = _private_directory()
        self.address = address or f"unix:{self._directory}/sap.sock"
        log = open(f"{self._directory}/log", "w+b")  # noqa: SIM115  # closed by _stop
        # SAP_THREADS and the like are flags of another server, as that of this machine.
        environment = {name: os.environ[name] for name in os.environ if name[:4] != "SAP_"}
        try:
            process = subprocess.Popen(
                [program, "--listen", self.address, *_DRAIN_ARGUMENTS, *arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C must not reach it: `stop` terminates it
            )
        except OSError as error:
            log.close()
            shutil.rmtree(self._directory, ignore_errors=True)
            raise Unavailable(f"sap-server did not start: {error}") from error
        guard = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD_SCRIPT, "sap-guard", str(process.pid), self._directory],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.pid = process.pid
        self._finalizer = weakref.finalize(self, _stop, process, guard, log, self._directory)
        self._guard = guard
        _servers.add(self)
        try:
            _wait_until_serving(process, log)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Terminates the server: SIGTERM, then SIGKILL after 10 s. Further calls do nothing."""
        self._finalizer()

    def _disown(self) -> None:
        """Leaves the server to the process from which this one was forked."""
        self._finalizer.detach()
        if self._guard.stdin is not None:
            self._guard.stdin.close()

    def __enter__(self) -> EmbeddedServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


_servers: weakref.WeakSet[EmbeddedServer] = weakref.WeakSet()


def _disown_all() -> None:
    for server in _servers:
        server._disown()


os.register_at_fork(after_in_child=_disown_all)


def _private_directory() -> str:
    directory = tempfile.mkdtemp(prefix="sap-islands-")
    if len(directory) > _MAX_SOCKET_PATH - len("/sap.sock"):
        os.rmdir(directory)
        directory = tempfile.mkdtemp(prefix="sap-islands-", dir="/tmp")
    return directory


def _listens(log: IO[bytes]) -> bool:
    return b"listening on " in os.pread(log.fileno(), _START_OF_LOG, 0)


def _wait_until_serving(process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not _listens(log) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    if process.poll() is None and _listens(log):
        return
    log.seek(0)
    said = log.read().decode(errors="replace").strip()
    raise Unavailable(f"sap-server does not serve: {said or 'its log is empty'}")


def _stop(
    process: subprocess.Popen[bytes],
    guard: subprocess.Popen[bytes],
    log: IO[bytes],
    directory: str,
) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    # A line of input makes the guard exit without stopping anything.
    with contextlib.suppress(OSError):
        guard.communicate(b"\n", timeout=STOP_TIMEOUT_S)
    log.close()
    shutil.rmtree(directory, ignore_errors=True)
