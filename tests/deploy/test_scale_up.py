"""A server that is added to the addresses of a name gets its share of the load.

Sessions and connections stay where they are until --connection-age-s moves them: at length, it has
its share within two of these ages. The C++ client has the same test, tests/e2e/fleet.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import sap_islands as sap

from fleet import NAME, TOKEN, Server, free_port, wait_until, write_secrets
from load import Load
from names import Names

SESSIONS = 12
HOSTS = ("127.0.0.21", "127.0.0.22", "127.0.0.23", "127.0.0.24")


@pytest.fixture
def names() -> Iterator[Names]:
    with Names() as server:
        yield server


@pytest.mark.parametrize("work", ["sessions", "unary"])
def test_a_fourth_server_gets_its_share(
    names: Names, tmp_path: Path, work: str, full: bool
) -> None:
    secrets = write_secrets(tmp_path)
    age_s = 10 if full else 3
    flags = ["--threads=1", f"--connection-age-s={age_s}"]
    calls, metrics = free_port(HOSTS[0]), free_port(HOSTS[0])
    tls = sap.Tls(root_certificates=secrets / "ca.crt", server_name=NAME)
    with contextlib.ExitStack() as stack:
        servers: list[Server] = []

        def add_server() -> None:
            host = HOSTS[len(servers)]
            server = Server(f"{host}:{calls}", f"{host}:{metrics}", secrets, flags)
            servers.append(stack.enter_context(server))
            names.addresses = list(HOSTS[: len(servers)])

        for _ in range(3):
            add_server()
        address = f"dns://{names.server}/solvers.test:{calls}"
        client = stack.enter_context(sap.connect(address, tls=tls, token=TOKEN))
        load = stack.enter_context(Load([work] * SESSIONS, lambda: contextlib.nullcontext(client)))
        load.await_outcomes(20)
        add_server()

        def has_share() -> bool:
            before = [server.solved() for server in servers]
            load.await_outcomes(50)
            solved = [server.solved() - old for server, old in zip(servers, before, strict=True)]
            print(solved)
            return solved[-1] >= 0.15 * sum(solved)

        time.sleep(2 * age_s)
        if full:
            assert has_share()
        else:  # a busy machine takes longer
            wait_until(has_share, "the fourth server has its share")
    assert load.violations() == []
