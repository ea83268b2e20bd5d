"""In one process with packages that bring the same libraries: gRPC, oneTBB, OpenMP, protobuf."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
import sap_islands as sap
from sap_islands.binaries import find_client_library

from conftest import ROOT
from support.program import run_program

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


# Each brings its own copies of libraries that the solver must not meet: oneTBB, OpenMP, protobuf.
NEIGHBOURS = ("mujoco", "pydrake.all", "torch", "jax", "scipy.sparse.linalg")


def test_bits_are_equal_before_and_after_others_are_imported(
    client: sap.Client, tmp_path: Path
) -> None:
    neighbours = [name for name in NEIGHBOURS if importlib.util.find_spec(name.split(".")[0])]
    assert len(neighbours) >= 2
    problem = sap.load_problem(ROOT / "tests/data/pile_1000_t12p00.json.gz")
    (tmp_path / "expected").write_bytes(client.solve(problem).velocity.tobytes())
    (tmp_path / "problem").write_bytes(problem.to_bytes())
    for order in (neighbours, []):
        program = f"""
import importlib, pathlib, sys
for name in {order!r}: importlib.import_module(name)
import sap_islands as sap
client = sap.connect("embedded:", threads=2)
problem = sap.Problem.from_bytes(pathlib.Path("problem").read_bytes())
assert client.solve(problem).velocity.tobytes() == pathlib.Path("expected").read_bytes()
for name in {neighbours!r}: importlib.import_module(name)
assert client.solve(problem).velocity.tobytes() == pathlib.Path("expected").read_bytes()
print("fine")
"""
        result = run_program(program, tmp_path)
        assert result.stdout.endswith("fine\n"), result.stderr
