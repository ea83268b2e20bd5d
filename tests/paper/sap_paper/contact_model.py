"""Section V: the parameters of the contact model, checked on particles with closed-form solutions.

A particle of mass m touches the ground; its velocity v = (x', y', z') is the contact velocity. A
slider moves only vertically, and the ground's surface moves under it with a constant slip velocity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sap_islands.arrays import FloatArray
from sap_islands.client import Client
from sap_islands.options import Options
from sap_islands.problem import WORLD, Contacts, Problem, Regularization, Trees
from sap_islands.solution import Solution
from sap_paper.convex_problem import impulse_derivatives, project
from sap_paper.report import Case, Claim, Status, Table, check
from sap_paper.setting import Setting

MASS, GRAVITY = 0.7, 9.81  # kg, m/s²
RIGID = 1e12  # N/m
TIGHT = Options(relative_tolerance=1e-12)
_SETTLE, _SETTLE_SOFT = 100, 400  # steps until a particle is at rest, rigid and compliant


def run(setting: Setting) -> Case:
    """Runs the case; the quick form is the same."""
    case = Case(
        "contact-model",
        "Contact modeling parameters",
        "Section V",
        "Particles on the ground, sliders and a stack of books, worked out by hand and solved by "
        "the service.",
        setting.out,
    )
    client = setting.client
    case.claims += [
        projection_claim(client),
        compliance_claim(client),
        *sliding_claims(client),
    ]
    _gliding(case, client)
    _near_rigid(case, client)
    _stiction(case, client)
    _stack(case, client)
    return case


def solve_particle(
    client: Client, velocity: FloatArray, distance: float, dt: float, **contact: float
) -> Solution:
    """Solves one step of a particle.

    Args:
        client: Client of the service.
        velocity: Free-motion velocity [3] [m/s].
        distance: Signed distance to the ground [m].
        dt: Time step [s].
        contact: Fields of `Contacts` that replace the defaults.
    """
    given: dict[str, Any] = {"stiffness": RIGID, "relaxation_time": 0.0, "friction": 1.0, **contact}
    problem = Problem(
        time_step=dt,
        trees=Trees(dofs=3, dynamics_matrix=MASS * np.eye(3), free_motion_velocity=velocity),
        contacts=Contacts(
            tree_a=[0], tree_b=[WORLD], jacobian=np.eye(3), signed_distance=[distance], **given
        ),
    )
    return client.solve(problem, TIGHT)


def projection_claim(client: Client) -> Claim:
    """Claim: impulses agree with the closed form of equation (17) in all three regions."""
    rng = np.random.default_rng(1)
    worst, regions = 0.0, set()
    for _ in range(60):
        dt, k, mu = 0.01, 10 ** rng.uniform(2, 5), rng.uniform(0.2, 1.5)
        distance = rng.normal() * 1e-3
        v_star = rng.normal(size=3) * 0.3
        R_t, R_n = 10 ** rng.uniform(-3, 0), 1 / (dt * k * dt)
        solution = solve_particle(
            client, v_star, distance, dt, friction=mu, regularization_t=R_t, regularization_n=R_n
        )
        R = np.array([[R_t, R_t, R_n]])
        v_hat = np.array([0.0, 0.0, -distance / dt])
        y = -(solution.velocity - v_hat) / R
        gamma = project(y, np.array([mu]), R)[0]
        # The residual of the momentum equation is part of the error.
        momentum = MASS * (solution.velocity - v_star)
        scale = float(np.max(np.abs(momentum))) + MASS * float(np.linalg.norm(v_star))
        worst = max(worst, float(np.max(np.abs(momentum - gamma))) / scale)
        worst = max(worst, float(np.max(np.abs(solution.impulse[0] - gamma))) / scale)
        y_r = math.hypot(y[0, 0], y[0, 1])
        sticks, slides = y_r <= mu * y[0, 2], y[0, 2] > -mu * R_t / R_n * y_r
        regions.add("stiction" if sticks else "sliding" if slides else "no contact")
    return check(
        "impulses are P_F(y) in closed form, 60 random particles",
        "equation (17)",
        f"{worst:.0e} apart, in {len(regions)} regions",
        worst <= 1e-9 and len(regions) == 3,
    )


def compliance_claim(client: Client) -> Claim:
    """Claim: γ_n / dt = (-k φ - τ_d k v_n)_+ without slip, for compliant contact."""
    dt, k, tau_d = 1e-3, 2000.0, 0.03
    worst = 0.0
    for distance in np.linspace(-4e-3, 1e-3, 6):
        for v_n in np.linspace(-0.5, 0.5, 6):
            v_star = np.array([0.0, 0.0, v_n])
            solution = solve_particle(
                client, v_star, distance, dt, stiffness=k, relaxation_time=tau_d
            )
            found = solution.velocity[2]
            law = max(0.0, -k * (distance + dt * found) - tau_d * k * found)
            worst = max(worst, abs(solution.impulse[0, 2] / dt - law))
    return check(
        "compliant law γ_n / dt = (-k φ - τ_d k v_n)₊ in stiction, φ from -4 to 1 mm",
        "equation (1)",
        f"at most {worst:.0e} N apart",
        worst <= 1e-9,
    )


def solve_slider(
    client: Client, slip: float, distance: float, sinking: float, dt: float, **contact: float
) -> Solution:
    """Solves one step of a slider.

    Args:
        client: Client of the service.
        slip: Velocity of the ground's surface [m/s].
        distance: Signed distance to the ground [m].
        sinking: Free-motion velocity, upwards [m/s].
        dt: Time step [s].
        contact: Fields of `Contacts` that replace the defaults.
    """
    given: dict[str, Any] = {"stiffness": RIGID, "relaxation_time": 0.0, "friction": 1.0, **contact}
    problem = Problem(
        time_step=dt,
        trees=Trees(dofs=1, dynamics_matrix=MASS, free_motion_velocity=sinking),
        contacts=Contacts(
            tree_a=[0],
            tree_b=[WORLD],
            jacobian=[0.0, 0.0, 1.0],
            signed_distance=[distance],
            surface_velocity=[slip, 0.0, 0.0],
            delassus_estimate=1 / MASS,
            **given,
        ),
    )
    return client.solve(problem, TIGHT)


def sliding_claims(client: Client) -> list[Claim]:
    """Claims: effective stiffness k / (1 + μ̃²), and how slip changes the normal impulse."""
    dt, k, tau_d, mu, slip, distance = 1e-3, 500.0, 0.01, 0.8, 1.0, -5e-3
    worst, sliding = 0.0, 0
    R_n = 1 / (dt * k * (dt + tau_d))
    for ratio in (1e-3, 0.1, 1.0):
        found = solve_slider(
            client,
            slip,
            distance,
            0.0,
            dt,
            friction=mu,
            relaxation_time=tau_d,
            stiffness=k,
            regularization_t=ratio * R_n,
            regularization_n=R_n,
        )
        v_n = found.velocity[0]
        effective = distance + dt * v_n - (dt + tau_d) * mu * slip
        law = -dt * k / (1 + mu**2 * ratio) * (effective + tau_d * v_n)
        y_n = -(v_n + distance / (dt + tau_d)) / R_n
        if slip / (ratio * R_n) > mu * y_n:
            sliding += 1
            worst = max(worst, abs(found.impulse[0, 2] / law - 1))
    soft = []
    sigma, beta = 1e-3, 1.0
    for resolution in (1.0, 0.1, 0.01):  # dt / T_n
        omega = 2 * math.pi * resolution / dt
        R_soft = max(beta**2 / (4 * math.pi**2), 1 / (omega * dt) ** 2)
        soft.append(sigma / R_soft)
    return [
        check(
            "sliding: γ_n = -dt k / (1 + μ̃²) (φ - (dt + τ_d) μ |v_t| + τ_d v_n)",
            "Section V-A",
            f"{worst:.0e} apart, relative",
            worst <= 1e-9 and sliding == 3,
        ),
        check(
            "R_t / R_n while dt resolves the contact",
            "at most about 4π²σ, quadratic in dt / T_n",
            ", ".join(f"{value:.1e}" for value in soft) + " for dt / T_n of 1, 0.1, 0.01",
            max(soft) <= 4 * math.pi**2 * sigma * 1.001 and math.isclose(soft[0] / soft[2], 1e4),
            f"arithmetic of the rule alone; 4π²σ is {4 * math.pi**2 * sigma:.1e}",
        ),
    ]


def glide(client: Client, slip: float, dt: float, stiffness: float, tau_d: float) -> float:
    """Steady-state distance of a slider from the ground [m]."""
    z, v = 0.0, 0.0
    for _ in range(_SETTLE):
        solution = solve_slider(
            client, slip, z, v - dt * GRAVITY, dt, stiffness=stiffness, relaxation_time=tau_d
        )
        v = float(solution.velocity[0])
        z += dt * v
    return z


def _gliding(case: Case, client: Client) -> None:
    dt, slips = 0.01, (0.05, 0.2, 0.5, 1.0)
    found = [glide(client, slip, dt, RIGID, 0.0) for slip in slips]
    # Penetration by the weight: R_n m g dt (1 + μ̃²) dt, with R_n and R_t of w = 1 / m.
    pressed = GRAVITY * dt**2 * (1 / (4 * math.pi**2) + 1e-3)
    worst = max(abs(z + pressed - dt * slip) for z, slip in zip(found, slips, strict=True))
    ratio = found[-1] / (dt * slips[-1])
    case.claims.append(
        check(
            "rigid contact: a slider glides at φ = dt μ |v_t|",
            "dt μ |v_t|",
            f"{ratio:.3f} of it at 1 m/s; {worst:.0e} m apart with the penetration by its weight",
            worst <= 1e-9,
        )
    )
    tau_d, stiffness, slip = 0.02, 1e4, 0.5
    steps = (2e-2, 1e-2, 5e-3, 2e-3)
    soft = [glide(client, slip, dt, stiffness, tau_d) for dt in steps]
    load = MASS * GRAVITY / stiffness
    limit = tau_d * slip - load
    case.claims.append(
        check(
            "compliant contact: the distance stays as dt → 0",
            "φ ≈ τ_d μ |v_t|",
            f"{1e3 * soft[-1]:.2f} mm at dt {1e3 * steps[-1]:g} ms, limit {1e3 * limit:.2f} mm",
            abs(soft[-1] - limit) <= 1.05 * steps[-1] * slip,
            "the limit is τ_d μ |v_t| less the compression m g / k",
        )
    )
    with case.plot(
        "gliding", "Gliding distance: rigid against slip, compliant against dt", 2
    ) as axes:
        axes[0].plot(slips, [1e3 * z for z in found], "o", label="simulated, dt = 10 ms")
        axes[0].plot(slips, [1e3 * dt * slip_i for slip_i in slips], "k--", label="dt μ |v_t|")
        axes[0].set(xlabel="slip [m/s]", ylabel="distance [mm]")
        axes[1].plot([1e3 * step for step in steps], [1e3 * z for z in soft], "o-")
        axes[1].axhline(1e3 * limit, color="k", ls="--", lw=0.8, label="limit dt → 0")
        axes[1].set(xlabel="time step [ms]", ylabel="distance [mm]", ylim=(0, None))
        for ax in axes:
            ax.legend()
    rows = [
        ("rigid, τ_d = 0", f"{slip:g}", f"{1e3 * dt:g}", f"{1e3 * z:.3f}", f"{1e3 * dt * slip:.3f}")
        for slip, z in zip(slips, found, strict=True)
    ]
    for dt_i, z in zip(steps, soft, strict=True):
        law = 1e3 * ((dt_i + tau_d) * slip - load)
        kind = "k = 10 kN/m, τ_d = 20 ms"
        rows.append((kind, f"{slip:g}", f"{1e3 * dt_i:g}", f"{1e3 * z:.3f}", f"{law:.3f}"))
    head = ("contact", "|v_t| [m/s]", "dt [ms]", "φ [mm]", "(dt + τ_d) μ |v_t| - m g / k [mm]")
    case.tables.append(Table("Gliding distance, μ = 1", head, rows))


def rest(
    client: Client, dt: float, stiffness: float, tau_d: float, weight: float, beta: float
) -> float:
    """Penetration of a particle at rest [m], with the Delassus estimate `weight` [1/kg]."""
    z, v = 0.0, 0.0
    for _ in range(_SETTLE if stiffness > 1e4 else _SETTLE_SOFT):
        problem = Problem(
            time_step=dt,
            trees=Trees(dofs=1, dynamics_matrix=MASS, free_motion_velocity=v - dt * GRAVITY),
            contacts=Contacts(
                tree_a=[0],
                tree_b=[WORLD],
                jacobian=[0.0, 0.0, 1.0],
                signed_distance=[z],
                stiffness=stiffness,
                relaxation_time=tau_d,
                friction=1.0,
                delassus_estimate=weight,
            ),
            regularization=Regularization(beta=beta),
        )
        v = float(client.solve(problem, TIGHT).velocity[0])
        z += dt * v
    return -z


def _near_rigid(case: Case, client: Client) -> None:
    rows = []
    for dt, stated in ((1e-3, 2.5e-7), (1e-2, 2.5e-5)):
        depth = rest(client, dt, RIGID, 0.0, 1 / MASS, 1.0)
        own = rest(client, dt, RIGID, dt / math.pi, 1 / (math.sqrt(3) * MASS), 1.0)
        case.claims.append(
            check(
                f"near-rigid particle at rest, depth at dt = {1e3 * dt:g} ms, β = 1",
                f"{stated:.1e} m",
                f"{depth:.2e} m",
                abs(depth / stated - 1) <= 0.02,
                f"with the service's own w = |J A⁻¹ J'| / 3 and τ_d = β dt / π: {own:.2e} m",
            )
        )
    dt = 1e-2
    for beta in (0.1, 0.5, 1.0, 2.0):
        depth = rest(client, dt, RIGID, 0.0, 1 / MASS, beta)
        rows.append((f"{beta:g}", f"{depth:.3e}", f"{beta**2 / (4 * math.pi**2) * 9.81e-4:.3e}"))
    caption = "Depth at rest against β, dt = 10 ms"
    case.tables.append(Table(caption, ("β", "depth [m]", "β² g dt² / 4π² [m]"), rows))
    worst = max(abs(float(row[1]) / float(row[2]) - 1) for row in rows)
    case.claims.append(
        check(
            "near-rigid depth β² g dt² / 4π²",
            "β from 0.1 to 2",
            f"{worst:.0e} apart, relative",
            worst <= 1e-3,
        )
    )
    stiffnesses = np.logspace(2, 8, 13)
    depths = [rest(client, dt, k, dt, 1 / MASS, 1.0) for k in stiffnesses]
    limit = 2 * dt**2 * GRAVITY / (4 * math.pi**2)
    with case.plot("near-rigid", "Depth of a particle at rest, dt = τ_d = 10 ms, β = 1") as (ax,):
        ax.loglog(stiffnesses, depths, "o-", label="simulated")
        ax.loglog(stiffnesses, MASS * GRAVITY / stiffnesses, "k--", lw=0.8, label="m g / k")
        ax.axhline(limit, color="k", ls=":", lw=0.8, label="near-rigid limit")
        ax.set(xlabel="stiffness k [N/m]", ylabel="depth [m]")
        ax.legend()
    soft = depths[0] * stiffnesses[0] / (MASS * GRAVITY)
    case.claims.append(
        check(
            "the model switches between compliant and near-rigid contact",
            "max in R_n",
            f"{soft:.3f} m g / k at 100 N/m, {depths[-1] / limit:.3f} of the limit at 10⁸ N/m",
            abs(soft - 1) <= 0.02 and abs(depths[-1] / limit - 1) <= 0.02,
        )
    )


def creep(client: Client, dt: float, mu: float, push: float, weight: Sequence[float]) -> float:
    """Slip velocity of a resting particle pushed by `push` μ m g [m/s]."""
    given = {"delassus_estimate": weight[0]} if weight else {}
    v, z = np.zeros(3), -1e-9
    for _ in range(3):
        free = v + dt * GRAVITY * np.array([push * mu, 0.0, -1.0])
        solution = solve_particle(
            client, free, z, dt, friction=mu, relaxation_time=dt / math.pi, **given
        )
        v = solution.velocity.copy()
        z += dt * v[2]
    return float(v[0])


def _hessian(solution: Solution, R_t: float, R_n: float) -> FloatArray:
    """H of a particle with μ = 1 at the solution [3, 3] [kg]."""
    R = np.array([[R_t, R_t, R_n]])
    y = -solution.contact_velocity / R
    H: FloatArray = MASS * np.eye(3) + impulse_derivatives(y, np.ones(1), R)[0]
    return H


def _stiction(case: Case, client: Client) -> None:
    for dt, stated in ((1e-3, 1e-5), (1e-2, 1e-4)):
        bound = 1e-3 * GRAVITY * dt
        # `creep` takes three steps: the normal impulse, and with it the cone, settles first.
        slip = creep(client, dt, 1.0, 0.9, (1 / MASS,))
        own = creep(client, dt, 1.0, 0.9, ())
        case.claims.append(
            check(
                f"slip of a particle at stiction, dt = {1e3 * dt:g} ms, μ = 1, pushed by 0.9 μ m g",
                f"≲ {stated:.0e} m/s",
                f"{slip:.2e} m/s",
                abs(slip / (0.9 * bound) - 1) <= 1e-2,
                f"0.9 σ μ g dt is {0.9 * bound:.2e}; with the service's own w {own:.2e} m/s",
            )
        )
    sigmas = np.logspace(-7, 0, 8)
    slips, conditions = [], []
    dt = 1e-2
    for sigma in sigmas:
        R_t, R_n = sigma / MASS, 1 / (4 * math.pi**2 * MASS)
        solution = solve_particle(
            client,
            dt * GRAVITY * np.array([0.5, 0.0, -1.0]),
            0.0,
            dt,
            regularization_t=R_t,
            regularization_n=R_n,
        )
        slips.append(float(solution.velocity[0]))
        curvatures = np.linalg.eigvalsh(_hessian(solution, R_t, R_n))
        conditions.append(float(curvatures[-1] / curvatures[0]))
    share = slips[3] / (sigmas[3] * 0.5 * GRAVITY * dt)
    case.claims.append(
        check(
            "slip is proportional to σ",
            "v_s = σ γ_t w",
            f"{share:.4f} of it at σ = 1e-4; slope "
            f"{np.polyfit(np.log(sigmas[:5]), np.log(slips[:5]), 1)[0]:.4f} below 1e-3",
            abs(share - 1) <= 1e-3,
        )
    )
    growth = conditions[0] / conditions[3]
    case.claims.append(
        check(
            "condition number of the Hessian is proportional to 1 / σ",
            "1 / σ",
            f"{growth:.0f} times from σ = 1e-4 to 1e-7",
            abs(growth / 1000 - 1) <= 0.05,
        )
    )
    rows = [
        (f"{sigma:.0e}", f"{slip:.2e}", f"{condition:.1e}")
        for sigma, slip, condition in zip(sigmas, slips, conditions, strict=True)
    ]
    head = ("σ", "slip [m/s]", "condition number")
    case.tables.append(Table("A particle at stiction, pushed by μ m g / 2", head, rows))


def stack_depths(client: Client, books: int, weights: FloatArray, dt: float) -> FloatArray:
    """Penetration of each contact of a stack at rest, from the ground upwards [books] [m]."""
    z, v = np.zeros(books), np.zeros(books)
    blocks = [1.0] + [1.0, -1.0] * (books - 1)
    jacobian = np.concatenate([[0.0, 0.0, sign] for sign in blocks])
    with client.session(TIGHT) as session:
        for _ in range(40 * books + 100):
            problem = Problem(
                time_step=dt,
                trees=Trees(
                    dofs=np.ones(books, np.uint32),
                    dynamics_matrix=np.full(books, MASS),
                    free_motion_velocity=v - dt * GRAVITY,
                    tree_id=np.arange(books),
                ),
                contacts=Contacts(
                    tree_a=np.arange(books),
                    tree_b=np.arange(books) - 1,
                    jacobian=jacobian,
                    signed_distance=np.diff(z, prepend=0.0),
                    stiffness=RIGID,
                    relaxation_time=dt,
                    friction=1.0,
                    delassus_estimate=weights,
                ),
            )
            v = session.step(problem).velocity.copy()
            z += dt * v
    return -np.diff(z, prepend=0.0)


def _stack(case: Case, client: Client) -> None:
    dt, rows, under = 1e-2, [], 0.0
    for books in (1, 2, 5, 10, 20):
        w = np.full(books, 2 / MASS)
        w[0] = 1 / MASS
        estimated = stack_depths(client, books, w, dt)[0]
        # Number of books above each contact.
        carried = np.arange(books, 0, -1)
        proper = stack_depths(client, books, w / carried, dt)[0]
        rows.append(
            (
                str(books),
                f"{1e6 * estimated:.1f}",
                f"{1e6 * proper:.1f}",
                f"{estimated / proper:.2f}",
            )
        )
        under = estimated / proper / books
    case.tables.append(
        Table(
            "Penetration at the bottom of a stack of books, dt = τ_d = 10 ms",
            ("books", "w of one book [µm]", "w of what is carried [µm]", "ratio"),
            rows,
        )
    )
    case.claims.append(
        Claim(
            "limitation: stiffness at the bottom of a stack is underestimated",
            "user intervention is needed",
            f"20 books: {rows[-1][1]} µm deep instead of {rows[-1][2]} µm",
            Status.REPRODUCED if abs(under - 1) <= 0.02 else Status.NOT_REPRODUCED,
            "the depth grows with the number of books; a `delassus_estimate` for the mass that is "
            "carried corrects it",
        )
    )
