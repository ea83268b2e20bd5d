"""Beyond the paper: whole trajectories with exact Coulomb friction and with the convex model.

The convex model lets what slides drift apart with μ |v_t| (Section V-A); `Options.coulomb` asks for
the law in which it does not. A particle that slides on a floor, down a slope and on a belt has a
closed form, bodies that fall into a bin have their energy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import mujoco
import numpy as np

from sap_islands.arrays import FloatArray
from sap_islands.client import Client
from sap_islands.mujoco import Material, step
from sap_islands.options import CoulombFriction, Options
from sap_islands.problem import WORLD, Contacts, Problem, Trees
from sap_paper.load_path import bin_of
from sap_paper.report import Case, Claim, Status, Table, check
from sap_paper.setting import Setting

MASS, GRAVITY, TIME_STEP = 1.0, 9.81, 0.01
R_T, R_N = 1e-3, 1.65e-2  # 1/kg
LAWS = {  # of the particles
    "convex": Options(relative_tolerance=1e-12),
    "exact": Options(relative_tolerance=1e-12, coulomb=CoulombFriction()),
}
_BIN_TIME = 2.2  # until the bodies of a bin are at rest [s]


@dataclass(frozen=True)
class Slide:
    """A particle on a plane, at its depth of rest in the beginning.

    Attributes:
        name: Name in tables.
        friction: Coefficient of friction.
        speed: Speed along the plane in the beginning [m/s].
        tilt: Angle of the plane, down which it slides [rad].
        belt: Speed of the plane's surface along it [m/s].
    """

    name: str
    friction: float
    speed: float = 0.0
    tilt: float = 0.0
    belt: float = 0.0

    def depth(self) -> float:
        """Depth at which the weight is carried [m]."""
        return TIME_STEP**2 * R_N * MASS * GRAVITY * math.cos(self.tilt)

    def closed_form(self, times: FloatArray) -> FloatArray:
        """Speed by Coulomb's law [m/s]; until it sticks, where it does."""
        pull = GRAVITY * math.sin(self.tilt)
        drag = self.friction * GRAVITY * math.cos(self.tilt)
        sliding = self.speed + (drag if self.belt else pull - drag) * times
        return np.minimum(sliding, self.belt) if self.belt else np.maximum(sliding, 0.0)


@dataclass(frozen=True)
class Trajectory:
    """Speeds along the plane [m/s] and distances from it [m] after each step."""

    times: FloatArray
    speed: FloatArray
    distance: FloatArray


def slide(client: Client, scene: Slide, options: Options, steps: int) -> Trajectory:
    """Simulates a particle."""
    gravity = GRAVITY * np.array([math.sin(scene.tilt), 0.0, -math.cos(scene.tilt)])
    v, z = np.array([scene.speed, 0.0, 0.0]), -scene.depth()
    speeds, distances = [], []
    for _ in range(steps):
        problem = Problem(
            time_step=TIME_STEP,
            trees=Trees(
                dofs=3,
                dynamics_matrix=MASS * np.eye(3),
                free_motion_velocity=v + TIME_STEP * gravity,
            ),
            contacts=Contacts(
                tree_a=[0],
                tree_b=[WORLD],
                jacobian=np.eye(3),
                signed_distance=[z],
                stiffness=[1e5],
                relaxation_time=[0.0],
                friction=[scene.friction],
                regularization_t=[R_T],
                regularization_n=[R_N],
                surface_velocity=[-scene.belt, 0.0, 0.0],
            ),
        )
        v = client.solve(problem, options).velocity.copy()
        z += TIME_STEP * float(v[2])
        speeds.append(float(v[0]))
        distances.append(z)
    times = TIME_STEP * np.arange(1.0, steps + 1)
    return Trajectory(times.astype(np.float64), np.array(speeds), np.array(distances))


@dataclass(frozen=True)
class Fall:
    """Bodies that fall into a bin: a value per step.

    Attributes:
        energy: Kinetic and potential energy, less that at rest on the floor [J].
        depth: Largest penetration [m].
        iterations: Iterations of the worst island.
        rounds: Rounds of the worst island.
        solved: Whether every island was solved in every step.
    """

    energy: FloatArray
    depth: FloatArray
    iterations: FloatArray
    rounds: FloatArray
    solved: bool


def fall(client: Client, model: mujoco.MjModel, exact: bool, steps: int) -> Fall:
    """Simulates bodies that fall into a bin."""
    data = mujoco.MjData(model)
    material = Material(stiffness=1e6, relaxation_time=TIME_STEP, friction=0.5)
    rows, solved = [], True
    with client.session() as session:
        for _ in range(steps):
            built, solution = step(
                model,
                data,
                session,
                law="coulomb" if exact else "sap",
                material=material,
                on_unsolved="ignore",
            )
            islands = solution.islands
            solved &= solution.solved
            depth = -np.min(built.problem.contacts.signed_distance, initial=0.0)
            most = [np.max(a, initial=0) for a in (islands.iterations, islands.coulomb_rounds)]
            rows.append((_energy(model, data), depth, *most))
    energy, depths, iterations, rounds = np.array(rows).T
    return Fall(energy, depths, iterations, rounds, solved)


def _energy(model: mujoco.MjModel, data: mujoco.MjData) -> float:
    """The energy of free bodies after a step."""
    mujoco.mj_kinematics(model, data)
    momentum = np.zeros(model.nv)
    mujoco.mj_mulM(model, data, momentum, data.qvel)
    heights = model.body_mass * data.xipos[:, 2]
    return 0.5 * float(momentum @ data.qvel) + GRAVITY * float(heights.sum())


def run(setting: Setting) -> Case:
    """Runs the case: in full four bins until they are at rest."""
    case = Case(
        "exact-friction",
        "Exact Coulomb friction",
        "Section V-A, its limitation",
        "Particles of 1 kg that slide, dt = 10 ms, τ_d = 0, R_n = 0.0165 / kg; bodies that fall "
        "into a bin, k = 1e6 N/m, τ_d = dt = 10 ms, μ = 0.5. “Exact” is `Options.coulomb`, "
        "“convex” the model of the paper. Each law simulates its own states.",
        setting.out,
    )
    _slides(case, setting.client)
    _bins(case, setting.client, setting.full)
    return case


def _slides(case: Case, client: Client) -> None:
    scenes = (
        Slide("floor, put down at 1 m/s", 0.5, speed=1.0),
        Slide("floor, put down at 3 m/s", 0.5, speed=3.0),
        Slide("floor, put down at 10 m/s", 0.5, speed=10.0),
        Slide("slope of 30 degrees, μ 0.3", 0.3, tilt=math.radians(30)),
        Slide("belt of 1.5 m/s, μ 0.3", 0.3, belt=1.5),
    )
    rows = []
    found = {}
    for scene in scenes:
        both = {name: slide(client, scene, options, 60) for name, options in LAWS.items()}
        found[scene.name] = both
        expected = scene.closed_form(both["exact"].times)
        errors = {name: float(np.abs(t.speed - expected)[:20].max()) for name, t in both.items()}
        highest = {name: 1e3 * float(t.distance.max()) for name, t in both.items()}
        rows.append(
            (
                scene.name,
                f"{both['convex'].speed[19]:.4f}; {highest['convex']:.4f}",
                f"{both['exact'].speed[19]:.4f}; {highest['exact']:.4f}",
                f"{expected[19]:.4f}; {-1e3 * scene.depth():.4f}",
            )
        )
        slips = expected[:20] != scene.belt
        if np.all(slips & (expected[:20] > 0)):
            case.claims.append(_closed(f"{scene.name}: speed in 0.2 s", errors["exact"], "m/s"))
        apart = abs(both["exact"].distance + scene.depth())[: int(np.sum(slips))].max()
        case.claims.append(_closed(f"{scene.name}: depth while it slides", float(apart), "m"))
    caption = "Speed after 0.2 s [m/s]; largest distance from the plane in 0.6 s [mm]"
    case.tables.append(Table(caption, ("", "convex", "exact", "closed form"), rows))
    with case.plot("distance", "Distance from the plane", 3) as axes:
        for ax, scene in zip(axes, scenes[1:2] + scenes[3:], strict=True):
            for name, trajectory in found[scene.name].items():
                ax.plot(trajectory.times, 1e3 * trajectory.distance, label=name)
            ax.set(xlabel="time [s]", ylabel="distance [mm]", title=scene.name)
            ax.legend()


def _closed(what: str, apart: float, unit: str) -> Claim:
    return check(what, "Coulomb's law", f"{apart:.0e} {unit} apart", apart <= 1e-9)


def _bins(case: Case, client: Client, full: bool) -> None:
    sizes = (32, 36, 40, 44) if full else (6,)
    steps = round(_BIN_TIME / TIME_STEP) if full else 40
    rows, shown = [], None
    for bodies in sizes:
        model = bin_of(bodies, seed=bodies)
        floor = GRAVITY * 0.02 * float(model.body_mass.sum())
        both = {name: fall(client, model, name == "exact", steps) for name in LAWS}
        shown = both if shown is None or bodies == 40 else shown
        for name, outcome in both.items():
            energy = outcome.energy - floor
            at = [energy[min(k, steps) - 1] for k in (50, 100, steps)]
            rise = float(np.diff(outcome.energy).max())
            rows.append(
                (
                    f"{bodies} bodies, {name}",
                    ", ".join(f"{value:.2f}" for value in at),
                    f"{1e3 * rise:.2f}",
                    f"{1e3 * float(outcome.depth[-20:].mean()):.3f}",
                    f"{np.mean(outcome.iterations):.1f}",
                    f"{np.median(outcome.rounds):.0f}, {outcome.rounds.max():.0f}",
                )
            )
        case.claims.append(
            Claim(
                f"{bodies} bodies: every step is solved",
                "—",
                f"{steps} steps",
                Status.ADDED if both["exact"].solved else Status.NOT_REPRODUCED,
            )
        )
    head = (
        "",
        "energy after 0.5, 1 s, at the end [J]",
        "largest rise in a step [mJ]",
        "depth at the end [mm]",
        "iterations",
        "rounds: median, most",
    )
    case.tables.append(Table("Bodies that fall into a bin", head, rows))
    with case.plot("bin", "Energy of the bodies that fall into a bin") as (ax,):
        for name, outcome in (shown or {}).items():
            ax.plot(TIME_STEP * np.arange(1, steps + 1), outcome.energy, label=name)
        ax.set(xlabel="time [s]", ylabel="energy [J]")
        ax.legend()
