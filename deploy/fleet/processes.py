"""Servers and HAProxy as child processes, ended when their contexts end."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from pathlib import Path
from typing import TypeVar

from sap_islands.binaries import find_server

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 60.0
SAMPLE_S = 0.2

ChildType = TypeVar("ChildType", bound="Child")


def free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def make_certificate(directory: Path) -> Path:
    """A certificate and its key in one file, as HAProxy reads them."""
    pem = directory / "proxy.pem"
    key, certificate = directory / "key.pem", directory / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    command += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    pem.write_bytes(certificate.read_bytes() + key.read_bytes())
    return certificate


class Child:
    """A child process in a process group of its own, which Ctrl-C in a terminal does not reach."""

    def __init__(self, command: list[str], environment: dict[str, str] | None = None) -> None:
        self._command = command
        self._environment = environment
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._command,
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def __enter__(self: ChildType) -> ChildType:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait(PATIENCE_S)


class Server(Child):
    """A sap-server that is ready."""

    def __init__(self, host: str, calls: int, metrics: int, lame_duck_s: float) -> None:
        self.address = f"{host}:{calls}"
        self.metrics_port = metrics
        self._metrics = f"http://{host}:{metrics}"
        super().__init__(
            [
                find_server(),
                f"--listen={self.address}",
                f"--metrics-listen={host}:{metrics}",
                f"--lame-duck-s={lame_duck_s}",
                "--threads=1",
            ]
        )
        try:
            self._await_ready()
        except BaseException:
            self.__exit__()
            raise

    def restart(self, number: signal.Signals) -> None:
        """Ends the server by a signal and starts another one on its addresses."""
        self._process.send_signal(number)
        self._process.wait(PATIENCE_S)
        self._process = self._start()
        self._await_ready()

    def solved(self) -> float:
        """Problems solved since its start; NaN where it does not answer."""
        try:
            with urllib.request.urlopen(self._metrics + "/metrics", timeout=1) as answer:
                text = answer.read().decode()
        except OSError:
            return float("nan")
        found = re.search(r'^sap_problems_total\{outcome="solved"\} (\S+)$', text, re.MULTILINE)
        return float(found.group(1)) if found else 0.0

    def _await_ready(self) -> None:
        end = time.monotonic() + PATIENCE_S
        while True:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(self._metrics + "/ready", timeout=1).close()
                return
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the server at {self.address} does not start")
            time.sleep(0.02)


class Balancer(Child):
    """HAProxy with the configuration that ships."""

    def __init__(self, servers: list[Server], directory: Path, certificate: Path) -> None:
        port = free_port("127.0.0.1")
        self.address = f"localhost:{port}"
        environment = {
            "SAP_BIND": f"127.0.0.1:{port}",
            "SAP_CERT": str(certificate.with_name("proxy.pem")),
            "SAP_READY_PORT": str(servers[0].metrics_port),
            "SAP_SERVER": servers[0].address,
            "SAP_SERVER_2": servers[1].address,
            "SAP_SERVER_3": servers[2].address,
        }
        command = ["/usr/sbin/haproxy", "-db", "-f", str(ROOT / "deploy" / "haproxy.cfg")]
        super().__init__(command, os.environ | environment)
        try:
            self._await_port(port)
        except BaseException:
            self.__exit__()
            raise

    def _await_port(self, port: int) -> None:
        end = time.monotonic() + PATIENCE_S
        while True:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("HAProxy does not start")
            time.sleep(0.02)


class LoadSamples:
    """Asks the servers in turn how much they have solved; `rows` has time and counts."""

    def __init__(self, servers: list[Server]) -> None:
        self.rows: list[tuple[float, list[float]]] = []
        self._servers = servers
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> LoadSamples:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stop.wait(SAMPLE_S):
            self.rows.append((time.time(), [server.solved() for server in self._servers]))
