"""Servers, as an installation starts them: TLS, tokens, probes and metrics."""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import sap_islands as sap
import trustme
from sap_islands.binaries import find_server

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
NAME = "solver.example"  # in the certificates, as in the documents
TOKEN = "a-token-0123456789"
PATIENCE_S = 60.0

ProcessType = TypeVar("ProcessType", bound="Process")


def free_port(host: str = "127.0.0.1") -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def wait_until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"waited {PATIENCE_S} s until {what}"
        time.sleep(0.02)


def status_of(url: str) -> int:
    """HTTP status of a GET; 0 where nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    except OSError:
        return 0


def write_secrets(directory: Path, limits: str = "") -> Path:
    """What the directory /etc/sap-server of the documents holds, and limits of the client."""
    authority = trustme.CA()
    certificate = authority.issue_cert(NAME, "localhost")
    authority.cert_pem.write_to_path(str(directory / "ca.crt"))
    key = certificate.private_key_pem.bytes()
    chain = b"".join(blob.bytes() for blob in certificate.cert_chain_pems)
    (directory / "server.crt").write_bytes(chain)
    (directory / "server.key").write_bytes(key)
    (directory / "proxy.pem").write_bytes(chain + key)
    (directory / "tokens").write_text(f"alice {TOKEN} {limits}\n")
    return directory


def box_on_floor() -> sap.Problem:
    """A body of 1 kg that slides on a floor."""
    return sap.Problem(
        0.01,
        bodies=sap.RigidBodies(
            mass=1.0,
            inertia=[0.004, 0.004, 0.004, 0, 0, 0],
            center_of_mass=[[0, 0, 0.1]],
            free_motion_velocity=np.array([[1.0, 0, -0.0981, 0, 0, 0]]),
            body_id=[1],
        ),
        body_contacts=sap.BodyContacts(
            body_a=[0],
            body_b=[sap.WORLD],
            point=[[0.0, 0, 0]],
            normal=[0, 0, 1],
            signed_distance=0.0,
            stiffness=1e6,
            relaxation_time=0.01,
            friction=0.5,
        ),
    )


def connect(port: int, secrets: Path) -> sap.Client:
    """A client with token and TLS, through a balancer or at a server."""
    tls = sap.Tls(root_certificates=secrets / "ca.crt")
    return sap.connect(f"localhost:{port}", tls=tls, token=TOKEN)


class Process:
    """A child process, killed at the end unless it has ended."""

    def __init__(
        self, command: Sequence[str | Path], environment: dict[str, str] | None = None
    ) -> None:
        self._command = [str(word) for word in command]
        self._environment = environment
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._command,
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self: ProcessType) -> ProcessType:
        return self

    def __exit__(self, *_: object) -> None:
        if self.running():
            self._process.kill()
        self._process.wait(PATIENCE_S)

    def running(self) -> bool:
        return self._process.poll() is None

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> int:
        self._process.kill()
        return self.wait()

    def wait(self) -> int:
        return self._process.wait(PATIENCE_S)


class Server(Process):
    """A sap-server that is ready; `metrics` is the start of the URLs of its probes."""

    def __init__(
        self, address: str, metrics_address: str, secrets: Path, flags: Sequence[str] = ()
    ) -> None:
        self.address = address
        self.metrics = f"http://{metrics_address}"
        super().__init__(
            [
                find_server(),
                f"--listen={address}",
                f"--metrics-listen={metrics_address}",
                f"--tls-cert={secrets / 'server.crt'}",
                f"--tls-key={secrets / 'server.key'}",
                f"--token-file={secrets / 'tokens'}",
                *flags,
            ]
        )
        self._await_ready()

    def _await_ready(self) -> None:
        try:
            what = f"{self.address} is ready"
            wait_until(lambda: status_of(self.metrics + "/ready") == 200, what)
        except AssertionError:
            self.kill()
            raise

    def calls(self) -> int:
        """How many calls of Solve it was given."""
        return self._counter(r'grpc_server_started_total\{.*"Solve"\}')

    def solved(self) -> int:
        """How many problems it has solved, those of sessions too."""
        return self._counter(r'sap_problems_total\{outcome="solved"\}')

    def _counter(self, series: str) -> int:
        with urllib.request.urlopen(self.metrics + "/metrics", timeout=10) as answer:
            text = answer.read().decode()
        (value,) = re.findall(rf"^{series} (\S+)$", text, re.MULTILINE)
        return int(float(value))


@contextlib.contextmanager
def three_servers(secrets: Path, flags: Sequence[str]) -> Iterator[list[Server]]:
    """On three addresses of the loopback, with equal ports, as on three machines."""
    calls, metrics = free_port("127.0.0.11"), free_port("127.0.0.11")
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(Server(f"{host}:{calls}", f"{host}:{metrics}", secrets, flags))
            for host in ("127.0.0.11", "127.0.0.12", "127.0.0.13")
        ]
