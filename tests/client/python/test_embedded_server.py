"""Embedded servers: they start, stop, and do not outlive the program that started them."""

from __future__ import annotations

import gc
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import sap_islands as sap

from support.scenes import balls_on_floor


def is_running(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


def wait_until_gone(pid: int, path: Path) -> None:
    deadline = time.monotonic() + 300
    while (is_running(pid) or path.exists()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_running(pid)
    assert not path.exists()


def directory_of(server: sap.EmbeddedServer) -> Path:
    return Path(server.address.removeprefix("unix:")).parent


def test_flags_in_the_environment_are_those_of_other_servers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SAP_TOKEN_FILE", "/nowhere/tokens")
    monkeypatch.setenv("SAP_MAX_TREES", "1")
    with sap.connect("embedded:process") as client:
        assert client.solve(balls_on_floor([0.0, 0.3])).solved


def test_a_large_scene_has_the_same_bits_over_several_connections() -> None:
    scene = balls_on_floor([0.1] * 8000)  # of two megabytes and more
    with sap.EmbeddedServer(("--threads", "2")) as server:
        with sap.connect(server.address) as client:
            whole = client.solve(scene)
        with sap.connect(server.address, scene_connections=2) as client:
            divided = client.solve(scene)
        with pytest.raises(sap.InvalidArgument, match="scene_connections is 65"):
            sap.connect(server.address, scene_connections=65)
    np.testing.assert_array_equal(divided.velocity, whole.velocity)
    np.testing.assert_array_equal(divided.impulse, whole.impulse)


def test_socket_is_private_and_removed_with_the_server() -> None:
    with sap.EmbeddedServer(("--threads", "1")) as server:
        directory = directory_of(server)
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        with sap.connect(server.address) as client:
            assert client.info().solver_threads == 1
            assert client.solve(balls_on_floor([0.0])).solved
    wait_until_gone(server.pid, directory)
    server.stop()


def test_server_ends_with_the_last_reference_to_it() -> None:
    server = sap.EmbeddedServer()
    pid, directory = server.pid, directory_of(server)
    del server
    gc.collect()
    wait_until_gone(pid, directory)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_server_ends_with_the_program_that_started_it(how: signal.Signals) -> None:
    program = (
        "import sap_islands, signal, time\n"
        # A program that a shell starts in the background ignores SIGINT, and so do its children.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "server = sap_islands.EmbeddedServer()\n"
        "print(server.pid, server.address, flush=True)\n"
        # A thread of gRPC may receive the signal, which would not interrupt a long sleep.
        "for _ in range(6000): time.sleep(0.1)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert parent.stdout is not None
    pid, address = parent.stdout.readline().split()
    assert is_running(int(pid))
    parent.send_signal(how)
    parent.wait(300)
    parent.stdout.close()
    wait_until_gone(int(pid), Path(address.removeprefix("unix:")).parent)


def test_server_that_does_not_start_says_why() -> None:
    with pytest.raises(sap.Unavailable, match=r"does not serve: .*--no-such-flag"):
        sap.EmbeddedServer(("--no-such-flag",))


def test_missing_server_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SAP_SERVER", str(tmp_path / "nowhere"))
    with pytest.raises(sap.Unavailable, match="nowhere"):
        sap.connect("embedded:process")


def test_arguments_are_for_embedded_servers_only() -> None:
    with pytest.raises(sap.InvalidArgument, match="server_arguments"):
        sap.connect("unix:/run/sap.sock", server_arguments=("--threads", "1"))


def test_long_temporary_directory_does_not_break_the_socket(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    monkeypatch.setenv("TMPDIR", str(deep))
    monkeypatch.setattr("tempfile.tempdir", None)
    with sap.EmbeddedServer() as server:
        assert len(os.fsencode(server.address)) < 107
