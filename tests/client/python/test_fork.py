"""A forked process can use no client of servers of its parent: it is told so, and does no harm."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from test_embedded_server import is_running, wait_until_gone

PROGRAM = """
import os, signal, sys
import sap_islands as sap
import sap_islands.aio
from support.scenes import balls_on_floor, pushed_steps, same_bits

first, second = pushed_steps(2)
client = sap.connect("embedded:process")
directory = os.path.dirname(client.address.removeprefix("unix:"))
session = client.session()
expected = client.session().step(first)
session.step(first)
if (child := os.fork()) == 0:
    signal.alarm(60)
    {child}
    sys.exit()
status = os.waitpid(child, 0)[1]
assert status == 0, status
assert os.path.exists(directory)
assert same_bits(client.solve(first), expected)
assert session.step(second).solved
session.close()
client.close()
assert not os.path.exists(directory)
print("fine")
"""

REFUSED = """
    for call in (
        lambda: client.solve(first),
        lambda: next(client.stream_batch([first])),
        client.session,
        lambda: session.step(first),
        session.reset,
        lambda: session.send(first),
        session.receive,
        lambda: sap.connect(client.address),
        lambda: sap.aio.connect(client.address),
        lambda: sap.connect("127.0.0.1:1,localhost:2"),
    ):
        try:
            call()
        except sap.FailedPrecondition as error:
            assert isinstance(error, RuntimeError)
            assert "spawn" in str(error), error
        else:
            raise AssertionError
"""


@pytest.mark.parametrize(
    "child",
    [
        "pass",
        "del session, client",
        "session.close(); client.close()",
        "session.__exit__(ValueError, None, None); client._server.stop()",
        REFUSED,
    ],
    ids=["exits", "drops", "closes", "stops", "calls"],
)
def test_child_leaves_the_connections_of_its_parent_alone(child: str) -> None:
    here = Path(__file__).parent
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("{child}", child.strip())],
        cwd=here,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.stdout == "fine\n", result.stderr


def test_server_ends_with_its_program_although_a_child_lives_on() -> None:
    program = """
import os, signal, time
import sap_islands as sap
server = sap.EmbeddedServer()
if (child := os.fork()) == 0:
    time.sleep(600)
print(server.pid, child, server.address, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        server, child, address = parent.stdout.readline().split()
        parent.wait(300)
        try:
            wait_until_gone(int(server), Path(address.removeprefix("unix:")).parent)
            assert is_running(int(child))
        finally:
            os.kill(int(child), signal.SIGKILL)


def test_child_alone_may_connect() -> None:
    program = """
import os
import sap_islands as sap
if (child := os.fork()) == 0:
    with sap.connect("embedded:process") as client:
        client.info()
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False
    )
    assert result.stdout == "0\n", result.stderr
