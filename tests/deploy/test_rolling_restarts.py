"""Servers are restarted in turn, by SIGTERM and by SIGKILL, while clients of all kinds call them.

No call and no step fails, none is lost, doubled or out of order, and all have the bits of a run
without restarts, through a list of addresses, HAProxy and Envoy. The C++ client has the same test,
tests/e2e/fleet.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import sap_islands as sap

from balancers import Start, await_serving, haproxy, start_envoy
from fleet import (
    NAME,
    TOKEN,
    Server,
    free_port,
    three_servers,
    wait_until,
    write_secrets,
)
from load import Load

WORKS = ("sessions", "unary", "batch", "stream_batch")


class Reached(NamedTuple):
    """Servers, and how clients reach them."""

    servers: list[Server]
    open_client: Callable[[], sap.Client]


@pytest.fixture(params=["list", "haproxy", "envoy"])
def reached(request: pytest.FixtureRequest, tmp_path: Path, full: bool) -> Iterator[Reached]:
    secrets = write_secrets(tmp_path)
    tls = sap.Tls(root_certificates=secrets / "ca.crt", server_name=NAME)
    # Longer than each balancer takes to notice; deploy/README.md has 5 s.
    lame_duck_s = 5 if full else 0.5 if request.param == "list" else 1.5
    flags = [f"--lame-duck-s={lame_duck_s}", "--threads=1"]
    with three_servers(secrets, flags) as servers:
        if request.param == "list":
            addresses = ",".join(server.address for server in servers)
            yield Reached(servers, lambda: sap.connect(addresses, tls=tls, token=TOKEN))
            return
        port = free_port()
        start: Start = haproxy if request.param == "haproxy" else start_envoy

        def open_client() -> sap.Client:
            return sap.connect(f"127.0.0.1:{port}", tls=tls, token=TOKEN)

        with start(servers, port, secrets) as process:
            with open_client() as client:
                await_serving(process, client)
            yield Reached(servers, open_client)
            assert process.running(), "the balancer has ended"


def await_load(server: Server) -> None:
    wait_until(lambda: server.solved() > 0, "the server has load")


def test_restarts_under_load_lose_double_reorder_and_change_nothing(
    reached: Reached, full: bool, record_property: Callable[[str, object], None]
) -> None:
    rounds, between = (10, 500) if full else (1, 30)
    slowest: dict[str, dict[str, float]] = {}
    with Load(WORKS * 2, reached.open_client) as load:
        load.await_outcomes(between)
        for number in (signal.SIGTERM, signal.SIGKILL):
            load.take_slowest_s()
            for _ in range(rounds):
                for server in reached.servers:
                    await_load(server)
                    server.restart(number)
                    load.await_outcomes(between)
            slowest[number.name] = load.take_slowest_s()
    assert load.violations() == []
    record_property("outcomes", load.outcomes())
    record_property("slowest_s", slowest)
    print(load.outcomes(), slowest)
    if full:
        assert slowest["SIGTERM"]["sessions"] <= 0.1
        assert slowest["SIGKILL"]["sessions"] <= 1.0
