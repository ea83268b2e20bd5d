"""A verdict as text: a line, a table by world, a histogram, the worst states."""

from __future__ import annotations

import numpy as np

from sap_islands.referee.verdict import Verdict

_MAX_WORLDS = 16
_MAX_WORST = 10
_WIDTH = 50  # of the largest bar of the histogram
_LEAST_DECADE = -13


def text(verdict: Verdict) -> str:
    """The text that the command line prints."""
    parts = [_summary(verdict), _worlds(verdict), _histogram(verdict)]
    if verdict.worst:
        parts.append(_worst(verdict))
    return "\n".join(line.rstrip() for line in "\n\n".join(parts).splitlines())


def _summary(verdict: Verdict) -> str:
    lines = [
        f"{verdict.exact} of {verdict.states} states are exact to {verdict.tolerance:g}; "
        f"{verdict.faults} are not"
        + ("" if verdict.above == verdict.faults else f", {verdict.above - verdict.faults} resets")
    ]
    if verdict.states < verdict.recorded:
        skipped = f", {verdict.skipped} left out as not finite" if verdict.skipped else ""
        lines.append(f"of {verdict.recorded} recorded{skipped}")
    if verdict.causes:
        causes = ", ".join(f"{name} {count}" for name, count in verdict.causes.items())
        lines.append(f"causes: {causes} ({verdict.diagnosed} diagnosed)")
    if verdict.lost_pairs.any():
        states = int(np.count_nonzero(verdict.lost_pairs))
        lines.append(
            f"lost pairs: in {states} states geoms overlap without a recorded contact, up to "
            f"{int(verdict.lost_pairs.max())} pairs"
        )
    others = int(np.count_nonzero(verdict.is_exact & (verdict.found_error > verdict.tolerance)))
    if others:
        lines.append(f"{others} states are exact on the recorded contacts, not on MuJoCo's own")
    if verdict.asleep:
        lines.append(f"in {verdict.asleep} states trees sleep, and are left out")
    lines += [f"assumed: {name}: {what}" for name, what in verdict.assumed.items()]
    if verdict.unused:
        lines.append(f"not read: {', '.join(verdict.unused)}")
    return "\n".join(lines)


def _worlds(verdict: Verdict) -> str:
    rows = sorted(verdict.worlds(), key=lambda row: -row["error"]["max"])
    lines = [
        f"{'world':>7} {'states':>7} {'% exact':>7} {'median':>8} {'99 %':>8} {'max':>8} "
        f"{'lost pairs':>10}  cause"
    ]
    for row in rows[:_MAX_WORLDS]:
        error = row["error"]
        lines.append(
            f"{row['world']:7d} {row['states']:7d} {100 * row['exact'] / row['states']:7.1f} "
            f"{error['median']:8.1e} {error['q99']:8.1e} {error['max']:8.1e} "
            f"{row['lost_pairs']:10d}  {row['cause']}"
        )
    if len(rows) > _MAX_WORLDS:
        lines.append(f"and {len(rows) - _MAX_WORLDS} worlds more, with smaller errors")
    return "\n".join(lines)


def _histogram(verdict: Verdict) -> str:
    """States by decade of their error, the last decade first."""
    decades = np.floor(np.log10(np.maximum(verdict.error, 10.0**_LEAST_DECADE))).astype(int)
    numbers, counts = np.unique(decades, return_counts=True)
    lines = ["     error  states"]
    for decade, count in zip(numbers[::-1].tolist(), counts[::-1].tolist(), strict=True):
        name = f"1e{decade:+03d}" if decade > _LEAST_DECADE else "less"
        bar = "#" * max(1, round(_WIDTH * count / counts.max()))
        lines.append(f"{name:>10} {count:7d}  {bar}")
    return "\n".join(lines)


def _worst(verdict: Verdict) -> str:
    lines = [f"{'state':>8} {'world':>6} {'time':>9} {'error':>8} {'island':>8}  cause"]
    for state in verdict.worst[:_MAX_WORST]:
        time = "" if state.time is None else f"{state.time:.4g}"
        detail = f": {state.detail}" if state.detail else ""
        lines.append(
            f"{state.state:8d} {state.world:6d} {time:>9} {state.error:8.1e} "
            f"{state.island_error:8.1e}  {state.cause}{detail}"
        )
    if verdict.above > _MAX_WORST:
        lines.append(f"and {verdict.above - _MAX_WORST} states more")
    return "\n".join(lines)
