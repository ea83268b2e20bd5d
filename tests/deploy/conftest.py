"""The option --ring, with whose third the proofs run at length."""

from __future__ import annotations

import pytest
from rings import pytest_addoption as pytest_addoption


@pytest.fixture(scope="session")
def full(pytestconfig: pytest.Config) -> bool:
    return bool(pytestconfig.getoption("--ring") == 3)
