"""HAProxy and Envoy with the files of deploy/ in front of three servers."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from balancers import ENVOY, Start, await_serving, haproxy, start_envoy
from fleet import (
    DEPLOY,
    NAME,
    TOKEN,
    Server,
    box_on_floor,
    connect,
    free_port,
    three_servers,
    wait_until,
    write_secrets,
)
from load import Load


@pytest.fixture(scope="module")
def secrets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_secrets(tmp_path_factory.mktemp("secrets"))


def busy_clients(port: int, secrets: Path) -> Load:
    """Clients of calls and of sessions, each over its own connection."""
    return Load(("unary", "sessions") * 3, lambda: connect(port, secrets))


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
        await_serving(process, client)
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
    with busy_clients(port, secrets) as load:
        wait_until(lambda: all(server.solved() > 10 for server in servers), "all are busy")
    assert load.violations() == []
    # The balancer refuses by itself: a server would say why.
    at_server = refusal_of_drain(servers[0].address, secrets)
    at_balancer = refusal_of_drain(f"127.0.0.1:{port}", secrets)
    assert at_server.code() == at_balancer.code() == grpc.StatusCode.UNIMPLEMENTED
    assert at_server.details() != at_balancer.details()


def test_long_headers_end_only_their_own_call(
    balanced: tuple[list[Server], int], secrets: Path
) -> None:
    _, port = balanced
    credentials = grpc.ssl_channel_credentials((secrets / "ca.crt").read_bytes())
    address = f"localhost:{port}"
    own = (("grpc.use_local_subchannel_pool", 1),)
    with (
        grpc.secure_channel(address, credentials) as channel,
        grpc.secure_channel(address, credentials, own) as other,
    ):
        watch: Any = channel.unary_stream("/grpc.health.v1.Health/Watch")
        # On the connection of the balancer to each server.
        watches = [watch(b"", timeout=60) for _ in range(3)]
        for stream in watches:
            next(stream)
        check: Any = other.unary_unary("/grpc.health.v1.Health/Check")
        check(b"", timeout=30)
        for _ in range(10):
            with pytest.raises(grpc.RpcError):
                check(b"", metadata=[(f"x-{i}", "x" * 600) for i in range(40)], timeout=30)
        check(b"", timeout=30)
        assert all(stream.is_active() for stream in watches)


def test_a_server_that_leaves_fails_no_call_and_no_step(
    balanced: tuple[list[Server], int], secrets: Path
) -> None:
    servers, port = balanced
    leaving, second, third = servers
    with busy_clients(port, secrets) as load:
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
    assert load.violations() == []
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
