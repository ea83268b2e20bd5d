"""The report and the command that writes it."""

from __future__ import annotations

from pathlib import Path

import pytest
from sap_paper.report import (
    Case,
    Claim,
    Run,
    Status,
    Table,
    agrees,
    check,
    figure,
    measured,
    other_solver,
    write,
)
from sap_paper.runner import CASES, main

RUN = Run("2026-01-02", "a machine", "a server", "a command", 3.0)


def test_failed_claim_is_shown_with_its_reason(tmp_path: Path) -> None:
    case = Case("toy", "A toy", "Section 0", "Set up by hand.", tmp_path)
    case.claims.append(check("speed | of light", "c", "0.9 c", holds=False, remark="it was dark"))
    write([case], RUN, tmp_path)
    assert len(case.unmet()) == 1
    text = (tmp_path / "REPORT.md").read_text()
    row = next(line for line in text.splitlines() if "it was dark" in line)
    assert row == "| speed \\| of light | c | 0.9 c | not reproduced | it was dark |"
    for fact in ("2026-01-02", "a machine", "a server", "a command"):
        assert fact in text


def test_formulas_are_no_emphasis(tmp_path: Path) -> None:
    case = Case("toy", "A toy", "Section 0", "Set up by hand.", tmp_path)
    case.claims.append(check("error (l - l*) / (l⁰ - l*)", "0", "0", holds=True))
    write([case], RUN, tmp_path)
    assert "| error (l - l\\*) / (l⁰ - l\\*) | 0 |" in (tmp_path / "REPORT.md").read_text()


def test_figure_that_is_better_than_the_papers_differs_as_one_that_is_worse() -> None:
    assert agrees(1.0, 1.19)
    assert agrees(1.19, 1.0)
    for ours in (1.1, 8.0):
        claim = figure("iterations", "3", f"{ours}", agrees(ours, 3))
        assert claim.status is Status.UNEXPLAINED
    assert figure("iterations", "3", "8", same=False, cause="why").status is Status.DIFFERS


@pytest.mark.parametrize(
    ("speed_up", "status"),
    [
        (0.9, Status.NOT_REPRODUCED),
        (5.0, Status.UNEXPLAINED),
        (24.0, Status.REPRODUCED),
        (137.0, Status.UNEXPLAINED),
    ],
)
def test_speed_up_is_compared_on_both_sides(speed_up: float, status: Status) -> None:
    assert measured("SAP against Gurobi", speed_up, 25, f"{speed_up}x").status is status


def test_another_solver_reproduces_nothing() -> None:
    assert other_solver("SAP", "7x", "15x", better=True).status is Status.OTHER_SOLVER
    assert other_solver("SAP", "7x", "0.5x", better=False).status is Status.NOT_REPRODUCED


def test_what_does_not_agree_is_at_the_head(tmp_path: Path) -> None:
    case = Case("toy", "A toy", "Section 0", "Set up by hand.")
    case.claims = [check("held", "1", "1", holds=True), figure("apart", "3", "1", same=False)]
    write([case], RUN, tmp_path)
    head = (tmp_path / "REPORT.md").read_text().split("## A toy")[0]
    assert "| A toy | apart | 3 | 1 | differs, unexplained |" in head
    assert "held" not in head


def test_tables_and_plots_follow_the_claims(tmp_path: Path) -> None:
    case = Case("toy", "A toy", "Section 0", "Set up by hand.", tmp_path)
    case.claims.append(Claim("a < b", "1", "2", Status.QUOTED))
    case.tables.append(Table("Numbers", ("x", "y"), [("3", "4")]))
    with case.plot("line", "A line") as (axes,):
        axes.plot([0, 1])
    write([case], RUN, tmp_path)
    text = (tmp_path / "REPORT.md").read_text()
    claim, table = text.index("| a < b | 1 | 2 | paper, not re-measured |"), text.index("| 3 | 4 |")
    assert claim < table < text.index("![A line](toy-line.png)")
    assert (tmp_path / "toy-line.png").stat().st_size > 0
    assert case.unmet() == []


def test_unknown_case_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["clatter"])
    message = capsys.readouterr().err
    assert "'clatter'" in message
    assert all(name in message for name in CASES)


def test_command_writes_the_report_of_the_chosen_case(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["scalability", "--out", str(tmp_path)]) == 0
    assert "Scalability" in capsys.readouterr().out
    text = (tmp_path / "REPORT.md").read_text()
    assert "Command: `python tests/paper scalability`" in text
    assert "Spring-cylinder" not in text
