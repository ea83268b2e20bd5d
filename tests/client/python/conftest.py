"""Fixtures and options that the tests share: servers, clients and problem files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import sap_islands as sap
from rings import pytest_addoption as pytest_addoption
from rings import pytest_collection_modifyitems as pytest_collection_modifyitems
from rings import pytest_ignore_collect as pytest_ignore_collect

from support.server_process import ServerProcess

ROOT = Path(__file__).resolve().parents[3]


def problem_files() -> list[Path]:
    """The problems with certified solutions."""
    directory = Path(os.environ.get("SAP_PROBLEMS_DIR", ROOT / "tests" / "data"))
    return sorted(path for path in directory.iterdir() if ".json" in path.name)


def soft_problem_files() -> list[Path]:
    """Problem files with coupled trees."""
    soft = ROOT / "tests" / "data" / "soft"
    directory = Path(os.environ.get("SAP_PROBLEMS_SOFT_DIR", soft))
    return sorted(path for path in directory.iterdir() if ".json" in path.name)


def stiff_problem_files() -> list[Path]:
    """Problem files with small regularization."""
    stiff = ROOT / "tests" / "data" / "stiff"
    directory = Path(os.environ.get("SAP_PROBLEMS_STIFF_DIR", stiff))
    return sorted(path for path in directory.iterdir() if ".json" in path.name)


# Where clients themselves are tested, they are tested with the solver in this process and with a
# server of their own.
CLIENT_TESTS = {"test_aio", "test_client", "test_derivatives", "test_session"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "client" in metafunc.fixturenames and metafunc.module.__name__ in CLIENT_TESTS:
        addresses = ["embedded:", "embedded:process"]
        metafunc.parametrize("client", addresses, indirect=True, scope="session")


@pytest.fixture(scope="session")
def client(request: pytest.FixtureRequest) -> Iterator[sap.Client]:
    """A client of the solver in this process, unless another address was asked for."""
    with sap.connect(getattr(request, "param", "embedded:")) as embedded:
        yield embedded


@pytest.fixture(scope="session")
def tcp_address() -> Iterator[str]:
    """Address of a server that listens on a TCP port of this machine."""
    with ServerProcess("127.0.0.1:0") as server:
        yield server.address
