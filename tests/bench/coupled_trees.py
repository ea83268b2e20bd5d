"""Solids, cloth, cables and robots in limbs, and the same with dense matrices."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from table import Table

SOFT = Path(__file__).resolve().parents[1] / "data" / "soft"
NAMES = (
    "large_3024_nodes",
    "medium_512_nodes",
    "grip_block",
    "cloth_ball_fixed",
    "cloth_held_corners",
    "cloth_box_pile",
    "cable_long_balls",
    "clutter_soft_30_islands",
    "block_twin_parts",
    "cable_twin_parts",
    "chain_50_parts",
    "chain_200_parts",
    "humanoid_parts",
    "hand_parts",
    "dog_parts",
    "centipede_parts",
)


def soft(bench) -> Iterator[Table]:
    """Problems with coupled trees, of which SAP_PROBLEMS_SOFT_DIR has more than tests/data/soft."""
    directories = [SOFT, Path(os.environ.get("SAP_PROBLEMS_SOFT_DIR", SOFT))]
    names = [
        name
        for name in NAMES
        if bench.wants(f"soft/{name}")
        and any(any(directory.glob(f"{name}.json*")) for directory in directories)
    ]
    if not names:
        return
    lines = [line.split() for line in bench.program("coupled_benchmark", *names).splitlines()]
    table = Table("soft", "Coupled trees, warm, one thread", ";".join(lines[0]))
    for line in lines[1:]:
        table.add(*line, *[""] * (len(lines[0]) - len(line)))
    yield table
