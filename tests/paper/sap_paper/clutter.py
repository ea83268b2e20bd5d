"""Section VI-C: objects dropped into a container; iterations, convergence, speed and accuracy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from sap_islands.arrays import FloatArray
from sap_islands.client import Client
from sap_islands.options import NewtonMethod, Options
from sap_islands.problem import Problem
from sap_paper import gurobi, rigid_simulation
from sap_paper.convex_problem import ConvexProblem
from sap_paper.report import (
    Case,
    Claim,
    Table,
    agrees,
    check,
    figure,
    measured,
    other_solver,
    quote,
)
from sap_paper.rigid_simulation import (
    PLAIN_ISLANDS,
    PLAIN_WHOLE,
    SERVICE,
    TIME_STEP,
    TOLERANCE,
    Simulated,
)
from sap_paper.same_steps import REPEAT, fastest, solve_timed
from sap_paper.setting import Setting

PAPER_OPTIONS = Options(relative_tolerance=TOLERANCE, islands=False, newton=NewtonMethod.PLAIN)
SERVICE_OPTIONS = Options(relative_tolerance=TOLERANCE)
_METHODS = {
    "plain Newton, whole scene (the paper's)": PLAIN_WHOLE,
    "plain Newton, islands": PLAIN_ISLANDS,
    "accelerated, islands (the service's)": SERVICE,
}
_EARLY, _LATE = 60, 520  # steps whose convergence the paper shows


def run(setting: Setting) -> Case:
    """Runs the case: 10 s and up to 400 bodies in full, 2 s and up to 24 in the quick form."""
    duration = 10.0 if setting.full else 2.0
    bodies = 40 if setting.full else 24
    case = Case(
        "clutter",
        "Clutter",
        "Section VI-C",
        f"{bodies} bodies in four columns fall into a bin of 80 cm; k = 10¹² N/m, τ_d = dt = 10 ms,"
        f" μ = 1, ε_r = 1e-5, {duration:g} s, one thread. Simulated by `sap-client simulate`. The "
        "paper solves whole scenes by plain Newton; the service solves islands by accelerated "
        "Newton. With islands, the iterations of a step are those of the island with the most.",
        setting.out,
    )
    runs = {
        name: rigid_simulation.simulate(
            "clutter", bodies, True, duration, method, record=method is PLAIN_WHOLE
        )
        for name, method in _METHODS.items()
    }
    _iteration_claims(case, runs)
    plain = next(iter(runs.values()))
    _convergence(case, setting.client, plain)
    _sizes(case, setting)
    return case


def _iteration_claims(case: Case, runs: dict[str, Simulated]) -> None:
    rows = []
    for name, run in runs.items():
        steady = run.iterations[-len(run.iterations) // 5 :]
        rows.append(
            (
                name,
                f"{run.iterations.max():.0f}",
                f"{run.iterations.mean():.2f}",
                f"{steady.mean():.2f}",
                f"{1e3 * run.solve_s.mean():.3f}",
                f"{1e3 * run.solve_s.max():.2f}",
            )
        )
    head = ["method", "iterations, worst step", "mean", "mean, last fifth"]
    head += ["time per step, mean [ms]", "largest [ms]"]
    case.tables.append(Table("Iterations and time per step", head, rows))
    plain, *_, service = runs.values()
    steady = plain.iterations[-len(plain.iterations) // 5 :]
    case.claims += [
        figure(
            "iterations per step of plain Newton in the steady state",
            "about 3",
            f"{steady.mean():.1f}",
            agrees(steady.mean(), 3),
            "mean of the last fifth of the steps; the accelerated method with islands takes "
            f"{service.iterations[-len(steady) :].mean():.1f}",
        ),
        figure(
            "iterations of plain Newton in the initial transient",
            "21 at step 60",
            f"{plain.iterations[_EARLY]:.0f} at step 60, {plain.iterations.max():.0f} in the worst "
            "step",
            agrees(plain.iterations[_EARLY], 21, 0.25),
            "within a factor of 1.25, since the paper does not give the positions from which its "
            "bodies fall; the accelerated method with islands takes "
            f"{service.iterations.max():.0f} in its worst step",
        ),
        check(
            "momentum error of every step",
            "below 1e-5",
            f"at most {max(run.columns['momentum_error'].max() for run in runs.values()):.2e}",
            all(run.columns["momentum_error"].max() <= TOLERANCE for run in runs.values()),
        ),
    ]
    with case.plot("steps", "Iterations and time per step", 2) as axes:
        for name, run in runs.items():
            t = TIME_STEP * np.arange(len(run.iterations))
            axes[0].plot(t, run.iterations, lw=0.8, label=name)
            axes[1].semilogy(t, 1e3 * np.maximum(run.solve_s, 1e-7), lw=0.8)
        axes[0].set(xlabel="time [s]", ylabel="iterations")
        axes[1].set(xlabel="time [s]", ylabel="time of the solve [ms]")
        axes[0].legend(fontsize=8)


def history(client: Client, problem: Problem, options: Options) -> FloatArray:
    """Cost of each iterate, from the guess to convergence [iterations + 1] [J].

    The problem is solved again for each iterate, with max_iterations 0, 1, 2, ...
    """
    costs: list[float] = []
    while True:
        solution = client.solve(problem, replace(options, max_iterations=len(costs)))
        costs.append(solution.cost)
        if solution.solved:
            return np.array(costs)


def optimal_cost(client: Client, problem: Problem) -> float:
    """Minimum of the cost up to rounding errors [J]."""
    tight = Options(relative_tolerance=1e-14, islands=False)
    return client.solve(problem, tight).cost


def _convergence(case: Case, client: Client, plain: Simulated) -> None:
    steps = len(plain.problems)
    late_first = min(_LATE, 3 * steps // 4)
    early = min(_EARLY, steps - 1)
    late = late_first + int(np.argmax(plain.iterations[late_first : late_first + 50]))
    chosen = {"early": early, "late": late}
    curves = {}
    for name, step in chosen.items():
        costs = history(client, plain.problems[step], PAPER_OPTIONS)
        best = min(optimal_cost(client, plain.problems[step]), float(costs.min()))
        curves[name] = (costs - best) / max(costs[0] - best, 1e-300)
    falls = all(np.all(np.diff(curve) <= 1e-12) for curve in curves.values())
    before, after = _sharpest(curves["early"])
    case.claims += [
        check("the cost decreases monotonically", "yes", "yes" if falls else "no", falls),
        check(
            f"convergence at step {early}: linear at first, quadratic at the end",
            "yes",
            f"error from {before:.0e} to {after:.0e} in one of the last iterations",
            after <= before**1.5,
            "error (l - l*) / (l⁰ - l*); once no contact changes its region, a Newton step is "
            "almost exact",
        ),
        figure(
            f"convergence at step {late}, past the transient",
            "5 iterations at step 520, linear",
            f"{len(curves['late']) - 1} iterations",
            agrees(len(curves["late"]) - 1, 5),
            f"the step with the most iterations of {late_first} to {late_first + 49}; whether "
            "it is linear is not judged",
        ),
    ]
    caption = "Cost against iterations, plain Newton: (l - l*) / (l⁰ - l*)"
    with case.plot("convergence", caption, 2) as axes:
        for ax, (name, curve) in zip(axes, curves.items(), strict=True):
            ax.semilogy(np.maximum(curve, 1e-17), "o-", ms=3)
            count = np.arange(len(curve))
            ax.semilogy(0.5**count, "k:", label="linear, 1/2 each")
            quadratic = 0.1 ** (2.0 ** np.arange(6) - 1)
            first = max(len(curve) - 6, 0)
            ax.semilogy(first + np.arange(6), quadratic * 1e-1, "k--", label="quadratic")
            ax.set(xlabel="iteration", ylabel="(l - l*) / (l⁰ - l*)", ylim=(1e-17, 2))
            ax.set_title(f"step {chosen[name]}")
            ax.legend(fontsize=8)


def _sharpest(curve: FloatArray) -> tuple[float, float]:
    """The errors before and after the sharpest drop within the last iterations [-]."""
    floored = np.maximum(curve, 1e-16)
    last = np.arange(max(len(curve) - 5, 0), len(curve) - 1)
    last = last[floored[last] < 0.1]
    if not len(last):
        return 1.0, 1.0
    k = last[np.argmin(floored[last + 1] / floored[last])]
    return float(floored[k]), float(floored[k + 1])


@dataclass(frozen=True)
class Compared:
    """Solvers compared on problems sampled from one simulation; means over the problems.

    Attributes:
        bodies: Number of bodies.
        contacts: Number of contacts with an impulse in the last step.
        candidates: Number of contacts in the last problem.
        clarabel_s: Time of Clarabel [s].
        gurobi_s: Time of Gurobi [s], its iterations [-] and e_m [-]; None: a problem is too large
            for its licence.
        paper_s: Time of plain Newton on the whole scene [s].
        service_s: Time of the service's own method [s].
        clarabel_iterations: Iterations of Clarabel [-].
        momentum: e_m of plain Newton, the service's own method and Clarabel [-].
        slackness: e_μ of the same [-].
    """

    bodies: int
    contacts: int
    candidates: int
    clarabel_s: float
    gurobi_s: tuple[float, float, float] | None
    paper_s: float
    service_s: float
    clarabel_iterations: float
    momentum: tuple[float, float, float]
    slackness: tuple[float, float, float]


def compare(client: Client, bodies: int, walls: bool, duration: float, samples: int) -> Compared:
    """Simulates with the service's method, and solves a sample of the problems with all solvers."""
    run = rigid_simulation.simulate("clutter", bodies, walls, duration, record=True)
    # Problems have contacts before bodies touch. Steps without contact impulses are not compared:
    # their cost, by which slackness is divided, is 0.
    pushing = [i for i, solution in enumerate(run.solutions) if np.any(solution.impulse[:, 2] > 0)]
    chosen = np.unique(np.linspace(0, len(pushing) - 1, samples).astype(int))
    times, momentum, slackness, iterations, by_gurobi = [], [], [], [], []
    for i in chosen:
        problem = run.problems[pushing[i]]
        matrices = ConvexProblem.of(problem)
        answer = fastest(matrices)
        row, errors, slack = [answer.solve_s], [], []
        for options in (PAPER_OPTIONS, SERVICE_OPTIONS):
            solution, seconds = solve_timed(partial(client.solve, options=options), problem)
            row.append(seconds)
            errors.append(matrices.momentum_error(solution.velocity))
            slack.append(matrices.slackness(solution))
        times.append(row)
        momentum.append((*errors, answer.momentum_error))
        slackness.append((*slack, answer.slackness))
        iterations.append(answer.iterations)
        if gurobi.fits(matrices):
            found = min((gurobi.solve(matrices) for _ in range(REPEAT)), key=_time)
            error = matrices.momentum_error(found.velocity)
            by_gurobi.append((found.solve_s, found.iterations, error))
    mean = np.mean(times, axis=0)
    m, s = np.mean(momentum, axis=0), np.mean(slackness, axis=0)
    return Compared(
        bodies=bodies,
        contacts=int(np.sum(run.solutions[-1].impulse[:, 2] > 1e-12)),
        candidates=run.problems[-1].num_contacts,
        clarabel_s=mean[0],
        gurobi_s=_means(by_gurobi) if len(by_gurobi) == len(chosen) else None,
        paper_s=mean[1],
        service_s=mean[2],
        clarabel_iterations=float(np.mean(iterations)),
        momentum=(float(m[0]), float(m[1]), float(m[2])),
        slackness=(float(s[0]), float(s[1]), float(s[2])),
    )


def _time(answer: gurobi.Answer) -> float:
    return answer.solve_s


def _means(rows: list[tuple[float, int, float]]) -> tuple[float, float, float]:
    seconds, iterations, error = np.mean(rows, axis=0)
    return float(seconds), float(iterations), float(error)


def _sizes(case: Case, setting: Setting) -> None:
    counts = [4, 8, 16, 24, 40, 80, 120, 160, 200, 400] if setting.full else [8, 24]
    duration, samples = (10.0, 20) if setting.full else (2.0, 6)
    found = {
        walls: [compare(setting.client, n, walls, duration, samples) for n in counts]
        for walls in (True, False)
    }
    _size_claims(case, found)
    for walls, rows in found.items():
        name = "with walls" if walls else "without walls"
        case.tables.append(_size_table(rows, f"SAP and Clarabel, {name}, one thread"))
    with case.plot("sizes", "Contacts at the end, and speed-up over Clarabel", 3) as axes:
        for walls, marker in ((True, "o-"), (False, "s--")):
            name = "with walls" if walls else "without walls"
            axes[0].plot(counts, [row.contacts for row in found[walls]], marker, label=name)
        axes[0].set(xlabel="bodies", ylabel="contacts with an impulse")
        for ax, walls in zip(axes[1:], (True, False), strict=True):
            rows = found[walls]
            paper = [row.clarabel_s / row.paper_s for row in rows]
            ax.loglog(counts, paper, "o-", label="plain Newton, whole scene")
            service = [row.clarabel_s / row.service_s for row in rows]
            ax.loglog(counts, service, "s-", label="accelerated, islands")
            ax.axhline(1, color="k", lw=0.6)
            title = "with walls" if walls else "without walls"
            ax.set(xlabel="bodies", ylabel="speed-up over Clarabel", title=title)
        for ax in axes:
            ax.legend(fontsize=8)
    with case.plot("errors", "Mean errors over the sampled steps", 2) as axes:
        for k, name in enumerate(("plain SAP", "service", "Clarabel")):
            for walls, style in ((True, "o-"), (False, "s--")):
                rows, label = found[walls], f"{name}, {'with' if walls else 'without'} walls"
                axes[0].loglog(counts, [row.momentum[k] for row in rows], style, label=label)
                axes[1].loglog(counts, [row.slackness[k] for row in rows], style, label=label)
        axes[0].set(xlabel="bodies", ylabel="momentum error e_m")
        axes[1].set(xlabel="bodies", ylabel="slackness e_μ")
        axes[1].legend(fontsize=7)


def _size_claims(case: Case, found: dict[bool, list[Compared]]) -> None:
    with_walls, without = found[True], found[False]
    last = [row for row in with_walls if row.bodies <= 200][-1]
    peak = {
        walls: max(row.clarabel_s / row.paper_s for row in rows if row.bodies <= 40)
        for walls, rows in found.items()
    }
    more = sum(b.contacts > a.contacts for a, b in zip(with_walls, without, strict=True))
    far = [row for row in without if row.bodies <= 200][-1]
    faster = _faster(last.clarabel_s / last.paper_s)
    case.claims += [
        _gurobi_claim(found[True], "with", 25),
        _gurobi_claim(without, "without", 50),
        check(
            "contacts at rest: more without walls than with",
            "more",
            f"more for {more} of {len(with_walls)} sizes",
            more > len(with_walls) / 2,
            "contacts that carry an impulse at the end. The paper's reason is that boxes lie flat "
            "on the ground, with several contacts each; why its piles have fewer is unexplained",
        ),
        other_solver(
            "up to 40 bodies SAP outperforms interior point, with walls",
            "up to 25x over Gurobi",
            f"up to {peak[True]:.0f}x over Clarabel",
            peak[True] > 1,
            "plain Newton on the whole scene. Clarabel runs with its default tolerance 1e-8",
        ),
        other_solver(
            "up to 40 bodies SAP outperforms interior point, without walls",
            "up to 50x over Gurobi",
            f"up to {peak[False]:.0f}x over Clarabel",
            peak[False] > 1,
        ),
        other_solver(
            f"{last.bodies} bodies with walls",
            "Gurobi is faster beyond 80 bodies",
            f"plain Newton {faster} than Clarabel, the service's method "
            f"{_faster(last.clarabel_s / last.service_s)}",
            last.clarabel_s > last.paper_s,
        ),
        other_solver(
            f"{far.bodies} bodies without walls",
            "about 10x over Gurobi",
            f"{far.clarabel_s / far.paper_s:.0f}x over Clarabel; the service's method "
            f"{far.clarabel_s / far.service_s:.0f}x",
            far.clarabel_s > far.paper_s,
        ),
    ]
    _error_claims(case, [row for rows in found.values() for row in rows])


def _error_claims(case: Case, rows: list[Compared]) -> None:
    slack = max(max(row.slackness[:2]) for row in rows)
    momentum = max(max(row.momentum[:2]) for row in rows)
    iterations = np.mean([row.clarabel_iterations for row in rows])
    case.claims += [
        check("mean e_m of SAP", "below 1e-5", f"at most {momentum:.1e}", momentum <= TOLERANCE),
        check(
            "complementarity slackness e_μ of SAP",
            "exact, within machine precision",
            f"at most {slack:.1e}",
            slack <= 1e-14,
            "mean over the sampled steps, from the impulses and velocities of the service",
        ),
        other_solver(
            "iterations per step of interior point, steady state included",
            "Gurobi about 9",
            f"Clarabel {iterations:.1f}",
            True,
            "tolerance 1e-8; neither can be warm-started",
        ),
        quote("SAP against the Geodesic IPM, most sizes", "about 2x faster"),
        quote("SAP against the Geodesic IPM, 8 bodies or fewer", "about 5x faster"),
    ]


def _gurobi_claim(rows: list[Compared], walls: str, stated: float) -> Claim:
    """Claim: SAP against Gurobi, on the problems that its licence allows."""
    solved = [(row, row.gurobi_s) for row in rows if row.gurobi_s is not None]
    ratios = [f"{by[0] / row.paper_s:.0f}x at {row.bodies} bodies" for row, by in solved]
    details = [f"{by[1]:.1f} iterations, e_m {by[2]:.0e}" for _, by in solved]
    return measured(
        f"SAP against Gurobi itself up to 40 bodies, {walls} walls",
        max((by[0] / row.paper_s for row, by in solved), default=0.0),
        stated,
        ", ".join(ratios),
        f"plain Newton on the whole scene. Gurobi: {'; '.join(details)}. Its free licence allows "
        "no larger problems; at which sizes the paper's factor occurs is not stated",
    )


def _faster(ratio: float) -> str:
    return f"{ratio:.1f}x faster" if ratio >= 1 else f"{1 / ratio:.1f}x slower"


def _size_table(rows: list[Compared], caption: str) -> Table:
    head = ["bodies", "contacts at the end", "given to the solver", "Gurobi [ms]", "Clarabel [ms]"]
    head += ["plain, whole [ms]", "accelerated, islands [ms]", "Clarabel's iterations"]
    head += ["e_m: plain", "service", "Clarabel", "e_μ: plain", "service", "Clarabel"]
    body = [
        (
            str(row.bodies),
            str(row.contacts),
            str(row.candidates),
            f"{1e3 * row.gurobi_s[0]:.2f}" if row.gurobi_s else "",
            f"{1e3 * row.clarabel_s:.2f}",
            f"{1e3 * row.paper_s:.3f}",
            f"{1e3 * row.service_s:.3f}",
            f"{row.clarabel_iterations:.1f}",
            *(f"{error:.1e}" for error in (*row.momentum, *row.slackness)),
        )
        for row in rows
    ]
    return Table(caption, head, body)
