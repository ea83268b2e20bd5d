"""Section VI-C2: influence of the slip parameter σ on slip, conditioning and iterations.

Clutter of 40 bodies, with and without walls, is simulated until it rests, for σ from 1e-7 to 1.
MuJoCo detects the collisions, and the service solves the contacts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from sap_islands.client import Client
from sap_islands.mujoco import Material, step
from sap_islands.options import NewtonMethod, Options
from sap_paper.convex_problem import ConvexProblem
from sap_paper.report import Axes, Case, Claim, Table, agrees, check, figure
from sap_paper.setting import Setting

TIME_STEP, GRAVITY, FRICTION = 0.01, 9.81, 1.0  # s, m/s², -
STIFFNESS = 1e12  # N/m
TOLERANCE = 1e-5
_FIND_WITHIN = 0.005  # distance within which MuJoCo reports contacts [m]
_ROUNDING = 1e-9  # relative margin within the cone of a contact in stiction [-]
_AFTER = 100  # steps simulated from the state at rest
_TOUCHING = 1e-12  # least normal impulse of a contact that is counted [N s]

PAPER = Options(relative_tolerance=TOLERANCE, islands=False, newton=NewtonMethod.PLAIN)
SERVICE = Options(relative_tolerance=TOLERANCE)


@dataclass(frozen=True)
class Outcome:
    """Result of one simulation until rest.

    Attributes:
        slip: Mean |v_t| of the contacts in stiction in the last step [m/s].
        contacts: Number of contacts in the last step.
        sliding: Number of them that slide, since not all bodies are at rest.
        condition: Condition number of the Hessian in the last step [-].
        iterations: Mean over steps of the largest number of Newton iterations of an island [-].
        boxes: Largest speed of a box at the end [m/s].
        spheres: Largest speed of a sphere at the end [m/s].
    """

    slip: float
    contacts: int
    sliding: int
    condition: float
    iterations: float
    boxes: float
    spheres: float


def clutter(bodies: int, walls: bool) -> mujoco.MjModel:
    """Four columns of boxes and spheres above a floor, in a bin of 80 cm or on open ground."""
    rng = np.random.default_rng(1)
    parts = ['<geom type="plane" size="20 20 .1"/>']
    for axis in (0, 1) if walls else ():
        for sign in (-1, 1):
            place, size = [0.0, 0.0, 0.8], [0.4, 0.4, 0.8]
            place[axis], size[axis] = sign * 0.45, 0.05
            parts.append(f'<geom type="box" pos="{_text(place)}" size="{_text(size)}"/>')
    for i in range(bodies):
        at = [0.2 if i % 2 else -0.2, 0.2 if i // 2 % 2 else -0.2, 0.1 + 0.12 * (i // 4)]
        at[0] += rng.uniform(-0.02, 0.02)
        at[1] += rng.uniform(-0.02, 0.02)
        turned = rng.uniform(-5, 5), rng.uniform(-5, 5), rng.uniform(0, 360)
        shape = 'type="box" size=".05 .05 .05"' if rng.uniform() < 0.5 else 'size=".05"'
        parts.append(
            f'<body pos="{_text(at)}" euler="{_text(turned)}"><freejoint/><geom {shape}/></body>'
        )
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco><option timestep="{TIME_STEP}"/><size memory="100M"/>
        <default><geom density="1000" friction="1" gap="{_FIND_WITHIN}"/></default>
        <worldbody>{"".join(parts)}</worldbody></mujoco>"""
    )
    model.opt.gravity[2] = -GRAVITY
    return model


def _text(values: Sequence[float]) -> str:
    return " ".join(map(str, values))


def simulate(
    client: Client,
    model: mujoco.MjModel,
    sigma: float,
    steps: int,
    options: Options,
    data: mujoco.MjData | None = None,
) -> Outcome:
    """Simulates `steps` steps from the state `data`, which is changed; None: the initial state."""
    data = mujoco.MjData(model) if data is None else data
    material = Material(
        stiffness=STIFFNESS, relaxation_time=TIME_STEP, friction=FRICTION, sigma=sigma
    )
    iterations = 0
    with client.session(options) as session:
        for _ in range(steps):
            built, solution = step(model, data, session, material=material)
            iterations += int(solution.islands.iterations.max(initial=0))
    touching = solution.impulse[:, 2] > _TOUCHING
    pull = np.hypot(*solution.impulse[:, :2].T)
    sticking = touching & (pull < (1 - _ROUNDING) * FRICTION * solution.impulse[:, 2])
    slips = np.hypot(*solution.contact_velocity[sticking, :2].T)
    matrices = ConvexProblem.of(built.problem)
    return Outcome(
        slip=float(np.mean(slips)) if len(slips) else 0.0,
        contacts=int(np.sum(touching)),
        sliding=int(np.sum(touching & ~sticking)),
        condition=float(np.linalg.cond(matrices.hessian(solution.velocity))),
        iterations=iterations / steps,
        boxes=_largest_speed(model, data, mujoco.mjtGeom.mjGEOM_BOX),
        spheres=_largest_speed(model, data, mujoco.mjtGeom.mjGEOM_SPHERE),
    )


def _largest_speed(model: mujoco.MjModel, data: mujoco.MjData, shape: int) -> float:
    """Largest speed of the bodies with geoms of a type [m/s]."""
    moving = model.geom_bodyid[(model.geom_type == shape) & (model.geom_bodyid > 0)]
    return float(np.max(np.linalg.norm(data.qvel.reshape(-1, 6)[moving - 1, :3], axis=1)))


def run(setting: Setting) -> Case:
    """Runs the case: 40 bodies, 10 s, eight σ in full; 20 bodies, 3 s, three σ in quick form."""
    bodies, duration = (40, 10.0) if setting.full else (20, 3.0)
    exponents = range(-7, 1) if setting.full else range(-6, 0, 2)
    sigmas = [10.0**exponent for exponent in exponents]
    case = Case(
        "slip-parameter",
        "Slip parameter",
        "Section VI-C2",
        f"{bodies} bodies fall for {duration:g} s at dt 10 ms and a tolerance of "
        f"1e-5, for {len(sigmas)} values of σ. Collision is MuJoCo's, contacts are the service's; "
        "iterations are those of the paper's algorithm: plain Newton on the whole scene. Slip is "
        "the mean over contacts in stiction. Bodies are nearly at rest at the end: the tables have "
        "their speeds; on open ground spheres go on rolling. Slopes are those up to σ = 1e-2.",
        setting.out,
    )
    steps, client = round(duration / TIME_STEP), setting.client
    found: dict[bool, list[Outcome]] = {}
    for walls in (True, False):
        model = clutter(bodies, walls)
        found[walls] = [simulate(client, model, s, steps, PAPER) for s in sigmas]
    model = clutter(bodies, walls=True)
    accelerated = [simulate(client, model, s, steps, SERVICE).iterations for s in sigmas]
    _settled_claim(case, sigmas, settled(client, model, sigmas, steps))
    _claims(case, sigmas, found)
    _tables(case, sigmas, found, accelerated)
    _plots(case, sigmas, found, accelerated)
    return case


def settled(
    client: Client, model: mujoco.MjModel, sigmas: Sequence[float], steps: int
) -> list[Outcome]:
    """Outcome of each σ one second after the same state, which came to rest with σ = 1e-3."""
    rest = mujoco.MjData(model)
    simulate(client, model, 1e-3, steps, SERVICE, rest)
    outcomes = []
    for sigma in sigmas:
        data = mujoco.MjData(model)
        mujoco.mj_copyData(data, model, rest)
        outcomes.append(simulate(client, model, sigma, _AFTER, PAPER, data))
    return outcomes


def _settled_claim(case: Case, sigmas: Sequence[float], outcomes: Sequence[Outcome]) -> None:
    small = [i for i, sigma in enumerate(sigmas) if sigma <= 1e-2]
    slope = _slope(np.log([sigmas[i] for i in small]), [outcomes[i].slip for i in small])
    largest = max(outcomes[i].slip / bound(sigmas[i]) for i in small)
    case.claims.append(
        check(
            "slip is proportional to σ up to 1e-2, with walls, each σ from the same state at rest",
            "slope 1, below σ μ dt g",
            f"slope {slope:.2f}, at most {largest:.2f} of σ μ dt g",
            abs(slope - 1) <= 0.15 and largest < 1,
        )
    )


def _claims(case: Case, sigmas: Sequence[float], found: dict[bool, list[Outcome]]) -> None:
    walls = found[True]
    small = [i for i, sigma in enumerate(sigmas) if sigma <= 1e-2]
    logs = np.log([sigmas[i] for i in small])
    slope = _slope(logs, [walls[i].slip for i in small])
    condition = _slope(logs, [walls[i].condition for i in small])
    shares = [walls[i].slip / bound(sigmas[i]) for i in range(len(sigmas))]
    open_ground = [found[False][i].slip / max(walls[i].slip, 1e-300) for i in small]
    means = [outcome.iterations for outcome in walls]
    line = np.polyfit(np.log(sigmas), means, 1)
    correlation = float(np.corrcoef(np.log(sigmas), means)[0, 1])
    case.claims += [
        figure(
            "the same, each σ simulated from the start",
            "slope of the estimate, 1",
            f"slope {slope:.2f}",
            abs(slope - 1) <= 0.15,
            "within 0.15; each σ leads to another final heap, with another mean",
        ),
        check(
            "mean slip stays below σ μ dt g, all σ",
            "below",
            f"{min(shares):.0e} to {max(shares):.2f} of it",
            max(shares) < 1,
        ),
        *_large_claims(sigmas, shares),
        check(
            "without walls slip is smaller than with walls, up to σ = 1e-2",
            "significantly smaller",
            f"{np.median(open_ground):.1e} of it, median over σ",
            float(np.median(open_ground)) < 0.5,
            f"from {min(open_ground):.0e} to {max(open_ground):.0e}: each σ leads to another final "
            "heap",
        ),
        check(
            "condition number of the Hessian, slope of logarithms against σ up to 1e-2",
            "-1",
            f"{condition:.2f}",
            abs(condition + 1) <= 0.15,
        ),
        check(
            "mean Newton iterations against σ",
            "roughly proportional to ln σ",
            f"{means[0]:.1f} at σ = {sigmas[0]:.0e} to {means[-1]:.1f} at {sigmas[-1]:.0e}, "
            f"{line[0]:.2f} per ln σ",
            correlation <= -0.9,
            f"correlation with ln σ {correlation:.2f}",
        ),
    ]


def _large_claims(sigmas: Sequence[float], shares: Sequence[float]) -> list[Claim]:
    """Claim about the slip above σ = 1e-2, if such σ were simulated."""
    large = [i for i, sigma in enumerate(sigmas) if sigma > 1.5e-2]
    typical = float(np.median([share for i, share in enumerate(shares) if i not in large]))
    if not large:
        return []
    return [
        figure(
            "slip above σ = 1e-2, with walls, each σ simulated from the start",
            "the slope goes on",
            ", ".join(f"{shares[i]:.0e} of σ μ dt g at {sigmas[i]:g}" for i in large),
            all(agrees(shares[i], typical, 1.0) for i in large),
            f"within a factor of 2 of the median below, {typical:.2f}. The paper has such a drop "
            "without walls, where boxes creep onto a face and then need no friction",
        )
    ]


def bound(sigma: float) -> float:
    """The paper's estimate of the slip, σ μ dt g [m/s]."""
    return sigma * FRICTION * TIME_STEP * GRAVITY


def _slope(logs: np.ndarray, values: Sequence[float]) -> float:
    return float(np.polyfit(logs, np.log(np.maximum(values, 1e-300)), 1)[0])


def _tables(
    case: Case,
    sigmas: Sequence[float],
    found: dict[bool, list[Outcome]],
    accelerated: Sequence[float],
) -> None:
    for walls, outcomes in found.items():
        rows = []
        for i, (sigma, outcome) in enumerate(zip(sigmas, outcomes, strict=True)):
            row = [
                f"{sigma:.0e}",
                f"{outcome.slip:.1e}",
                f"{bound(sigma):.1e}",
                f"{outcome.condition:.1e}",
                f"{outcome.iterations:.2f}",
                f"{accelerated[i]:.2f}" if walls else "",
                f"{outcome.contacts}, {outcome.sliding}",
                f"{outcome.boxes:.0e}, {outcome.spheres:.0e}",
            ]
            rows.append(row if walls else [*row[:5], *row[6:]])
        head = ["σ", "slip [m/s]", "σ μ dt g [m/s]", "condition", "iterations, plain"]
        head += ["iterations, accelerated with islands"] if walls else []
        head += ["contacts, of them sliding", "largest speed of a box, a sphere [m/s]"]
        case.tables.append(Table("With walls" if walls else "Without walls", head, rows))


def _plots(
    case: Case,
    sigmas: Sequence[float],
    found: dict[bool, list[Outcome]],
    accelerated: Sequence[float],
) -> None:
    def draw(ax: Axes, value: Callable[[Outcome], float], label: str) -> None:
        for walls, marker in ((True, "o-"), (False, "s-")):
            name = "with walls" if walls else "without walls"
            ax.plot(sigmas, [value(outcome) for outcome in found[walls]], marker, label=name)
        ax.set(xscale="log", xlabel="σ", ylabel=label)

    caption = "Slip at rest, iterations per step and condition number against σ"
    with case.plot("sigma", caption, 3) as axes:
        draw(axes[0], lambda outcome: outcome.slip, "mean slip at the end [m/s]")
        axes[0].plot(sigmas, [bound(sigma) for sigma in sigmas], "k--", lw=0.8, label="σ μ dt g")
        axes[0].set(yscale="log")
        draw(axes[1], lambda outcome: outcome.iterations, "mean iterations per step")
        axes[1].plot(sigmas, accelerated, "^:", label="accelerated, islands, with walls")
        draw(axes[2], lambda outcome: outcome.condition, "condition number at the end")
        reference = [found[True][0].condition * sigmas[0] / sigma for sigma in sigmas]
        axes[2].plot(sigmas, reference, "k--", lw=0.8, label="1 / σ")
        axes[2].set(yscale="log")
        for ax in axes:
            ax.legend(fontsize=8)
