"""Pytest's side of rings.txt: the option --ring, and which modules and tests it leaves out.

The conftest.py of each folder of Python tests imports the hooks.
"""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent


def read() -> dict[str, int]:
    """Ring of each name in rings.txt."""
    lines = (TESTS / "rings.txt").read_text().splitlines()
    return {name: int(ring) for ring, name in (x.split() for x in lines if x[:1].isdigit())}


RINGS = read()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--ring", type=int, choices=(1, 2, 3), default=2, help="last ring to run (tests/rings.txt)"
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    ring = RINGS.get(collection_path.relative_to(TESTS).as_posix(), 1)
    return True if ring > config.getoption("--ring") else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--ring") == 3:
        return
    left_out = [item for item in items if item.get_closest_marker("full")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not item.get_closest_marker("full")]
