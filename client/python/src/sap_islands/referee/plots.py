"""A picture of a verdict: errors over time, a line per world, and their distribution."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sap_islands.referee.verdict import Verdict

_LEAST = 1e-14
_MAX_LINES = 64  # worlds with lines; those with the largest errors
_BINS = 60


def plot(verdict: Verdict, path: Path) -> None:
    """Writes the picture in the format of the suffix."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot

    error = np.maximum(verdict.error, _LEAST)
    has_time = not np.isnan(verdict.time).any()
    at = verdict.time if has_time else verdict.number.astype(float)
    figure, (over_time, counts) = pyplot.subplots(
        1, 2, figsize=(11, 4.5), sharey=True, width_ratios=(3, 1), layout="constrained"
    )
    rows = sorted(verdict.worlds(), key=lambda row: -row["error"]["max"])
    for row in rows[:_MAX_LINES]:
        members = np.flatnonzero(verdict.world == row["world"])
        members = members[np.argsort(at[members], kind="stable")]
        over_time.semilogy(at[members], error[members], ".-", linewidth=0.6, markersize=2)
    over_time.set_xlabel("time [s]" if has_time else "state")
    over_time.set_ylabel("error")
    bins = np.logspace(np.log10(_LEAST), np.log10(max(error.max(), 10.0)), _BINS)
    counts.hist(error, bins, orientation="horizontal", color="gray")
    counts.set_xlabel("states")
    for axes in (over_time, counts):
        axes.axhline(verdict.tolerance, color="red", linewidth=1)
    figure.suptitle(
        f"{verdict.exact} of {verdict.states} states exact to {verdict.tolerance:g}"
        + (f", {len(rows)} worlds" if len(rows) > 1 else "")
    )
    figure.savefig(path)
    pyplot.close(figure)
