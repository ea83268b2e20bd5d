"""The option --full, with which the proofs run at length."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="also what takes long")


@pytest.fixture(scope="session")
def full(pytestconfig: pytest.Config) -> bool:
    return bool(pytestconfig.getoption("--full"))
