"""The picture: load of each server and latency of each step over time."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np

from scenes import Run

mpl.use("agg")
from matplotlib import pyplot  # after the choice of the backend


class Restart(NamedTuple):
    """A restart of a server; times are of the clock of `time.time`."""

    server: int
    signal: str
    begin: float
    end: float


def draw(
    path: Path,
    samples: list[tuple[float, list[float]]],
    runs: list[Run],
    restarts: list[Restart],
) -> None:
    """Draws to a file; `samples` are times and the counts of problems solved by the servers."""
    figure, (load, latency) = pyplot.subplots(
        2, 1, sharex=True, figsize=(9, 6), layout="constrained"
    )
    start = samples[0][0]
    times = np.array([time for time, _ in samples]) - start
    for server, counts in enumerate(np.array([counts for _, counts in samples]).T):
        middle = 0.5 * (times[1:] + times[:-1])
        load.plot(middle, _rates(times, counts), color=f"C{server}", label=f"server {server + 1}")
    load.set_ylabel("steps per second")
    for run in runs:
        latency.semilogy(run.sent - start, 1e3 * run.latency, ".", markersize=2, color="0.3")
    latency.set_ylabel("latency of a step [ms]")
    latency.set_xlabel("time [s]")
    for restart in restarts:
        for axes in (load, latency):
            begin, end = restart.begin - start, restart.end - start
            axes.axvspan(begin, end, color=f"C{restart.server}", alpha=0.15, linewidth=0)
        load.text(begin, 1.01, restart.signal, transform=load.get_xaxis_transform(), fontsize=6)
    load.legend(loc="upper right", fontsize=8)
    figure.savefig(path)
    pyplot.close(figure)


def _rates(times: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Problems per second; a server that does not answer solves none, a new one begins at zero."""
    before, after = counts[:-1], counts[1:]
    solved = np.where(after >= before, after - before, after)
    return np.nan_to_num(solved) / np.diff(times)
