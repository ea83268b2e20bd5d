"""Near-rigid scenes: sag and creep of `Regularization.rigid()`, and the interior-point method."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
import sap_islands as sap
from sap_islands.problem_files import problem_to_json
from scipy.spatial.transform import Rotation

from conftest import ROOT, stiff_problem_files
from support.norms import a_norm, dynamics_blocks, relative_error
from support.scenes import linked_balls, same_bits
from support.stepped_bodies import Bodies, Row, Touch, box_moments

# Runs with a regularization and the slip parameter of rows of friction; returns what is measured.
Scene: TypeAlias = Callable[[sap.Regularization, float], list[float]]

GRAVITY = 9.81
AXES = np.eye(3)
UPRIGHT = np.eye(3)[None]
CORNERS = np.array([(x, y) for x in (-1.0, 1.0) for y in (-1.0, 1.0)])


def parked_car(regularization: sap.Regularization, slip: float) -> list[float]:
    """A car of 1100 kg on a slope of 12 degrees, its wheels braked: speed [m/s]."""
    radius, slope = 0.3, np.radians(12)
    axles = np.column_stack((CORNERS * [1.3, 0.7], np.full(4, radius)))
    chassis = np.array([0, 0, 0.5])
    car = Bodies(
        1 / 60,
        mass=np.array([20.0] * 4 + [1100.0]),
        inertia=np.vstack(([[0.5, 0.9, 0.5]] * 4, box_moments(1100, (3.5, 1.6, 0.8)))),
        position=np.vstack((axles, chassis)),
        rotation=np.repeat(UPRIGHT, 5, axis=0),
        gravity=(GRAVITY * np.sin(slope), 0, -GRAVITY * np.cos(slope)),
        friction=0.8,
        touches=[Touch(i, sap.WORLD, (0, 0, 0), radius, (0, 0, 1), 0) for i in range(4)],
    )

    def axles_and_brakes() -> list[Row]:
        rows = []
        across, axis, up = car.rotation[4].T
        for wheel in range(4):
            hub = car.position[wheel]
            error = hub - car.at(4, axles[wheel] - chassis)
            tilt = np.cross(axis, car.rotation[wheel, :, 1])
            rows += [Row(car.along(wheel, 4, hub, u), u @ error) for u in AXES]
            rows += [Row(car.about(wheel, 4, u), u @ tilt) for u in (across, up)]
            rows.append(Row(car.about(wheel, 4, axis), 0, -2000, 2000, slip))
        return rows

    car.run(2.0, regularization, axles_and_brakes)
    return [car.velocity[4, 0]]


def gripper(regularization: sap.Regularization, _: float) -> list[float]:
    """50 kg between fingers of 50 g that press 5 % more than is needed: speed of fall [m/s]."""
    held = 50.0
    force = 1.05 * held * GRAVITY
    home = np.array([[0, 0, 1], [-0.04, 0, 1], [0.04, 0, 1]])
    inward = {1: 1.0, 2: -1.0}
    hand = Bodies(
        0.01,
        mass=np.array([held, 0.05, 0.05]),
        inertia=np.vstack((box_moments(held, (0.06, 0.06, 0.1)), np.full((2, 3), 2e-5))),
        position=home,
        rotation=np.repeat(UPRIGHT, 3, axis=0),
        touches=[
            Touch(finger, 0, (0.01 * x, 0.01 * y, 0.01 * z), 0, (-x, 0, 0), 0.03)
            for finger, x in inward.items()
            for y, z in CORNERS
        ],
    )

    def sliders() -> list[Row]:
        rows = []
        for finger, x in inward.items():
            at = hand.position[finger]
            turn = Rotation.from_matrix(hand.rotation[finger]).as_rotvec()
            error = np.append(at - home[finger], turn)
            guides = [hand.along(finger, sap.WORLD, at, u) for u in AXES[1:]]
            guides += [hand.about(finger, sap.WORLD, u) for u in AXES]
            rows += [Row(J, e) for J, e in zip(guides, error[1:], strict=True)]
            rows.append(Row(x * hand.along(finger, sap.WORLD, at, AXES[0]), 0, force, force))
        return rows

    hand.run(1.0, regularization, sliders)
    return [-hand.velocity[0, 2]]


def ton_on_balls(regularization: sap.Regularization, _: float) -> list[float]:
    """A block of 1000 kg on four balls of 0.1 kg: how deep it sinks [m]."""
    radius, half_height = 0.1, 0.25
    balls = np.column_stack((CORNERS * 0.4, np.full(4, radius)))
    top = 2 * radius + half_height
    stack = Bodies(
        1 / 240,
        mass=np.array([0.1] * 4 + [1000.0]),
        inertia=np.vstack((np.full((4, 3), 4e-4), box_moments(1000, (1, 1, 2 * half_height)))),
        position=np.vstack((balls, [0, 0, top])),
        rotation=np.repeat(UPRIGHT, 5, axis=0),
        touches=[Touch(i, sap.WORLD, (0, 0, 0), radius, (0, 0, 1), 0) for i in range(4)]
        + [Touch(i, 4, (0, 0, 0), radius, (0, 0, -1), half_height) for i in range(4)],
    )
    stack.run(1.0, regularization)
    return [top - stack.position[4, 2]]


def chain_with_load(regularization: sap.Regularization, _: float) -> list[float]:
    """1000 kg on a chain of 20 links of 0.1 kg: how far the load sinks [m]."""
    links, length, radius = 20, 0.25, 0.3
    upper_end = np.array([length / 2] * links + [radius])
    depth = np.append(length * (np.arange(links) + 0.5), links * length + radius)
    link, load = 0.1 * length**2 / 12, 0.4 * 1000 * radius**2
    chain = Bodies(
        1 / 60,
        mass=np.array([0.1] * links + [1000.0]),
        inertia=np.vstack((np.full((links, 3), link), np.full(3, load))),
        position=np.column_stack((0 * depth, 0 * depth, -depth)),
        rotation=np.repeat(UPRIGHT, links + 1, axis=0),
    )

    def joints() -> list[Row]:
        rows = []
        hook = np.zeros(3)
        for body in range(links + 1):
            eye = chain.at(body, np.array([0, 0, upper_end[body]]))
            above = body - 1 if body else sap.WORLD
            rows += [
                Row(chain.along(body, above, eye, u), gap)
                for u, gap in zip(AXES, eye - hook, strict=True)
            ]
            hook = chain.at(body, np.array([0, 0, -length / 2]))
        return rows

    chain.run(2.0, regularization, joints)
    return [-depth[-1] - chain.position[-1, 2]]


def gear_train(regularization: sap.Regularization, slip: float) -> list[float]:
    """200 shafts geared to each other, driven at one end and held by friction at the other.

    Returns the speed of the first shaft [rad/s]: each gear slips by R times the motor's impulse.
    """
    shafts, inertia, torque, time_step, inf = 200, 0.01, 5.0, 0.01, np.inf
    gears = np.eye(shafts - 1, shafts) - np.eye(shafts - 1, shafts, 1)
    rows = sap.ConstraintRows.from_dense(
        np.vstack((gears, np.eye(shafts)[[0, -1]])),
        force_lower=[-inf] * len(gears) + [torque, -2 * torque],
        force_upper=[inf] * len(gears) + [torque, 2 * torque],
        slip_parameter=[0] * len(gears) + [0, slip],
    )
    velocity = np.zeros(shafts)
    with sap.connect("embedded:") as client:
        for _ in range(150):
            trees = sap.Trees([1] * shafts, [inertia] * shafts, velocity, guess_velocity=velocity)
            problem = sap.Problem(time_step, trees=trees, rows=rows, regularization=regularization)
            solution = client.solve(problem)
            assert solution.solved
            velocity = solution.velocity
    return [velocity[0]]


def arch(regularization: sap.Regularization, _: float) -> list[float]:
    """41 stones in a half circle of 1 m, 0.12 m thick: how deep [m] and how fast [m/s] it sinks."""
    stones, thickness, depth, density = 41, 0.12, 0.25, 2400.0
    half = np.pi / stones / 2
    inner, outer = 1 - thickness / 2, 1 + thickness / 2
    # Sectors of a ring: x is radial, z along the arch, the origin is the center of mass.
    area = half * (outer**2 - inner**2)
    center = 2 / 3 * (outer**3 - inner**3) * np.sin(half) / area
    second = (outer**4 - inner**4) / (8 * area)
    xx = second * (2 * half + np.sin(2 * half)) - center**2
    yy = depth**2 / 12
    zz = second * (2 * half - np.sin(2 * half))
    mass = density * depth * area
    angle = np.pi - (2 * np.arange(stones) + 1) * half
    rotation = Rotation.from_rotvec(np.outer(-angle, AXES[1])).as_matrix()
    face = (-np.sin(half), 0.0, -np.cos(half))
    touches = []
    for radius, y in product((inner, outer), (-depth / 2, depth / 2)):
        x, z = radius * np.cos(half) - center, radius * np.sin(half)
        touches.append(Touch(0, sap.WORLD, (x, y, z), 0, (0, 0, 1), 0))
        touches.append(Touch(stones - 1, sap.WORLD, (x, y, -z), 0, (0, 0, 1), 0))
        for stone in range(1, stones):
            touches.append(Touch(stone, stone - 1, (x, y, z), 0, face, center * np.sin(half)))
    bodies = Bodies(
        1 / 240,
        mass=np.full(stones, mass),
        inertia=mass * np.tile([yy + zz, xx + zz, xx + yy], (stones, 1)),
        position=center * rotation[:, :, 0],
        rotation=rotation,
        touches=touches,
    )
    bodies.run(2.0, regularization)
    crown = stones // 2
    return [center - bodies.position[crown, 2], -bodies.velocity[crown, 2]]


# A contact creeps by R_t γ_t = σ w γ_t and sinks by R_n γ_n (δt + τ), where R_n is the larger of
# β² w / 4π² and that of the stiffness, as in the arch at rigid numbers; rows likewise. Both add
# up along the path of a load. By defaults the arch falls, and the block passes the balls.
@pytest.mark.parametrize(
    ("scene", "rigid", "by_defaults"),
    [
        (parked_car, [2e-6], 2e-3),
        (gripper, [1.1e-5], 1.06e-2),
        (ton_on_balls, [7e-6], 2e-2),
        (chain_with_load, [2.8e-5], 0.158),
        (gear_train, [5e-5], 0.5),
        (arch, [1.4e-5, 1.8e-6], 0.5),
    ],
)
def test_sag_and_creep_are_those_of_the_regularization(
    scene: Scene, rigid: list[float], by_defaults: float
) -> None:
    found = np.array(scene(sap.Regularization.rigid(), 1e-6))
    assert (found < 1.5 * np.array(rigid)).all()
    assert (found > np.array(rigid) / 1.5).all()
    assert scene(sap.Regularization(), 1e-3)[0] > by_defaults / 1.5


@pytest.mark.parametrize("address", ["embedded:", "embedded:process"])
@pytest.mark.parametrize("given", [{}, {"beta": 0.5}, {"sigma": 1e-4, "row_beta": 0.2}])
def test_the_preset_has_the_bits_of_its_numbers(
    tmp_path: Path, address: str, given: dict[str, Any]
) -> None:
    problem = linked_balls(3)
    values = json.loads(problem_to_json(problem))
    values["regularization"] = {"preset": "REGULARIZATION_PRESET_RIGID", **given}
    path = tmp_path / "rigid.json"
    path.write_text(json.dumps(values))
    numbers: dict[str, Any] = {"beta": 0.01, "sigma": 1e-6, "row_beta": 1e-3} | given
    with sap.connect(address) as client:
        soft = client.solve(problem)
        problem.regularization = sap.Regularization(**numbers)
        expected = client.solve(problem)
        problem.regularization = replace(sap.Regularization.rigid(), **given)
        assert same_bits(client.solve(problem), expected)
        assert same_bits(client.solve(sap.load_problem(path)), expected)
    assert not same_bits(soft, expected)


@pytest.mark.parametrize("address", ["embedded:", "embedded:process"])
@pytest.mark.parametrize("choice", [17, -1, 1.5, "always"])
def test_unknown_choices_are_refused_by_name(address: str, choice: Any) -> None:
    with sap.connect(address) as client, pytest.raises(sap.InvalidArgument) as refused:
        client.solve(linked_balls(0), sap.Options(interior_point=choice))
    assert refused.value.field == "options.interior_point"


@pytest.mark.parametrize("address", ["embedded:", "embedded:process"])
def test_islands_are_handed_over_by_default_and_as_asked(address: str) -> None:
    problem = sap.load_problem(ROOT / "tests" / "data" / "stiff" / "silo_17_18.json")
    with sap.connect(address) as client:
        default = client.solve(problem)
        auto, never, always = (
            client.solve(problem, sap.Options(interior_point=choice))
            for choice in (
                sap.InteriorPoint.AUTO,
                sap.InteriorPoint.NEVER,
                sap.InteriorPoint.ALWAYS,
            )
        )
    assert same_bits(auto, default)
    assert not same_bits(never, auto)
    assert not same_bits(always, never)


@pytest.mark.parametrize("path", stiff_problem_files(), ids=lambda path: path.name.split(".")[0])
@pytest.mark.parametrize("choice", [sap.InteriorPoint.ALWAYS, sap.InteriorPoint.NEVER])
def test_stiff_problems_are_solved_within_their_certificate(
    client: sap.Client, path: Path, choice: sap.InteriorPoint
) -> None:
    problem = sap.load_problem(path)
    exact = np.array(json.loads(path.read_text())["reference"]["velocity"])
    solution = client.solve(problem, sap.Options(interior_point=choice))
    assert solution.solved
    assert relative_error(problem, solution.velocity, exact) <= 1e-5
    error = a_norm(dynamics_blocks(problem), solution.velocity - exact)
    assert error <= np.sqrt(2 * solution.islands.optimality_gap_bound.sum())


@pytest.mark.parametrize("beta", [0.0, 1.0])
def test_reports_tell_what_the_regularization_costs(client: sap.Client, beta: float) -> None:
    mass, step, stiffness, sigma = 2.0, 0.01, 1e7, 0.02
    block = sap.Problem(
        step,
        trees=sap.Trees(
            dofs=[3], dynamics_matrix=mass * np.eye(3), free_motion_velocity=[0.01, 0, -0.1]
        ),
        contacts=sap.Contacts(
            tree_a=[0],
            tree_b=[sap.WORLD],
            jacobian=np.eye(3),
            signed_distance=[0.0],
            stiffness=[stiffness],
            relaxation_time=[0.0],
            friction=[0.9],
        ),
        regularization=sap.Regularization(beta=beta, sigma=sigma),
    )
    solution = client.solve(block)
    island = solution.islands[0]
    along, _, normal = solution.impulse[0]
    w = np.sqrt(3) / 3 / mass
    by_stiffness = 1 / (step**2 * stiffness)
    by_beta = beta**2 / (4 * np.pi**2) * w
    assert island.creep == pytest.approx(sigma * w * abs(along), rel=1e-12)
    sag = max(by_beta - by_stiffness, 0) * normal * step
    assert island.sag == pytest.approx(sag, rel=1e-9, abs=1e-20)


def with_guess(problem: sap.Problem, solution: sap.Solution) -> sap.Problem:
    """The problem with the impulses of a solution."""
    guessed = deepcopy(problem)
    by_jacobian = problem.contacts.count
    if by_jacobian:
        guessed.contacts.guess_impulse = solution.impulse[:by_jacobian]
    if problem.body_contacts.count:
        guessed.body_contacts.guess_impulse = solution.impulse[by_jacobian:]
    if problem.rows.count:
        guessed.rows.guess_impulse = solution.row_impulse
    return guessed


@pytest.mark.parametrize("address", ["embedded:", "embedded:process"])
def test_impulses_of_the_answer_are_a_start_by_every_way(address: str) -> None:
    always = sap.Options(interior_point=sap.InteriorPoint.ALWAYS)
    cold = warm = 0
    for path in sorted((ROOT / "tests" / "data" / "stiff").glob("*.json")):
        problem = sap.load_problem(path)
        with sap.connect(address) as client, sap.connect("embedded:") as other:
            first = client.solve(problem, always)
            second = client.solve(with_guess(problem, first), always)
            assert same_bits(other.solve(with_guess(problem, first), always), second)
            assert same_bits(client.solve(problem, always), first)
        assert second.solved
        assert relative_error(problem, second.velocity, first.velocity) <= 1e-5
        cold += first.islands.iterations.max()
        warm += second.islands.iterations.max()
    assert warm < 0.9 * cold


@pytest.mark.parametrize("address", ["embedded:", "embedded:process"])
@pytest.mark.parametrize("group", ["body_contacts", "rows"])
def test_guesses_that_are_no_numbers_are_refused_by_name(address: str, group: str) -> None:
    problem = linked_balls(0)
    count = getattr(problem, group).count
    good = np.ones((count, 3) if group == "body_contacts" else count)
    with sap.connect(address) as client:
        getattr(problem, group).guess_impulse = good
        assert client.solve(problem).solved
        for bad in (np.nan * good, good[1:]):
            getattr(problem, group).guess_impulse = bad
            with pytest.raises(sap.InvalidArgument) as refused:
                client.solve(problem)
            assert refused.value.field.startswith(f"{group}.guess_impulse")


# A session has the velocities of its last step and no impulses.
def test_a_session_keeps_no_impulses(client: sap.Client) -> None:
    problem = sap.load_problem(ROOT / "tests" / "data" / "stiff" / "silo_17_18.json")
    problem.bodies.body_id = np.arange(1, problem.bodies.count + 1)
    options = sap.Options(interior_point=sap.InteriorPoint.ALWAYS)
    with client.session() as session:
        first = session.step(problem, options)
        second = session.step(problem, options)
    n = problem.trees.free_motion_velocity.size
    problem.trees.guess_velocity = first.velocity[:n]
    problem.bodies.guess_velocity = first.velocity[n:].reshape(-1, 6)
    assert same_bits(client.solve(problem, options), second)
