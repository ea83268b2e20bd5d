"""libsap_islands_client holds a gRPC of its own, in one process with that of the package grpcio."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sap_islands.binaries import find_client_library

PROGRAM = Path(__file__).parent / "support/beside_grpcio.py"


@pytest.mark.parametrize("place", ["first", "second"])
def test_both_answer_under_load_in_either_order(tcp_address: str, place: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-B", PROGRAM, find_client_library(), tcp_address, place],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"GRPC_ENABLE_FORK_SUPPORT": "0"},
    )
    assert ended.returncode == 0, ended.stderr
    assert all(int(count) > 0 for count in ended.stdout.split())
    assert not ended.stderr
