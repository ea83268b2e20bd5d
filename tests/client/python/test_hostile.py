"""Strangers that hold, flood and break connections of a server cost its clients no answer.

`tests/e2e/hostile` has these attacks and more against the client for C++; here calls and sessions
are those of the package, and so of the C interface.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import pytest
import sap_islands as sap
import sap_islands.aio

from support.scenes import pushed_steps, same_bits
from support.server_process import ServerProcess

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes.fromhex("000000040000000000")
HEADERS = bytes.fromhex("000010010000000001")  # a block of 16 bytes that never ends
CONNECTIONS = 16
PAUSE_S = 0.02  # floods of connections are for firewalls, see SECURITY.md


def connected(address: str) -> socket.socket:
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=60)


def hold_connections(address: str) -> None:
    with ExitStack() as held:
        for number in range(CONNECTIONS):
            stranger = held.enter_context(connected(address))
            stranger.sendall(PREFACE[: number % len(PREFACE)])


def send_garbage(address: str) -> None:
    with connected(address) as stranger, suppress(OSError):  # the server has closed it
        for _ in range(16):
            stranger.sendall(os.urandom(4096))


def leave_headers_open(address: str) -> None:
    with connected(address) as stranger, suppress(OSError):
        stranger.sendall(PREFACE + HEADERS + bytes(8))


def reset_connections(address: str) -> None:
    linger = bytes.fromhex("0100000000000000")
    for _ in range(CONNECTIONS):
        with connected(address) as stranger:
            stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            stranger.sendall(PREFACE)


@pytest.fixture(params=[hold_connections, send_garbage, leave_headers_open, reset_connections])
def attacked(request: pytest.FixtureRequest) -> Iterator[str]:
    """Address of a server under an attack that goes on."""
    attack: Callable[[str], None] = request.param
    stop = threading.Event()
    attacks: list[int] = []
    with ServerProcess("127.0.0.1:0") as server:

        def run() -> None:
            while not stop.wait(PAUSE_S):
                attack(server.address)
                attacks.append(1)

        strangers = [threading.Thread(target=run) for _ in range(2)]
        for stranger in strangers:
            stranger.start()
        yield server.address
        stop.set()
        for stranger in strangers:
            stranger.join()
        assert attacks
        assert server.runs()


def test_every_answer_comes_with_its_bits(attacked: str, client: sap.Client) -> None:
    problems = pushed_steps(300)
    with client.session() as session:
        expected = [session.step(problem) for problem in problems]

    async def awaited() -> list[sap.Solution]:
        async with sap_islands.aio.connect(attacked) as twin, twin.session() as session:
            return [await session.step(problem) for problem in problems]

    with sap.connect(attacked) as neighbour, neighbour.session() as session:
        stepped = [session.step(problem) for problem in problems]
        assert same_bits(neighbour.solve(problems[0]), client.solve(problems[0]))
    for solutions in (stepped, asyncio.run(awaited())):
        for solution, wanted in zip(solutions, expected, strict=True):
            assert same_bits(solution, wanted)
