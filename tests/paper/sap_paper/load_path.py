"""Section V-B: near-rigid contact knows two bodies, not what rests on them. What a tower sinks.

The paper promises that a single body at rest is no deeper than β² g dt (dt + τ_d) / 4π² =: d*, and
names the mass ratios of stacks as the limit of its estimate w. `RegularizationRule.LOAD_PATH` takes
the load that passes through a contact into w. Stacks, bins, piles, an arm, a gripper, a belt and a
slope are simulated by it, by the paper's rule FULL, and by FULL with LOAD_PATH in R_n alone.
"""

from __future__ import annotations

import copy
import enum
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from sap_islands.client import Client
from sap_islands.mujoco import BuiltProblem, Material, apply, build_problem
from sap_islands.options import Options
from sap_islands.problem import Problem, RegularizationRule
from sap_islands.solution import Solution
from sap_paper.report import Case, Claim, Status, Table
from sap_paper.setting import Setting

GRAVITY = 9.81
TIME_STEP = 0.01
SIGMA = 1e-3
FRICTION = 0.5
_RIGID = 1e12  # N/m
_FIND_WITHIN = 2e-3
_GAP = 5e-4  # between the bodies of a stack in the beginning
_LOADED = 1e-6  # of the weight of all bodies; a contact with less counts as open


class Rule(enum.Enum):
    """Rule for w; the value is its name in tables."""

    FULL = "FULL"
    LOAD_PATH = "LOAD_PATH"
    NORMAL = "LOAD_PATH in R_n"


def promise(dt: float) -> float:
    """d*, the depth of a single body at rest with β = 1 and τ_d = dt [m]."""
    return 2 * dt * dt * GRAVITY / (4 * math.pi**2)


@dataclass(frozen=True)
class Scene:
    """The scenes that are simulated.

    Attributes:
        model: The model.
        duration: How long [s].
        belt: Speed of the floor along x [m/s].
        reference_speed: Whether LOAD_PATH gets g dt as its reference speed.
    """

    model: mujoco.MjModel
    duration: float
    belt: float = 0.0
    reference_speed: bool = False


@dataclass
class Outcome:
    """Result of one simulation; depths in d*, of the last step.

    Attributes:
        bottom: Mean depth of the loaded contacts with the world.
        mean: Mean depth of all loaded contacts.
        deepest: Largest depth of a contact.
        thirds: Mean over the steps of each third of the iterations of the worst island.
        iterations: Mean over all steps of the same.
        worst: Largest number of iterations of a step.
        speed: Median speed of the bodies at the end [m/s].
        slip: Mean |v_t| of the loaded contacts at the end, less that of the belt [m/s].
        energy: Kinetic energy at the end [J].
        solve: Time of the solves [s].
        stable: Whether all numbers stayed finite; a body that spins fast makes v* grow without end.
    """

    bottom: float
    mean: float
    deepest: float
    thirds: tuple[float, float, float]
    iterations: float
    worst: int
    speed: float
    slip: float
    energy: float
    solve: float
    stable: bool


def simulate(client: Client, scene: Scene, rule: Rule) -> Outcome:
    """Simulates a scene from its initial state; each step starts from the velocities before it."""
    model = scene.model
    data = mujoco.MjData(model)
    dt = model.opt.timestep
    material = Material(
        stiffness=_RIGID,
        relaxation_time=dt,
        friction=FRICTION,
        sigma=SIGMA,
        rule=RegularizationRule.FULL if rule is Rule.FULL else RegularizationRule.LOAD_PATH,
        load_reference_speed=GRAVITY * dt if scene.reference_speed else None,
    )
    iterations, solve = [], 0.0
    for _ in range(round(scene.duration / dt)):
        built = build_problem(model, data, material=material)
        if scene.belt:
            _move_floor(built.problem, scene.belt)
        if rule is Rule.NORMAL:
            _keep_tangential(client, built.problem)
        solution = client.solve(built.problem)
        iterations.append(int(solution.islands.iterations.max(initial=0)))
        solve += solution.timings.islands_s + solution.timings.solve_s
        apply(model, data, built, solution)
    return _outcome(scene, data, built, solution, iterations, solve)


def _move_floor(problem: Problem, speed: float) -> None:
    """Gives the contacts with the world the speed of a belt along x.

    The normal of these contacts points up, and tangents are those of MuJoCo: the first two rows of
    the Jacobian's translations.
    """
    contacts = problem.contacts
    velocity = np.zeros((contacts.count, 3))
    ends = np.cumsum(_block_sizes(problem))
    for i in np.flatnonzero(contacts.tree_b < 0):
        block = contacts.jacobian[: ends[i]][-18:].reshape(3, 6)
        velocity[i] = -speed * block[:, 0]
    contacts.surface_velocity = velocity


def _block_sizes(problem: Problem) -> NDArray[np.int64]:
    """Number of entries of the Jacobian of each contact."""
    contacts, dofs = problem.contacts, problem.trees.dofs.astype(np.int64)
    second = np.where(contacts.tree_b >= 0, dofs[contacts.tree_b], 0)
    sizes: NDArray[np.int64] = 3 * (dofs[contacts.tree_a] + second)
    return sizes


def _keep_tangential(client: Client, problem: Problem) -> None:
    """Gives R_t by the rule FULL, so that LOAD_PATH has R_n alone."""
    if not problem.contacts.count:
        return
    full = copy.copy(problem)
    full.regularization = copy.copy(problem.regularization)
    full.regularization.rule = RegularizationRule.FULL
    only = Options(max_iterations=0, response_mask=("delassus_estimate",))
    problem.contacts.regularization_t = SIGMA * client.solve(full, only).delassus_estimate


def _outcome(
    scene: Scene,
    data: mujoco.MjData,
    built: BuiltProblem,
    solution: Solution,
    iterations: Sequence[int],
    solve: float,
) -> Outcome:
    model, contacts = scene.model, built.problem.contacts
    dt = model.opt.timestep
    weight = GRAVITY * dt * float(np.sum(model.body_mass))
    loaded = solution.impulse[:, 2] > _LOADED * weight
    depth = -contacts.signed_distance / promise(dt)
    world = loaded & (contacts.tree_b < 0)
    third = len(iterations) // 3
    slips = np.hypot(*solution.contact_velocity[loaded, :2].T)
    momentum = np.zeros(model.nv)
    mujoco.mj_mulM(model, data, momentum, data.qvel)
    speeds = np.linalg.norm(data.cvel[1:, 3:], axis=1)
    return Outcome(
        bottom=float(np.mean(depth[world])) if world.any() else 0.0,
        mean=float(np.mean(depth[loaded])) if loaded.any() else 0.0,
        deepest=float(np.max(depth, initial=0.0)),
        thirds=(
            float(np.mean(iterations[:third])),
            float(np.mean(iterations[third : 2 * third])),
            float(np.mean(iterations[2 * third :])),
        ),
        iterations=float(np.mean(iterations)),
        worst=max(iterations),
        speed=float(np.median(speeds)),
        slip=float(np.mean(slips)) if len(slips) else 0.0,
        energy=0.5 * float(momentum @ data.qvel),
        solve=solve,
        stable=not any(data.warning.number),
    )


# ---- Scenes


def _model(
    bodies: str, dt: float, tilt: float = 0.0, extra: str = "", floor: bool = True
) -> mujoco.MjModel:
    plane = '<geom type="plane" size="20 20 .1"/>' if floor else ""
    model = mujoco.MjModel.from_xml_string(
        f"""<mujoco><option timestep="{dt}"/><size memory="200M"/>
        <default><geom friction="{FRICTION}" gap="{_FIND_WITHIN}"/></default>
        <worldbody>{plane}{bodies}</worldbody>{extra}</mujoco>"""
    )
    model.opt.gravity[:] = GRAVITY * np.array([math.sin(tilt), 0.0, -math.cos(tilt)])
    return model


def _box(place: Sequence[float], half: Sequence[float], mass: float, turn: float = 0.0) -> str:
    return (
        f'<body pos="{_text(place)}" euler="0 0 {turn}"><freejoint/>'
        f'<geom type="box" size="{_text(half)}" mass="{mass}"/></body>'
    )


def _text(values: Sequence[float]) -> str:
    return " ".join(map(str, values))


def stack(masses: Sequence[float], dt: float = TIME_STEP, tilt: float = 0.0) -> mujoco.MjModel:
    """Cubes of 10 cm on top of each other, from the floor up."""
    half = [0.05, 0.05, 0.05]
    parts = [
        _box((0.0, 0.0, 0.05 + 0.1 * i + _GAP * (i + 1)), half, mass)
        for i, mass in enumerate(masses)
    ]
    return _model("".join(parts), dt, tilt)


def slabs(masses: Sequence[float], tilt: float = 0.0) -> mujoco.MjModel:
    """Slabs of 20 cm on top of each other, which do not topple, from the floor up."""
    parts = [
        _box((0.0, 0.0, 0.01 + 0.02 * i + _GAP * (i + 1)), [0.1, 0.1, 0.01], mass)
        for i, mass in enumerate(masses)
    ]
    return _model("".join(parts), TIME_STEP, tilt)


def books(count: int) -> mujoco.MjModel:
    """Books of 0.3 to 2 kg, askew."""
    rng = np.random.default_rng(3)
    parts, height = [], 0.0
    for _ in range(count):
        mass, turn = rng.uniform(0.3, 2.0), rng.uniform(-15, 15)
        shift = rng.uniform(-0.01, 0.01, 2)
        parts.append(_box((*shift, height + 0.0155 + _GAP), [0.11, 0.08, 0.0155], mass, turn))
        height += 0.031 + _GAP
    return _model("".join(parts), TIME_STEP)


def bin_of(bodies: int, seed: int, walls: bool = True) -> mujoco.MjModel:
    """Boxes, spheres and capsules of 0.03 to 0.3 kg that fall into a bin, or on open ground."""
    rng = np.random.default_rng(seed)
    wide = 0.12 * math.sqrt(bodies / 40)
    parts = []
    for axis in (0, 1) if walls else ():
        for sign in (-1, 1):
            place, size = [0.0, 0.0, 1.0], [wide + 0.1] * 2 + [1.0]
            place[axis], size[axis] = sign * (wide + 0.05), 0.05
            parts.append(f'<geom type="box" pos="{_text(place)}" size="{_text(size)}"/>')
    per_layer = max(4, round(4 * bodies / 40))
    side = math.ceil(math.sqrt(per_layer))
    for i in range(bodies):
        layer, slot = divmod(i, per_layer)
        at = [
            (slot % side + 0.5) / side * 2 * wide - wide,
            (slot // side + 0.5) / side * 2 * wide - wide,
            0.06 + 0.09 * layer,
        ]
        at[0] += rng.uniform(-0.005, 0.005)
        at[1] += rng.uniform(-0.005, 0.005)
        turned = rng.uniform(0, 360, 3).tolist()
        half = rng.uniform(0.018, 0.03)
        shape = (
            f'type="box" size="{half} {0.8 * half} {0.7 * half}"',
            f'size="{half}"',
            f'type="capsule" size="{0.8 * half} {0.4 * half}"',
        )[int(rng.integers(3))]
        mass = math.exp(rng.uniform(math.log(0.03), math.log(0.3)))
        parts.append(
            f'<body pos="{_text(at)}" euler="{_text(turned)}"><freejoint/>'
            f'<geom {shape} mass="{mass}"/></body>'
        )
    return _model("".join(parts), TIME_STEP)


def arm_with_stack() -> mujoco.MjModel:
    """Five boxes of 0.2 to 2 kg on the tray of an arm of three servos."""
    arm = """<body pos="-0.6 0 0.5"><joint name="a" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .3 0 .2" size=".03" mass="3" contype="0" conaffinity="0"/>
      <body pos=".3 0 .2"><joint name="b" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .3 0 -.1" size=".03" mass="2" contype="0" conaffinity="0"/>
      <body pos=".3 0 -.1"><joint name="c" axis="0 1 0"/>
      <geom type="box" size=".1 .1 .01" mass=".5"/></body></body></body>"""
    boxes = "".join(
        _box((0.0, 0.0, 0.61 + 0.03 + 0.06 * i + _GAP * (i + 1)), [0.05, 0.05, 0.03], mass)
        for i, mass in enumerate((0.2, 1.0, 0.3, 0.5, 2.0))
    )
    servos = "".join(f'<position joint="{name}" kp="20000" kv="400"/>' for name in "abc")
    return _model(arm + boxes, TIME_STEP, extra=f"<actuator>{servos}</actuator>", floor=False)


def gripper() -> mujoco.MjModel:
    """Two fingers of 20 g, driven by 40 N each, that hold a box of 2 kg."""
    fingers = "".join(
        f'<body pos="{sign * (0.06 + _GAP)} 0 1"><joint name="f{i}" type="slide" axis="{-sign} 0 0"'
        f'/><geom type="box" size=".01 .02 .02" mass=".02"/></body>'
        for i, sign in enumerate((-1, 1))
    )
    box = _box((0.0, 0.0, 1.0), [0.05, 0.05, 0.05], 2.0)
    motors = "".join(
        f'<motor joint="f{i}" gear="1" ctrllimited="false" forcelimited="false"/>' for i in (0, 1)
    )
    model = _model(fingers + box, TIME_STEP, extra=f"<actuator>{motors}</actuator>", floor=False)
    model.body_gravcomp[1:3] = 1.0
    model.actuator_biastype[:] = mujoco.mjtBias.mjBIAS_AFFINE
    model.actuator_gainprm[:, 0] = 0.0
    model.actuator_biasprm[:, 0] = 40.0
    return model


# ---- The case


def run(setting: Setting) -> Case:
    """Runs the case: in full a tower of 50, and ten seeds of every bin and pile."""
    full = setting.full
    case = Case(
        "load-path",
        "Stacks under load",
        "Sections V-B and VIII",
        "Rigid contacts, dt = τ_d = 10 ms unless said otherwise, β = 1, σ = 1e-3, μ = 0.5, a "
        "tolerance of 1e-6, accelerated Newton with islands; collision is MuJoCo's. Depths are in "
        f"units of d* = β² g dt (dt + τ_d) / 4π², at 10 ms {1e6 * promise(TIME_STEP):.0f} μm. Each "
        "rule simulates its own states. LOAD_PATH is `RegularizationRule.LOAD_PATH`; “in R_n” "
        "keeps the R_t of FULL.",
        setting.out,
    )
    client = setting.client
    _stacks(case, client, full)
    _others(case, client, full)
    _bins(case, client, full)
    return case


def _added(what: str, paper: str, ours: str, remark: str = "") -> Claim:
    return Claim(what, paper, ours, Status.ADDED, remark)


def _row(name: str, outcomes: dict[Rule, Outcome], more: Callable[[Outcome], str]) -> list[str]:
    return [name, *(_brief(outcomes[rule]) + more(outcomes[rule]) for rule in Rule)]


def _brief(outcome: Outcome) -> str:
    falling, settling, rest = outcome.thirds
    return (
        f"{outcome.bottom:.2f}, {outcome.deepest:.2f}; "
        f"{falling:.1f}/{settling:.1f}/{rest:.1f}, {outcome.worst}"
    )


def _all_rules(client: Client, scene: Scene) -> dict[Rule, Outcome]:
    return {rule: simulate(client, scene, rule) for rule in Rule}


def _stacks(case: Case, client: Client, full: bool) -> None:
    height = 50 if full else 10
    duration = 2.0 if full else 1.0
    scenes = {
        f"tower of {height} x 1 kg": Scene(stack([1.0] * height), duration),
        "1 kg under 1000 kg": Scene(stack([1.0, 1000.0]), duration),
        "1 kg under 5000 kg": Scene(stack([1.0, 5000.0]), duration),
        "5 x (1 kg, 1000 kg)": Scene(stack([1.0, 1000.0] * 5), duration),
        "1000 kg under 1 kg": Scene(stack([1000.0, 1.0]), duration),
        f"{20 if full else 5} books": Scene(books(20 if full else 5), duration),
        "10 slabs, slope of 10 degrees": Scene(slabs([1.0] * 10, math.radians(10)), duration),
    }
    found = {name: _all_rules(client, scene) for name, scene in scenes.items()}
    rows = [
        _row(name, outcomes, lambda outcome: f"; {outcome.slip:.0e}; {outcome.energy:.0e}")
        for name, outcomes in found.items()
    ]
    caption = (
        "Stacks: mean depth at the floor, deepest contact; iterations while falling / settling / "
        "at rest, worst step; mean slip at the end [m/s]; kinetic energy at the end [J]"
    )
    case.tables.append(Table(caption, ("", *(rule.value for rule in Rule)), rows))
    for name, outcomes in found.items():
        if name.startswith(("1000", "10 slabs")):
            continue
        loaded, plain = outcomes[Rule.LOAD_PATH], outcomes[Rule.FULL]
        case.claims.append(
            _added(
                f"{name}: mean depth at the floor",
                "d* for a single mass",
                f"{loaded.bottom:.2f} d*{_missed(loaded.bottom <= 1.2)}",
                f"FULL {plain.bottom:.3g} d*",
            )
        )
    slope = found["10 slabs, slope of 10 degrees"]
    case.claims.append(
        _added(
            "10 slabs on a slope of 10 degrees: creep",
            "—",
            f"{slope[Rule.LOAD_PATH].slip:.1e} m/s",
            f"FULL {slope[Rule.FULL].slip:.1e}, in R_n alone {slope[Rule.NORMAL].slip:.1e} m/s",
        )
    )
    _plot_tower(case, client, full)


def _missed(holds: bool) -> str:
    return "" if holds else " (missed)"


def _plot_tower(case: Case, client: Client, full: bool) -> None:
    heights = (1, 2, 5, 10, 20, 50) if full else (1, 3, 10)
    depths = {
        rule: [simulate(client, Scene(stack([1.0] * n), 1.0), rule).bottom for n in heights]
        for rule in (Rule.FULL, Rule.LOAD_PATH)
    }
    with case.plot("towers", "Depth at the floor of a tower of n boxes of 1 kg") as (ax,):
        for rule, values in depths.items():
            ax.loglog(heights, values, "o-", label=rule.value)
        ax.axhline(1.0, color="k", ls=":", lw=0.8, label="d*")
        ax.set(xlabel="n", ylabel="depth / d*")
        ax.legend()


def _others(case: Case, client: Client, full: bool) -> None:
    duration = 2.0 if full else 1.0
    scenes = {
        "arm of three servos with 5 boxes on its tray": Scene(arm_with_stack(), duration),
        "gripper": Scene(gripper(), duration),
        "gripper, with u_ref = g dt": Scene(gripper(), duration, reference_speed=True),
        "5 slabs on a belt of 0.5 m/s": Scene(slabs([0.3, 1.0, 0.3, 1.0, 5.0]), duration, belt=0.5),
    }
    for dt in (1e-3, 5e-3, 2e-2):
        name = f"tower of 10 x 1 kg, dt = {1e3 * dt:g} ms"
        scenes[name] = Scene(stack([1.0] * 10, dt), 1.0)
    rows = [
        _row(name, _all_rules(client, scene), lambda outcome: f"; {outcome.slip:.0e}")
        for name, scene in scenes.items()
    ]
    caption = "Others, as above: mean depth at the world, deepest contact; iterations; mean slip"
    case.tables.append(Table(caption, ("", *(rule.value for rule in Rule)), rows))


def _bins(case: Case, client: Client, full: bool) -> None:
    kinds = {
        "bin of 40": (10, 40, True, 4.5),
        "bin of 160": (10, 160, True, 3.0),
        "open pile of 40": (10, 40, False, 3.0),
    }
    if not full:
        kinds = {"bin of 10": (2, 10, True, 1.0)}
    rows = []
    for name, (seeds, bodies, walls, duration) in kinds.items():
        found: dict[Rule, list[Outcome]] = {rule: [] for rule in Rule}
        for seed in range(2 * seeds):
            if len(found[Rule.FULL]) == seeds:
                break
            outcomes = _all_rules(client, Scene(bin_of(bodies, seed, walls), duration))
            if all(outcome.stable for outcome in outcomes.values()):
                for rule, outcome in outcomes.items():
                    found[rule].append(outcome)
        for rule in Rule:
            rows.append(
                [f"{name}, {len(found[rule])} seeds", rule.value, *_columns(found[rule], found)]
            )
        loaded, plain = found[Rule.LOAD_PATH], found[Rule.FULL]
        depth, iterations = (
            _mean(loaded, quantity) / _mean(plain, quantity) for quantity in ("mean", "iterations")
        )
        case.claims += [
            _added(f"{name}: mean depth under LOAD_PATH over that under FULL", "—", f"{depth:.2f}"),
            _added(
                f"{name}: iterations under LOAD_PATH over those under FULL",
                "—",
                f"{iterations:.2f}{_missed(iterations <= 1.3)}",
            ),
        ]
    head = ["", "rule", "depth at the world, all, deepest", "iterations", "ratio to FULL"]
    head += ["time / FULL", "median speed [m/s]"]
    caption = (
        "Bins and piles: depths in d* at the end; iterations while falling / settling / at rest, "
        "worst step, mean; the ratio of the means, and its range over the seeds. Seeds in which v* "
        "left the range of doubles under any rule, as of a body that spins fast, are left out"
    )
    case.tables.append(Table(caption, head, rows))


def _mean(outcomes: Sequence[Outcome], name: str) -> float:
    return float(np.mean([getattr(outcome, name) for outcome in outcomes]))


def _columns(outcomes: Sequence[Outcome], found: dict[Rule, list[Outcome]]) -> list[str]:
    plain = found[Rule.FULL]
    ratios = [a.iterations / b.iterations for a, b in zip(outcomes, plain, strict=True)]
    thirds = np.mean([outcome.thirds for outcome in outcomes], axis=0)
    time = sum(outcome.solve for outcome in outcomes) / sum(outcome.solve for outcome in plain)
    return [
        ", ".join(f"{_mean(outcomes, name):.2f}" for name in ("bottom", "mean", "deepest")),
        "/".join(f"{value:.1f}" for value in thirds)
        + f", {max(outcome.worst for outcome in outcomes)}; {_mean(outcomes, 'iterations'):.2f}",
        f"{_mean(outcomes, 'iterations') / _mean(plain, 'iterations'):.2f} "
        f"({min(ratios):.2f} to {max(ratios):.2f})",
        f"{time:.2f}",
        f"{_mean(outcomes, 'speed'):.0e}",
    ]
