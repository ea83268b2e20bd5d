"""The report: claims of the paper next to our figures, tables and plots, in Markdown.

All claims are listed, also those that were not reproduced.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import matplotlib as mpl

mpl.use("agg")
from matplotlib import pyplot  # imported after the choice of the backend

Axes: TypeAlias = Any  # matplotlib's annotations do not pass strict checks


class Status(enum.Enum):
    """Result for a claim of the paper."""

    REPRODUCED = "reproduced"
    DIFFERS = "differs, explained"
    UNEXPLAINED = "differs, unexplained"
    NOT_REPRODUCED = "not reproduced"
    OTHER_SOLVER = "another solver"
    QUOTED = "paper, not re-measured"
    ADDED = "not in the paper"


WITHIN = 0.2  # a figure and the paper's agree if the larger is at most 1.2 times the smaller
_LEGEND = (
    "A statement is reproduced if it holds. A figure is reproduced if it and the paper's differ by "
    f"a factor of at most {1 + WITHIN:g}, whichever is the larger, unless the remark gives another "
    "width. A difference is explained only by what was varied, or by what is known of both setups. "
    "“Another solver” stands where Clarabel takes the place of Gurobi, whose free licence does not "
    "allow problems of this size: that says nothing about the paper's figure."
)


@dataclass(frozen=True)
class Claim:
    """One figure or statement of the paper, and ours.

    Attributes:
        what: The quantity that is compared.
        paper: The paper's figure, with its unit.
        ours: Our figure, with its unit.
        status: Result of the comparison.
        remark: Explanation of a difference, or of how the figure was measured.
        timed: Whether the result depends on times, so that it may differ from run to run.
    """

    what: str
    paper: str
    ours: str
    status: Status
    remark: str = ""
    timed: bool = False


def check(what: str, paper: str, ours: str, holds: bool, remark: str = "") -> Claim:
    """A statement: reproduced if it holds, and otherwise not reproduced."""
    status = Status.REPRODUCED if holds else Status.NOT_REPRODUCED
    return Claim(what, paper, ours, status, remark)


def agrees(ours: float, paper: float, within: float = WITHIN) -> bool:
    """Whether two positive figures agree up to a factor of 1 + `within`."""
    return max(ours, paper) <= (1 + within) * min(ours, paper)


def figure(
    what: str, paper: str, ours: str, same: bool, remark: str = "", cause: str = ""
) -> Claim:
    """A figure: reproduced if it is the `same`; otherwise it differs, explained by the `cause`."""
    if same:
        return Claim(what, paper, ours, Status.REPRODUCED, remark)
    status = Status.DIFFERS if cause else Status.UNEXPLAINED
    return Claim(what, paper, ours, status, "; ".join(filter(None, (remark, cause))))


def measured(what: str, speed_up: float, paper: float, ours: str, remark: str = "") -> Claim:
    """A speed-up of SAP over the paper's own peer, where the paper has `paper`.

    It is not reproduced if SAP is slower, and differs if it is outside of what `agrees` allows.
    """
    status = Status.REPRODUCED if agrees(speed_up, paper) else Status.UNEXPLAINED
    if speed_up <= 1:
        status = Status.NOT_REPRODUCED
    return Claim(what, f"up to {paper:g}x", ours, status, remark, timed=True)


def other_solver(what: str, paper: str, ours: str, better: bool, remark: str = "") -> Claim:
    """A comparison with Clarabel in place of Gurobi; not reproduced unless SAP is `better`."""
    status = Status.OTHER_SOLVER if better else Status.NOT_REPRODUCED
    return Claim(what, paper, ours, status, remark, timed=True)


def quote(what: str, paper: str, ours: str = "—", remark: str = "") -> Claim:
    """A figure of the paper that is quoted without a measurement."""
    return Claim(what, paper, ours, Status.QUOTED, remark)


@dataclass(frozen=True)
class Table:
    """A table of figures.

    Attributes:
        caption: Caption.
        head: Names of the columns.
        rows: One text per column in each row.
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Plot:
    """A plot: a file in the directory of the report, and its caption."""

    file: str
    caption: str


@dataclass
class Case:
    """A test case of the paper and its results.

    Attributes:
        name: Name on the command line.
        title: Title in the paper.
        place: Section of the paper.
        setup: Description of what was run.
        out: Directory for plots; None: no plots are saved.
        claims: Comparisons with the paper.
        tables: Further tables.
        plots: Saved plots.
        seconds: Duration of the run [s].
    """

    name: str
    title: str
    place: str
    setup: str
    out: Path | None = None
    claims: list[Claim] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    plots: list[Plot] = field(default_factory=list)
    seconds: float = 0.0

    def unmet(self) -> list[Claim]:
        """The claims that are not reproduced, except those that depend on times."""
        failed = [claim for claim in self.claims if claim.status is Status.NOT_REPRODUCED]
        return [claim for claim in failed if not claim.timed]

    @contextmanager
    def plot(self, stem: str, caption: str, panels: int = 1) -> Iterator[list[Axes]]:
        """Context manager with `panels` axes side by side; saves the plot at its end."""
        figure, axes = pyplot.subplots(
            1, panels, figsize=(5.2 * panels, 3.4), layout="constrained", squeeze=False
        )
        try:
            yield list(axes[0])
            if self.out is not None:
                file = f"{self.name}-{stem}.png"
                figure.savefig(self.out / file, dpi=90)
                self.plots.append(Plot(file, caption))
        finally:
            pyplot.close(figure)


@dataclass(frozen=True)
class Run:
    """Circumstances of the run that the report states.

    Attributes:
        date: Day, for example 2026-11-21.
        machine: Processor, its cores, memory, load.
        server: Version and instruction set of the server.
        command: The command line.
        minutes: Duration [min].
    """

    date: str
    machine: str
    server: str
    command: str
    minutes: float


def write(cases: Sequence[Case], run: Run, out: Path) -> None:
    """Writes REPORT.md to the directory `out`, which has the plots."""
    (out / "REPORT.md").write_text("\n".join(_markdown(cases, run)) + "\n")


_CLAIM_HEAD = ("", "paper", "ours", "", "remark")
_TITLE = "The paper's test cases, reproduced"


def _facts(run: Run) -> list[str]:
    return [
        f"Date: {run.date}",
        f"Machine: {run.machine}",
        f"Server: {run.server}",
        f"Command: `{run.command}` ({run.minutes:.0f} min)",
        "The paper's machine: Intel Xeon E5-2650 v4 at 2.2 GHz, one thread",
    ]


def _summary(cases: Sequence[Case]) -> Table:
    rows = []
    for case in cases:
        counts = [sum(c.status is status for c in case.claims) for status in Status]
        rows.append([case.title, case.place, *map(str, counts), f"{case.seconds:.0f} s"])
    head = ("case", "in the paper", *(status.value for status in Status), "took")
    return Table("Number of claims by result", head, rows)


def _differences(cases: Sequence[Case]) -> Table:
    """The claims that do not agree with the paper, for the head of the report."""
    apart = (Status.DIFFERS, Status.UNEXPLAINED, Status.NOT_REPRODUCED)
    rows = [
        (case.title, claim.what, claim.paper, claim.ours, claim.status.value)
        for case in cases
        for claim in case.claims
        if claim.status in apart
    ]
    return Table("What does not agree", ("case", "", "paper", "ours", ""), rows)


def _claim_table(case: Case) -> Table:
    rows = [(c.what, c.paper, c.ours, c.status.value, c.remark) for c in case.claims]
    return Table("Figures of the paper and ours", _CLAIM_HEAD, rows)


def _markdown(cases: Sequence[Case], run: Run) -> Iterator[str]:
    yield f"# {_TITLE}"
    yield ""
    yield from (f"- {fact}" for fact in _facts(run))
    yield ""
    yield _LEGEND
    yield ""
    for table in (_summary(cases), _differences(cases)):
        yield from _markdown_table(table)
    for case in cases:
        yield f"## {case.title} ({case.place})"
        yield ""
        yield case.setup
        yield ""
        for table in (_claim_table(case), *case.tables):
            yield from _markdown_table(table)
        for plot in case.plots:
            caption = _markdown_text(plot.caption)
            yield f"![{caption}]({plot.file})"
            yield ""
            yield f"*{caption}*"
            yield ""


def _markdown_table(table: Table) -> Iterator[str]:
    yield f"{table.caption}:"
    yield ""
    for row in (table.head, ["---"] * len(table.head), *table.rows):
        yield "| " + " | ".join(map(_markdown_text, row)) + " |"
    yield ""


def _markdown_text(text: str) -> str:
    return re.sub(r"([|*])", r"\\\1", text)
