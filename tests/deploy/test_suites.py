"""The suites of tests/e2e, with the package as one of the clients: see tests/e2e/README.md.

Nothing is lost, doubled, reordered or wrong while servers are restarted, connections fail and
strangers attack. The programs are in the folder of sap-server.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sap_islands.binaries import find_server

# The tests of each program at length, and a part of them, since ctest has run them with C++ and C.
SUITES = {
    "e2e_test": ("LedgerTest.*:ProxyTest.CallsAndSessions*",) * 2,
    "fleet_test": (
        "*FleetTest.*:*FaultyLinksTest.*:*ScaleUpTest.*:*Upgrade*Test.*",
        "*FleetTest.*Sessions:*ScaleUpTest.*Sessions:UpgradeTest.*:*Upgraded*List*Unary",
    ),
    "hostile_test": (
        "*Python:*PythonAsyncio",
        "*/StrangersTest.*Python:*/ClientsTest.*PythonAsyncio",
    ),
}


@pytest.mark.parametrize("program", SUITES)
def test_the_suites_hold_for_the_package(program: str, full: bool) -> None:
    at_length, part = SUITES[program]
    tests = at_length if full else part
    variables = {"SAP_PYTHON": sys.executable} | ({"SAP_FULL_PROOF": "1"} if full else {})
    ended = subprocess.run(
        [Path(find_server()).parent / program, f"--gtest_filter={tests}", "--gtest_brief=1"],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=4 * 3600 if full else 1200,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
