"""Fixtures of the tests of the paper's cases: solvers in this process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from rings import pytest_addoption as pytest_addoption
from sap_paper.setting import Setting, open_setting

import sap_islands as sap


@pytest.fixture(scope="session")
def client() -> Iterator[sap.Client]:
    with sap.connect("embedded:") as embedded:
        yield embedded


@pytest.fixture(scope="session")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    """The quick form of every case, with one solver thread."""
    out: Path = tmp_path_factory.mktemp("paper")
    with open_setting(full=False, out=out) as quick:
        yield quick
