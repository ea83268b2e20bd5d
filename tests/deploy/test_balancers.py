"""HAProxy and Envoy with the files of deploy/ in front of three servers."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import envoy  # type: ignore[import-untyped]  # it has no types
import grpc
import pytest
import sap_islands as sap
import yaml

from fleet import (
    DEPLOY,
    NAME,
    TOKEN,
    Process,
    Server,
    box_on_floor,
    connect,
    free_port,
    three_servers,
    wait_until,
    write_secrets,
)

ENVOY = Path(envoy.__file__).parent / "_bin" / "envoy"


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_secrets(tmp_path_factory.mktemp("secrets"))


def haproxy(servers: list[Server], port: int, secrets: Path) -> Process:
    """As it ships: all that differs between installations is in the environment."""
    environment = {
        "SAP_BIND": f"127.0.0.1:{port}",
        "SAP_CERT": str(secrets / "proxy.pem"),
        "SAP_READY_PORT": servers[0].metrics.split(":")[-1],
        "SAP_SERVER_CA": str(secrets / "ca.crt"),
        "SAP_SERVER_NAME": NAME,
    }
    for variable, server in zip(
        ("SAP_SERVER", "SAP_SERVER_2", "SAP_SERVER_3"), servers, strict=True
    ):
        environment[variable] = server.address
    command = ["/usr/sbin/haproxy", "-db", "-f", str(DEPLOY / "haproxy.cfg")]
    return Process(command, os.environ | environment)


def envoy_configuration(servers: list[Server], port: int, secrets: Path) -> dict[str, Any]:
    """As it ships, with the addresses and paths of this test."""
    text = (DEPLOY / "envoy.yaml").read_text().replace("/etc/sap-server/", f"{secrets}/")
    configuration: dict[str, Any] = yaml.safe_load(text)
    resources = configuration["static_resources"]
    resources["listeners"][0]["address"]["socket_address"] = {
        "address": "127.0.0.1",
        "port_value": port,
    }
    configuration["admin"]["address"]["socket_address"]["port_value"] = free_port()
    cluster = resources["clusters"][0]
    cluster["type"] = "STATIC"
    (place,) = cluster["load_assignment"]["endpoints"]
    addresses = [server.address.split(":") for server in servers]
    place["lb_endpoints"] = [
        {"endpoint": {"address": {"socket_address": {"address": host, "port_value": int(number)}}}}
        for host, number in addresses
    ]
    return configuration


def start_envoy(servers: list[Server], port: int, secrets: Path) -> Process:
    file = secrets / "envoy.yaml"
    file.write_text(yaml.safe_dump(envoy_configuration(servers, port, secrets)))
    # No shared memory of a base id, so that several can run on a machine.
    return Process([ENVOY, "--config-path", file, "--disable-hot-restart", "--concurrency", "1"])


class Load:
    """Calls and sessions that solve the same problem again and again, each over its connection."""

    def __init__(self, port: int, secrets: Path) -> None:
        self.failures: list[str] = []
        self._expected = self._solve_once(port, secrets)
        self._stop = threading.Event()
        self._port, self._secrets = port, secrets
        self._threads = [
            threading.Thread(target=use) for use in (self._call, self._step) for _ in range(3)
        ]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    @staticmethod
    def _solve_once(port: int, secrets: Path) -> bytes:
        with connect(port, secrets) as client:
            return client.solve(box_on_floor()).velocity.tobytes()

    def _call(self) -> None:
        problem = box_on_floor()
        with connect(self._port, self._secrets) as client:
            while not self._stop.wait(0.005):
                try:
                    if client.solve(problem, timeout=30).velocity.tobytes() != self._expected:
                        self.failures.append("other bits")
                except sap.SapError as error:
                    self.failures.append(str(error))

    def _step(self) -> None:
        problem = box_on_floor()
        with connect(self._port, self._secrets) as client, client.session() as session:
            while not self._stop.wait(0.005):
                try:
                    session.step(problem)
                except sap.SapError as error:
                    self.failures.append(f"session: {error}")
                    return


Start = Callable[[list[Server], int, Path], Process]


@pytest.fixture(scope="module", params=[haproxy, start_envoy], ids=["haproxy", "envoy"])
def balanced(request: pytest.FixtureRequest, secrets: Path) -> Iterator[tuple[list[Server], int]]:
    """Three servers, and the port of a balancer that is connected to them."""
    start: Start = request.param
    port = free_port()
    with (
        three_servers(secrets, ["--lame-duck-s=5", "--threads=1"]) as servers,
        start(servers, port, secrets) as process,
        connect(port, secrets) as client,
    ):

        def serves() -> bool:
            assert process.running(), "the balancer has ended"
            try:
                return client.info(timeout=5) is not None
            except sap.SapError:
                return False

        wait_until(serves, "the balancer serves")
        yield servers, port


def refusal_of_drain(address: str, secrets: Path) -> grpc.RpcError:
    credentials = grpc.ssl_channel_credentials((secrets / "ca.crt").read_bytes())
    options = (("grpc.ssl_target_name_override", NAME),)
    with grpc.secure_channel(address, credentials, options) as channel:
        drain: Any = channel.unary_unary("/sap.v1.AdminService/Drain")
        with pytest.raises(grpc.RpcError) as refusal:
            drain(b"", metadata=(("authorization", f"Bearer {TOKEN}"),), timeout=30)
    return refusal.value


def test_calls_reach_all_servers_and_only_the_services_of_clients(
    balanced: tuple[list[Server], int], secrets: Path
) -> None:
    servers, port = balanced
    with Load(port, secrets) as load:
        wait_until(lambda: all(server.solved() > 10 for server in servers), "all are busy")
    assert load.failures == []
    # The balancer refuses by itself: a server would say why.
    at_server = refusal_of_drain(servers[0].address, secrets)
    at_balancer = refusal_of_drain(f"127.0.0.1:{port}", secrets)
    assert at_server.code() == at_balancer.code() == grpc.StatusCode.UNIMPLEMENTED
    assert at_server.details() != at_balancer.details()


def test_a_server_that_leaves_fails_no_call_and_no_step(
    balanced: tuple[list[Server], int], secrets: Path
) -> None:
    servers, port = balanced
    leaving, second, third = servers
    with Load(port, secrets) as load:
        wait_until(lambda: leaving.solved() > 10, "the server is busy")
        leaving.terminate()

        # The balancer has noticed before the end of the lame-duck period: the server is given no
        # more calls while the others are.
        def left_alone() -> bool:
            before, elsewhere = leaving.calls(), second.calls() + third.calls()
            wait_until(lambda: second.calls() + third.calls() > elsewhere + 50, "others are busy")
            return leaving.calls() == before

        wait_until(left_alone, "the server gets no calls")
        assert leaving.running()
        assert leaving.wait() == 0
        before = third.solved()
        wait_until(lambda: third.solved() > before + 20, "the others go on")
    assert load.failures == []
    # Nobody announces this one.
    second.kill()
    with connect(port, secrets) as client:
        for _ in range(20):
            client.solve(box_on_floor(), timeout=30)


def test_envoy_accepts_the_file_as_it_is(secrets: Path, tmp_path: Path) -> None:
    file = tmp_path / "envoy.yaml"
    text = (DEPLOY / "envoy.yaml").read_text()
    file.write_text(text.replace("/etc/sap-server/", f"{secrets}/"))
    command = [
        str(ENVOY),
        "--mode",
        "validate",
        "--disable-hot-restart",
        "--config-path",
        str(file),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    file.write_text(file.read_text().replace("healthy_threshold", "healthy_treshold"))
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "healthy_treshold" in done.stderr
