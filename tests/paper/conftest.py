"""Fixture of the tests of the paper's cases: a server with one solver thread."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sap_paper.setting import Setting, open_setting


@pytest.fixture(scope="session")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    """The quick form of every case."""
    out: Path = tmp_path_factory.mktemp("paper")
    with open_setting(full=False, out=out) as quick:
        yield quick
