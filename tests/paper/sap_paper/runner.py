"""Runs the paper's test cases and writes the report."""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from sap_islands.errors import SapError
from sap_paper import (
    clutter,
    contact_model,
    dual_arm,
    exact_friction,
    load_path,
    scalability,
    slip_control,
    slip_parameter,
    spring_cylinder,
)
from sap_paper.report import Case, Run, write
from sap_paper.setting import Setting, open_setting

# In the order of the paper's sections; what the paper does not study is last.
CASES: dict[str, Callable[[Setting], Case]] = {
    "contact-model": contact_model.run,
    "spring-cylinder": spring_cylinder.run,
    "clutter": clutter.run,
    "slip-parameter": slip_parameter.run,
    "slip-control": slip_control.run,
    "dual-arm": dual_arm.run,
    "scalability": scalability.run,
    "load-path": load_path.run,
    "exact-friction": exact_friction.run,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the cases; returns 1 if an error occurred, otherwise 0: the report has the results.

    Args:
        arguments: The command line without the program name; None: `sys.argv[1:]`.
    """
    parser = argparse.ArgumentParser(prog="python tests/paper", description=__doc__)
    parser.add_argument(
        "cases", nargs="*", metavar="CASE", help=f"one of {', '.join(CASES)} (default: all)"
    )
    parser.add_argument(
        "--full", action="store_true", help="run the full cases, not the quick forms"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("paper-report"),
        metavar="DIR",
        help="directory for the report (%(default)s)",
    )
    chosen = parser.parse_args(arguments)
    for name in chosen.cases:
        if name not in CASES:
            parser.error(f"there is no case {name!r}; the cases are {', '.join(CASES)}")
    names = [name for name in CASES if name in chosen.cases or not chosen.cases]
    chosen.out.mkdir(parents=True, exist_ok=True)
    try:
        run_cases(names, chosen.full, chosen.out)
    except SapError as error:
        print(f"paper: {error}", file=sys.stderr)
        return 1
    print(chosen.out / "REPORT.md")
    return 0


def run_cases(names: Sequence[str], full: bool, out: Path) -> None:
    """Runs cases in the given order; the report is rewritten after each."""
    started, load = time.monotonic(), os.getloadavg()[0]
    place = f"{machine()}; load average of other processes before the run {load:.1f}"
    command = " ".join(["python tests/paper", *names, *(["--full"] if full else [])])
    if list(names) == list(CASES):
        command = f"python tests/paper{' --full' if full else ''}"
    cases: list[Case] = []
    with open_setting(full, out) as setting:
        info = setting.client.info()
        server = f"{info.version}, {info.instruction_set}, one solver thread unless said otherwise"
        for name in names:
            began = time.monotonic()
            case = CASES[name](setting)
            case.seconds = time.monotonic() - began
            cases.append(case)
            _print(case)
            minutes = (time.monotonic() - started) / 60
            date = datetime.date.today().isoformat()
            write(cases, Run(date, place, server, command, minutes), out)


def machine() -> str:
    """Processor, logical processors and memory of this machine."""
    name = platform.processor() or platform.machine()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [line for line in cpuinfo.read_text().splitlines() if "model name" in line]
        name = models[0].split(":")[1].strip() if models else name
    return f"{name}, {os.cpu_count()} logical processors, {memory:.0f} GiB"


def _print(case: Case) -> None:
    print(f"{case.title} ({case.place}), {case.seconds:.0f} s")
    for claim in case.claims:
        print(f"  {claim.status.value:>23}  {claim.what}: {claim.paper} | {claim.ours}")
