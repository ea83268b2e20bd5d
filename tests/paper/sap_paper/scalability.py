"""Scaling of SAP to thousands of bodies, which the paper leaves to future work."""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np

from sap_paper import rigid_simulation
from sap_paper.report import Case, Claim, Status, Table, check
from sap_paper.rigid_simulation import PLAIN_WHOLE, SERVICE, Simulated
from sap_paper.setting import Setting

_KINDS = (("pile", True, "one pile"), ("heaps", False, "heaps of three"))
_WINDOW = 0.5  # last fraction of the steps that is evaluated, in which the bodies are in contact


class _Runs(NamedTuple):
    """The simulations of the case.

    Attributes:
        counts: Numbers of bodies.
        threads: Numbers of threads.
        found: Simulations by scene, bodies and threads.
        whole: Simulations of one pile by bodies, with plain Newton and without islands.
    """

    counts: list[int]
    threads: list[int]
    found: dict[tuple[str, int, int], Simulated]
    whole: dict[int, Simulated]


def run(setting: Setting) -> Case:
    """Runs the case: up to 3000 bodies for 1.5 s in full, 100 for 0.5 s in the quick form."""
    counts = [100, 300, 1000, 3000] if setting.full else [30, 100]
    duration = 1.5 if setting.full else 0.5
    threads = list(range(1, min(os.cpu_count() or 1, 8) + 1)) if setting.full else [1]
    case = Case(
        "scalability",
        "Scalability",
        "Sections VI-C1 and VIII",
        f"Boxes and spheres in one pile within walls, and in heaps of three on open ground, "
        f"{duration:g} s at dt 10 ms, ε_r = 1e-5. The factor of a large island serves as "
        "preconditioner in single precision, for conjugate gradients on H in double; that of a "
        "small one is direct, in double. The service chooses by the predicted work, and a client "
        "cannot select, so that the two are not measured separately. Figures are those of the "
        f"last {_WINDOW:.0%} of the steps.",
        setting.out,
    )
    found: dict[tuple[str, int, int], Simulated] = {}
    for scene, walls, _ in _KINDS:
        for bodies in counts:
            for count in threads:
                found[scene, bodies, count] = rigid_simulation.simulate(
                    scene, bodies, walls, duration, SERVICE, threads=count
                )
    whole = {
        bodies: rigid_simulation.simulate("pile", bodies, True, duration, PLAIN_WHOLE)
        for bodies in counts
    }
    runs = _Runs(counts, threads, found, whole)
    _claims(case, runs)
    _table(case, runs)
    _plots(case, runs)
    return case


def _late(values: np.ndarray) -> float:
    """Mean over the last steps."""
    return float(np.mean(values[-round(_WINDOW * len(values)) :]))


def _claims(case: Case, runs: _Runs) -> None:
    counts, threads, found, whole = runs
    largest = counts[-1]
    pile = [_late(found["pile", n, 1].solve_s) for n in counts]
    iterations = [_late(found["pile", n, 1].iterations) for n in counts]
    plain = [_late(whole[n].iterations) for n in counts]
    exponent = float(np.polyfit(np.log(counts), np.log(pile), 1)[0])
    worst = max(run.columns["momentum_error"].max() for run in found.values())
    case.claims += [
        check(
            "SAP scales to thousands of bodies with sparse algebra",
            "“we see no reason it could not”",
            f"{largest} bodies in one pile: {1e3 * pile[-1]:.1f} ms per step, "
            f"{iterations[-1]:.1f} iterations",
            worst <= 1e-5,
            f"time grows as bodies to the power {exponent:.2f}; every step met the tolerance",
        ),
        Claim(
            "iterations as the pile grows, accelerated Newton with islands",
            "not studied",
            f"{iterations[0]:.1f} at {counts[0]} bodies to {iterations[-1]:.1f} at {largest}",
            Status.ADDED,
            f"plain Newton on the whole scene: {plain[0]:.1f} to {plain[-1]:.1f}",
        ),
    ]
    if len(threads) > 1:
        speedup = {
            scene: _late(found[scene, largest, 1].solve_s)
            / _late(found[scene, largest, threads[-1]].solve_s)
            for scene, _, _ in _KINDS
        }
        case.claims.append(
            Claim(
                f"islands on threads, {threads[-1]} of them, {largest} bodies",
                "suggested, single thread only",
                f"{speedup['heaps']:.2f}x for heaps, {speedup['pile']:.2f}x for one pile",
                Status.ADDED,
                "heaps are separate islands; within a pile the threads share the factorization. "
                "The speed-up is not conclusive on a busy machine; see the load average at the "
                "head of this report",
            )
        )


def _table(case: Case, runs: _Runs) -> None:
    counts, threads, found, whole = runs
    rows = []
    for scene, _, name in _KINDS:
        for bodies in counts:
            one = found[scene, bodies, 1]
            times = [f"{1e3 * _late(found[scene, bodies, n].solve_s):.2f}" for n in threads]
            plain = whole[bodies] if scene == "pile" else None
            rows.append(
                (
                    name,
                    str(bodies),
                    f"{_late(one.columns['contacts']):.0f}",
                    f"{_late(one.columns['islands']):.0f}",
                    f"{_late(one.iterations):.2f}",
                    *times,
                    f"{_late(plain.iterations):.2f}" if plain else "",
                    f"{1e3 * _late(plain.solve_s):.2f}" if plain else "",
                )
            )
    head = ["scene", "bodies", "contacts", "islands", "iterations"]
    head += [f"{n} thread{'s' if n > 1 else ''} [ms]" for n in threads]
    head += ["plain, whole: iterations", "1 thread [ms]"]
    case.tables.append(Table("Mean per step", head, rows))


def _plots(case: Case, runs: _Runs) -> None:
    counts, threads, found, whole = runs
    with case.plot("bodies", "Time and iterations per step against bodies", 2) as axes:
        for scene, _, name in _KINDS:
            for n, style in zip(threads, ("o-", "s--", "^:", "v-.", *[":"] * 4), strict=False):
                times = [1e3 * _late(found[scene, b, n].solve_s) for b in counts]
                axes[0].loglog(counts, times, style, label=f"{name}, threads: {n}")
            iterations = [_late(found[scene, b, 1].iterations) for b in counts]
            axes[1].semilogx(counts, iterations, "o-", label=name)
        times = [1e3 * _late(whole[b].solve_s) for b in counts]
        axes[0].loglog(counts, times, "k:", label="one pile, plain, whole")
        axes[1].semilogx(counts, [_late(whole[b].iterations) for b in counts], "k:", label="plain")
        axes[0].set(xlabel="bodies", ylabel="time of the solve [ms]")
        axes[1].set(xlabel="bodies", ylabel="iterations")
        for ax in axes:
            ax.legend(fontsize=8)
