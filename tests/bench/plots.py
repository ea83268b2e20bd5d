"""Draws the plots of tests/bench/README.md from the tables of bench.py.

plots.py RESULTS_DIR OUT_DIR
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt

# Categorical colors that stay apart in print and for color-blind readers.
OURS, DRAKE, MUJOCO, CLARABEL = "#0072b2", "#d55e00", "#009e73", "#cc79a7"


def rows(directory: Path, name: str) -> list[dict[str, str]]:
    path = directory / f"{name}.csv"
    if not path.exists():
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def time_against_bodies(results: Path, out: Path) -> None:
    figure, axes = plt.subplots(figsize=(6.4, 4.2))

    def line(points: list[tuple[float, float]], color: str, style: str, label: str) -> None:
        if points:
            axes.loglog(*zip(*sorted(points)), style, color=color, label=label)

    drake = [r for r in rows(results, "drake") if r["scene"] == "bin" and r["phase"] == "rest"]
    mujoco = [
        r
        for r in rows(results, "mujoco")
        if r["scene"] == "bin" and r["regularization"] == "default"
    ]
    for name, color, table in (("Drake", DRAKE, drake), ("MuJoCo", MUJOCO, mujoco)):
        bodies = [float(row["bodies"]) for row in table]
        line(
            [(b, float(r[f"{name} median ms"])) for b, r in zip(bodies, table)],
            color,
            "o-",
            name,
        )
        line(
            [(b, float(r["ours median ms"])) for b, r in zip(bodies, table)],
            color,
            "s--",
            f"sap-islands on {name}'s problems",
        )
    own = [r for r in rows(results, "scaling") if r["scene"] == "pile"]
    line([(float(r["bodies"]), float(r["median ms"])) for r in own], OURS, "^-", "own pile")
    axes.set_xlabel("bodies in one bin")
    axes.set_ylabel("one step on one core, median [ms]")
    axes.grid(True, which="major", alpha=0.3)
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(out / "time_against_bodies.png", dpi=144)


def speed_up_against_threads(results: Path, out: Path) -> None:
    figure, axes = plt.subplots(figsize=(6.4, 3.6))
    table = rows(results, "threads")
    scenes = sorted({(row["scene"], row["bodies"]) for row in table})
    most = 1
    for scene, bodies in scenes:
        points = [(1, 1.0)] + [
            (int(row["threads"]), float(row["median speed-up"]))
            for row in table
            if (row["scene"], row["bodies"]) == (scene, bodies)
        ]
        most = max(most, *(threads for threads, _ in points))
        axes.plot(*zip(*points), "o-", label=f"{scene}, {bodies} bodies")
    axes.plot([1, most], [1, most], ":", color="gray", label="ideal")
    axes.set_xticks(range(1, most + 1))
    axes.set_xlabel("threads")
    axes.set_ylabel("speed-up, median of paired steps")
    axes.grid(True, alpha=0.3)
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(out / "speed_up_against_threads.png", dpi=144)


def predicted_speed_up(results: Path, out: Path) -> None:
    """Predicted, except for the points of one number of threads."""
    table = rows(results, "task_graph")
    if not table:
        return
    figure, axes = plt.subplots(figsize=(6.4, 4.2))
    threads = [int(name.split()[1]) for name in table[0] if name.startswith("predicted ")]
    for row in table:
        if int(row["bodies"]) < 160:
            continue
        label = f"{row['scene']}, {row['bodies']}{' in a bin' if row['walls'] == '1' else ''}"
        (line,) = axes.plot(
            [1, *threads],
            [1.0, *(float(row[f"predicted {count}"]) for count in threads)],
            ".--",
            label=f"{label}, steps {row['steps']}",
        )
        axes.plot(int(row["threads"]), float(row["measured"]), "o", color=line.get_color())
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xticks([1, *threads], [str(count) for count in (1, *threads)])
    axes.set_yticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", "16"])
    axes.set_xlabel("threads")
    axes.set_ylabel("speed-up: predicted (dashed), measured (o)")
    axes.grid(True, alpha=0.3)
    axes.legend(frameon=False, fontsize="small")
    figure.tight_layout()
    figure.savefig(out / "predicted_speed_up.png", dpi=144)


if __name__ == "__main__":
    results_directory, out_directory = Path(sys.argv[1]), Path(sys.argv[2])
    time_against_bodies(results_directory, out_directory)
    speed_up_against_threads(results_directory, out_directory)
    predicted_speed_up(results_directory, out_directory)
