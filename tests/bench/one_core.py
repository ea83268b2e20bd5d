"""Benchmarks on one core."""

from __future__ import annotations

import os


def pin_to_one_core() -> None:
    """The last core that this process may use, for all threads that it starts."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
