"""Constraint rows, general friction and contacts of Hunt & Crossley have their closed forms."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import sap_islands as sap
from sap_islands.arrays import FloatArray
from scipy import linalg

from support.scenes import linked_balls, same_bits

TIME_STEP, GRAVITY = 0.01, 9.81
TIGHT = sap.Options(relative_tolerance=1e-12)
RELATIVE = 1e-9  # of velocities and impulses: the tolerance above leaves less


def slider(v_star: float, mass: float, **row: Any) -> sap.Problem:
    """A mass on a rail with one row along it."""
    return sap.Problem(
        TIME_STEP,
        trees=sap.Trees(dofs=[1], dynamics_matrix=[mass], free_motion_velocity=[v_star]),
        rows=sap.ConstraintRows.from_dense([[1.0]], **row),
    )


def ball_at_floor(v_star: list[float], **contact: Any) -> sap.Problem:
    """A ball of 2 kg and 0.02 kg m² that touches the floor below its center."""
    given = {"signed_distance": 0.0, "stiffness": 1e5, "relaxation_time": 0.0, **contact}
    return sap.Problem(
        TIME_STEP,
        bodies=sap.RigidBodies(
            mass=2.0,
            inertia=[0.02, 0.02, 0.02, 0, 0, 0],
            center_of_mass=[[0, 0, 0.1]],
            free_motion_velocity=[v_star],
        ),
        body_contacts=sap.BodyContacts(
            body_a=[0], body_b=[sap.WORLD], point=[[0, 0, 0]], normal=[[0, 0, 1]], **given
        ),
    )


def test_rod_pinned_at_its_end_falls_as_a_pendulum(client: sap.Client) -> None:
    mass, length, R = 1.2, 0.5, 1e-4
    slender = mass * length**2 / 12
    arm = length / 2  # the pinned end is at x = -arm from the center
    J = np.array([[1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, -arm], [0, 0, 1, 0, arm, 0]])
    problem = sap.Problem(
        TIME_STEP,
        bodies=sap.RigidBodies(
            mass=mass,
            inertia=[1e-4, slender, slender, 0, 0, 0],
            center_of_mass=[[arm, 0, 0]],
            free_motion_velocity=[[0, 0, -GRAVITY * TIME_STEP, 0, 0, 0]],
        ),
        rows=sap.ConstraintRows.from_dense(J, regularization=R),
    )
    solution = client.solve(problem, TIGHT)
    w = 1 / mass + arm**2 / slender
    pin = GRAVITY * TIME_STEP / (w + R)
    assert solution.row_impulse == pytest.approx([0, 0, pin], rel=RELATIVE, abs=1e-12)
    turning = pin * arm / slender  # positive about y turns the free end down
    expected = [0, 0, pin / mass - GRAVITY * TIME_STEP, 0, turning, 0]
    assert solution.velocity == pytest.approx(expected, rel=RELATIVE, abs=1e-12)
    # Angular momentum about a rigid pin.
    rigid = mass * GRAVITY * TIME_STEP * arm / (slender + mass * arm**2)
    assert turning == pytest.approx(rigid, rel=R / w)


@pytest.mark.parametrize(("effort", "saturated"), [(20.0, True), (200.0, False)])
def test_motor_gives_its_effort_at_most(client: sap.Client, effort: float, saturated: bool) -> None:
    mass, gain, speed = 2.0, 200.0, 1.0
    problem = slider(
        0.0,
        mass,
        velocity_offset=-speed,
        regularization=1 / (TIME_STEP * gain),
        force_lower=-effort,
        force_upper=effort,
    )
    solution = client.solve(problem, TIGHT)
    implicit = TIME_STEP * gain * speed / (1 + TIME_STEP * gain / mass)
    impulse = TIME_STEP * effort if saturated else implicit
    assert solution.row_impulse == pytest.approx([impulse], rel=RELATIVE)
    assert solution.velocity == pytest.approx([impulse / mass], rel=RELATIVE)
    assert solution.row_velocity == pytest.approx([impulse / mass - speed], rel=RELATIVE)


def test_position_servo_is_an_implicit_controller(client: sap.Client) -> None:
    mass, kp, kd, feed_forward, v_star = 2.0, 300.0, 20.0, 5.0, 0.4
    error, speed = -0.03, 0.7  # q - q_d, v_d
    problem = slider(
        v_star,
        mass,
        stiffness=kp,
        relaxation_time=kd / kp,
        position_error=error,
        velocity_offset=-kd * speed / (TIME_STEP * kp + kd),
        force_offset=feed_forward,
        force_upper=100.0,
    )
    solution = client.solve(problem, TIGHT)
    # m (v - v*) = dt (-Kp (q + dt v - q_d) - Kd (v - v_d) + u)
    constant = mass * v_star + TIME_STEP * (-kp * error + kd * speed + feed_forward)
    v = constant / (mass + TIME_STEP * (TIME_STEP * kp + kd))
    assert solution.velocity == pytest.approx([v], rel=RELATIVE)
    assert solution.row_impulse == pytest.approx([mass * (v - v_star)], rel=RELATIVE)


@pytest.mark.parametrize(("v_star", "reached"), [(-0.5, True), (-0.1, False)])
def test_joint_limit_pushes_and_never_pulls(
    client: sap.Client, v_star: float, reached: bool
) -> None:
    distance, stiffness = 0.002, 1e4
    problem = slider(v_star, 1.5, position_error=distance, stiffness=stiffness, force_lower=0.0)
    solution = client.solve(problem, TIGHT)
    # Penetration at the end of the step times the stiffness: -k (g0 + dt v) dt = m (v - v*).
    v = (1.5 * v_star - TIME_STEP * stiffness * distance) / (1.5 + TIME_STEP**2 * stiffness)
    expected = v if reached else v_star
    assert solution.velocity == pytest.approx([expected], rel=RELATIVE)
    assert solution.row_impulse == pytest.approx([1.5 * (expected - v_star)], rel=RELATIVE)


@pytest.mark.parametrize(("v_star", "slips"), [(0.5, True), (0.01, False)])
def test_dry_friction_of_a_joint_holds_up_to_its_limit(
    client: sap.Client, v_star: float, slips: bool
) -> None:
    mass, limit = 2.0, 10.0
    row = {"slip_parameter": 1e-3, "force_lower": -limit, "force_upper": limit}
    solution = client.solve(slider(v_star, mass, **row), TIGHT)
    # R = 1e-3 / m leaves a creep of v* R / (R + 1 / m).
    v = v_star - TIME_STEP * limit / mass if slips else v_star * 1e-3 / 1.001
    assert solution.velocity == pytest.approx([v], rel=RELATIVE)
    assert solution.row_impulse == pytest.approx([mass * (v - v_star)], rel=RELATIVE)


def test_equal_bounds_are_a_constant_force(client: sap.Client) -> None:
    solution = client.solve(slider(0.3, 2.0, force_lower=-4.0, force_upper=-4.0), TIGHT)
    assert solution.velocity == pytest.approx([0.3 - 4.0 * TIME_STEP / 2.0], rel=RELATIVE)
    assert solution.row_impulse == pytest.approx([-4.0 * TIME_STEP], rel=RELATIVE)


def test_tendon_over_three_trees_joins_them(client: sap.Client) -> None:
    mass = np.array([1.0, 2.0, 5.0])
    v_star = np.array([0.3, -0.2, 0.1])
    a = np.array([1.0, -2.0, 0.5])
    regularization = 0.05
    problem = sap.Problem(
        TIME_STEP,
        trees=sap.Trees(dofs=[1, 1, 1], dynamics_matrix=mass, free_motion_velocity=v_star),
        rows=sap.ConstraintRows.from_dense([a], regularization=regularization),
    )
    solution = client.solve(problem, TIGHT)
    impulse = -(a @ v_star) / (a @ (a / mass) + regularization)
    assert solution.row_impulse == pytest.approx([impulse], rel=RELATIVE)
    assert solution.velocity == pytest.approx(v_star + a / mass * impulse, rel=RELATIVE)
    assert solution.island_of_tree.tolist() == [0, 0, 0]
    assert solution.islands[0].rows == 1
    assert solution.islands[0].contacts == 0
    assert solution.islands[0].cost == pytest.approx(solution.cost, rel=RELATIVE)


def test_torsional_friction_slows_a_spinning_ball(client: sap.Client) -> None:
    spin, mu, mu_spin, R_t, R_n = 30.0, 0.5, 0.01, 1e-4, 2e-4
    problem = ball_at_floor(
        [0, 0, -0.4, 0, 0, spin],
        friction=mu,
        torsional_friction=mu_spin,
        regularization_t=R_t,
        regularization_n=R_n,
    )
    solution = client.solve(problem, TIGHT)
    # It slides about the normal: impulse (e_n + |e|) / (R_n + R_t mu²) with e = -mu_spin w.
    k = 1 / (R_n + R_t * mu**2)
    normal = k * (0.4 + mu_spin * spin) / (1 + k * (1 / 2.0 + mu_spin**2 / 0.02))
    assert solution.impulse == pytest.approx(np.array([[0, 0, normal]]), rel=RELATIVE, abs=1e-12)
    expected = np.array([[0, 0, -mu_spin * normal]])
    assert solution.angular_impulse == pytest.approx(expected, rel=RELATIVE, abs=1e-12)
    w = spin - mu_spin * normal / 0.02
    expected = np.array([0, 0, normal / 2 - 0.4, 0, 0, w])
    assert solution.velocity == pytest.approx(expected, rel=RELATIVE, abs=1e-12)


def test_target_velocity_makes_a_ball_bounce(client: sap.Client) -> None:
    speed, restitution, R_n = 2.0, 0.6, 1e-3
    problem = ball_at_floor(
        [0, 0, -speed, 0, 0, 0],
        friction=0.5,
        target_velocity=[[0, 0, restitution * speed]],
        regularization_t=1e-3,
        regularization_n=R_n,
    )
    problem.body_contacts.signed_distance = ()
    solution = client.solve(problem, TIGHT)
    impulse = (1 + restitution) * speed / (1 / 2.0 + R_n)
    assert solution.impulse[0] == pytest.approx([0, 0, impulse], rel=RELATIVE, abs=1e-12)
    assert solution.velocity[2] == pytest.approx(impulse / 2.0 - speed, rel=RELATIVE)


def solid_ball(v_star: list[float], beta: float, **contact: Any) -> tuple[sap.Problem, float]:
    """A solid ball of 80 g that reaches the floor in the step, and r = R_n / w_n of its contact."""
    mass, radius = 0.08, 0.014
    inertia = 0.4 * mass * radius**2
    problem = sap.Problem(
        TIME_STEP,
        bodies=sap.RigidBodies(
            mass=mass,
            inertia=[inertia, inertia, inertia, 0, 0, 0],
            center_of_mass=[[0, 0, radius]],
            free_motion_velocity=[v_star],
        ),
        body_contacts=sap.BodyContacts(
            body_a=[0],
            body_b=[sap.WORLD],
            point=[[0, 0, 0]],
            normal=[[0, 0, 1]],
            stiffness=1e12,
            relaxation_time=0.0,
            friction=0.3,
            **contact,
        ),
        regularization=sap.Regularization(beta=beta),
    )
    w_t, w_n = 1 / mass + radius**2 / inertia, 1 / mass
    w = np.sqrt(2 * w_t**2 + w_n**2) / 3
    return problem, beta**2 / (4 * np.pi**2) * w / w_n


@pytest.mark.parametrize("restitution", [1.0, 0.8, 0.5, 0.0])
@pytest.mark.parametrize(("beta", "short_by"), [(1.0, 0.09), (0.1, 1e-3), (0.01, 1e-5)])
def test_rebound_falls_short_by_what_the_compliance_takes(
    client: sap.Client, restitution: float, beta: float, short_by: float
) -> None:
    speed = 3.0
    u = restitution * speed
    problem, r = solid_ball([0, 0, -speed, 0, 0, 0], beta, target_velocity=[[0, 0, u]])
    v_n = client.solve(problem, TIGHT).velocity[2]
    assert v_n == pytest.approx((u - r * speed) / (1 + r), rel=RELATIVE, abs=1e-12)
    assert abs(v_n / speed - restitution) < short_by


@pytest.mark.parametrize("restitution", [1.0, 0.5, 0.0])
def test_rebound_is_exact_with_a_target_that_has_the_compliance(
    client: sap.Client, restitution: float
) -> None:
    speed = 3.0
    u = restitution * speed
    _, r = solid_ball([0.0] * 6, 1.0, target_velocity=[[0, 0, 0]])
    target = [[0, 0, u + r * (u + speed)]]
    problem, _ = solid_ball([0, 0, -speed, 0, 0, 0], 1.0, target_velocity=target)
    assert client.solve(problem, TIGHT).velocity[2] == pytest.approx(u, rel=RELATIVE, abs=1e-10)


def cradle(client: sap.Client, gap: float) -> FloatArray:
    """Speeds of five balls in a row after the first has hit the others with 1 m/s."""
    count, radius, dt = 5, 0.05, 1e-3
    inertia = 0.4 * 0.5 * radius**2
    x, v = np.arange(count) * (2 * radius + gap), np.zeros(count)
    x[0], v[0] = -0.01, 1.0
    for _ in range(40):
        bodies = sap.RigidBodies(
            mass=np.full(count, 0.5),
            inertia=[inertia, inertia, inertia, 0, 0, 0],
            center_of_mass=np.outer(x, [1, 0, 0]),
            free_motion_velocity=np.outer(v, [1, 0, 0, 0, 0, 0]),
        )
        distance, approach = np.diff(x) - 2 * radius, -np.diff(v)
        closes = (approach > 0) & (distance <= dt * approach)
        target = np.where(closes, np.maximum(-distance / dt, approach), -distance / dt)
        contacts = sap.BodyContacts(
            body_a=np.arange(1, count),
            body_b=np.arange(count - 1),
            point=np.outer((x[1:] + x[:-1]) / 2, [1, 0, 0]),
            normal=[1, 0, 0],
            stiffness=1e12,
            relaxation_time=0.0,
            friction=0.0,
            target_velocity=np.outer(target, [1, 0, 0]),
        )
        regularization = sap.Regularization(beta=0.01)
        problem = sap.Problem(
            dt, bodies=bodies, body_contacts=contacts, regularization=regularization
        )
        v = client.solve(problem, TIGHT).velocity.reshape(-1, 6)[:, 0].copy()
        x = x + dt * v
    return v


def test_balls_of_a_cradle_share_the_impulse_only_where_they_touch(client: sap.Client) -> None:
    assert cradle(client, 0.0) == pytest.approx([-0.6, 0.4, 0.4, 0.4, 0.4], abs=1e-4)
    assert cradle(client, 2e-3) == pytest.approx([0, 0, 0, 0, 1], abs=1e-4)


@pytest.mark.parametrize(
    ("v_n", "slips", "expected"),
    [(-2.0, 0.0, -1.5), (-1.4, 0.0, -1.4), (-1.4, 1.0, -1.4), (-0.1, 30.0, -0.1)],
)
def test_contact_before_touch_stops_only_what_would_pass_the_gap(
    client: sap.Client, v_n: float, slips: float, expected: float
) -> None:
    gap = 0.015
    closes = gap + TIME_STEP * v_n <= 0
    problem, _ = solid_ball([slips, 0, v_n, 0, 0, 0], 0.01, signed_distance=gap)
    problem.body_contacts.friction = [0.3 if closes else 0.0]
    solution = client.solve(problem, TIGHT)
    assert solution.velocity[[0, 2]] == pytest.approx([slips, expected], abs=2e-5)
    assert np.any(solution.impulse != 0) == closes


@pytest.mark.parametrize(("adhesion", "holds"), [(30.0, True), (10.0, False)])
def test_adhesion_holds_a_ball_that_is_pulled(
    client: sap.Client, adhesion: float, holds: bool
) -> None:
    R_n = 1e-3
    problem = ball_at_floor(
        [0, 0, 0.1, 0, 0, 0],
        friction=0.5,
        adhesion=adhesion,
        regularization_t=1e-3,
        regularization_n=R_n,
    )
    solution = client.solve(problem, TIGHT)
    impulse = -0.1 / (1 / 2.0 + R_n) if holds else -TIME_STEP * adhesion
    assert solution.impulse[0] == pytest.approx([0, 0, impulse], rel=RELATIVE, abs=1e-12)
    assert solution.velocity[2] == pytest.approx(0.1 + impulse / 2.0, rel=RELATIVE)


@pytest.mark.parametrize(
    "law", [sap.ContactLaw.HUNT_CROSSLEY_LAGGED, sap.ContactLaw.HUNT_CROSSLEY_SIMILAR]
)
def test_hunt_and_crossley_without_friction_is_a_root_of_a_quadratic(
    client: sap.Client, law: sap.ContactLaw
) -> None:
    elastic, stiffness, dissipation, v_star, mass = 50.0, 1e4, 0.5, -0.3, 2.0
    problem = ball_at_floor(
        [0, 0, v_star, 0, 0, 0],
        stiffness=stiffness,
        friction=0.0,
        law=law,
        hunt_crossley=sap.HuntCrossley(elastic, dissipation, 0.0),
    )
    solution = client.solve(problem, TIGHT)
    # m (v - v*) = dt (f_e - dt k v) (1 - d v)
    quadratic = [
        TIME_STEP**2 * stiffness * dissipation,
        -TIME_STEP * (elastic * dissipation + TIME_STEP * stiffness) - mass,
        TIME_STEP * elastic + mass * v_star,
    ]
    v = min(np.roots(quadratic))  # the other one is beyond lift-off
    assert solution.velocity[2] == pytest.approx(v, rel=RELATIVE)
    assert solution.impulse[0] == pytest.approx([0, 0, mass * (v - v_star)], rel=RELATIVE)


def test_lagged_friction_is_bounded_by_the_lagged_impulse(client: sap.Client) -> None:
    mu, lagged, speed = 0.5, 0.2, 1.0
    problem = ball_at_floor(
        [speed, 0, -0.1, 0, 0, 0],
        friction=mu,
        law=sap.ContactLaw.HUNT_CROSSLEY_LAGGED,
        hunt_crossley=sap.HuntCrossley(0.0, 0.0, lagged),
    )
    solution = client.solve(problem, TIGHT)
    slip = np.hypot(*solution.contact_velocity[0, :2])
    friction = np.hypot(*solution.impulse[0, :2])
    # The slip is far above the speed at which friction begins to fall, eps <= 1e-3 m/s.
    assert slip > 0.5
    assert mu * lagged * (1 - (1e-3 / slip) ** 2 / 2) <= friction <= mu * lagged
    assert solution.velocity[0] == pytest.approx(speed - friction / 2.0, rel=RELATIVE)


def test_load_on_a_rigid_row_leaves_the_error_of_its_regularization(client: sap.Client) -> None:
    mass, tau = 3.0, 0.02
    # (beta² w / 4 pi²) dt (dt + tau) f: at this error the body rests.
    error = 0.1**2 / (4 * np.pi**2 * mass) * TIME_STEP * (TIME_STEP + tau) * mass * GRAVITY
    row = {"position_error": -error, "relaxation_time": tau}
    solution = client.solve(slider(-GRAVITY * TIME_STEP, mass, **row), TIGHT)
    assert abs(solution.velocity[0]) <= RELATIVE * GRAVITY * TIME_STEP
    assert solution.row_impulse == pytest.approx([mass * GRAVITY * TIME_STEP], rel=RELATIVE)


@pytest.mark.parametrize("rule", list(sap.RegularizationRule))
@pytest.mark.parametrize("seed", range(4))
def test_rows_of_random_trees_obey_momentum_and_law(
    client: sap.Client, rule: sap.RegularizationRule, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    blocks = [_random_inertia(rng, n) for n in (1, 3, 6, 2)]
    A = linalg.block_diag(*blocks)
    J = np.where(rng.random((9, 12)) < 0.4, rng.standard_normal((9, 12)), 0.0)
    J[:, 0] = 1.0  # no row is empty
    v_star = rng.standard_normal(12)
    laws: dict[str, Any] = {
        "position_error": rng.uniform(-0.01, 0.01, 9),
        "velocity_offset": rng.uniform(-1, 1, 9),
        "stiffness": 10.0 ** rng.uniform(2, 8, 9),
        "relaxation_time": rng.uniform(0, 0.1, 9),
        "force_lower": -rng.uniform(0, 300, 9),
        "force_upper": rng.uniform(0, 300, 9),
        "slip_parameter": np.where(rng.random(9) < 0.3, 1e-3, 0.0),
        "force_offset": rng.uniform(-5, 5, 9),
    }
    problem = sap.Problem(
        TIME_STEP,
        trees=sap.Trees.from_blocks(blocks, v_star, initial_velocity=np.zeros(12)),
        regularization=sap.Regularization(row_beta=0.5, rule=rule),
        rows=sap.ConstraintRows.from_dense(J, **laws),
    )
    solution = client.solve(problem, TIGHT)
    gamma = solution.row_impulse
    assert solution.row_velocity == pytest.approx(
        J @ solution.velocity + laws["velocity_offset"], rel=RELATIVE, abs=RELATIVE
    )
    momentum = A @ (solution.velocity - v_star)
    assert momentum == pytest.approx(J.T @ gamma, abs=RELATIVE * abs(J.T @ gamma).max())
    diagonal = rule is sap.RegularizationRule.DIAGONAL
    inverse = np.diag(1 / np.diag(A)) if diagonal else np.linalg.inv(A)
    w = np.einsum("ri,ij,rj->r", J, inverse, J)
    spring = TIME_STEP + laws["relaxation_time"]
    R = np.maximum(0.5**2 * w / (4 * np.pi**2), 1 / (TIME_STEP * laws["stiffness"] * spring))
    R = np.where(laws["slip_parameter"] > 0, laws["slip_parameter"] * w, R)
    reached = -laws["position_error"] / spring - solution.row_velocity
    y = reached / R + TIME_STEP * laws["force_offset"]
    lower, upper = TIME_STEP * laws["force_lower"], TIME_STEP * laws["force_upper"]
    assert gamma == pytest.approx(np.clip(y, lower, upper), abs=RELATIVE * abs(gamma).max())


def _random_inertia(rng: np.random.Generator, n: int) -> FloatArray:
    factor = rng.standard_normal((n, n))
    return factor @ factor.T + np.eye(n)


def test_four_times_all_masses_and_forces_leaves_the_bits_of_velocities(
    client: sap.Client,
) -> None:
    problem, heavy = linked_balls(3), linked_balls(3)
    heavy.bodies.mass = 4 * problem.bodies.mass
    heavy.bodies.inertia = 4 * problem.bodies.inertia
    contacts = heavy.body_contacts
    assert contacts.hunt_crossley is not None
    for group in (contacts, contacts.hunt_crossley, heavy.rows):
        for name in (
            "stiffness",
            "adhesion",
            "elastic_force",
            "lagged_normal_impulse",
            "force_lower",
            "force_upper",
        ):
            if hasattr(group, name):
                setattr(group, name, 4 * getattr(group, name))
    light_solution, heavy_solution = client.solve(problem), client.solve(heavy)
    assert heavy_solution.velocity.tobytes() == light_solution.velocity.tobytes()
    assert np.array_equal(heavy_solution.impulse, 4 * light_solution.impulse)
    assert np.array_equal(heavy_solution.row_impulse, 4 * light_solution.row_impulse)
    assert np.array_equal(heavy_solution.angular_impulse, 4 * light_solution.angular_impulse)


def test_problems_with_every_kind_can_be_pickled() -> None:
    problem = linked_balls(0)
    assert pickle.loads(pickle.dumps(problem)).to_bytes() == problem.to_bytes()
    assert copy.deepcopy(problem).to_bytes() == problem.to_bytes()


def test_session_batch_and_single_solve_give_the_same_bits(client: sap.Client) -> None:
    problems = [linked_balls(seed) for seed in range(6)]
    singles = [client.solve(problem) for problem in problems]
    assert all(single.row_impulse.any() and single.angular_impulse.any() for single in singles)
    for single, batched in zip(singles, client.solve_batch(problems), strict=True):
        assert isinstance(batched, sap.Solution)
        assert same_bits(single, batched)
    previous: sap.Solution | None = None
    with client.session() as session:
        for problem in problems:
            step = session.step(problem)
            if previous is not None:
                problem.bodies.guess_velocity = previous.velocity
            assert same_bits(step, client.solve(problem))
            previous = step


def test_errors_of_rows_name_the_entry(client: sap.Client) -> None:
    problem = slider(0.0, 1.0, force_lower=[1.0], force_upper=[-1.0])
    with pytest.raises(sap.InvalidArgument) as caught:
        client.solve(problem)
    assert caught.value.field == "rows.force_upper[0]"
    problem.rows = sap.ConstraintRows.from_dense([[1.0], [0.0]])
    with pytest.raises(sap.InvalidArgument) as caught:
        client.solve(problem)
    assert caught.value.field == "rows.entries[1]"


def test_response_mask_has_the_names_of_rows(client: sap.Client) -> None:
    problem = slider(0.0, 1.0, force_lower=3.0, force_upper=3.0)
    solution = client.solve(problem, sap.Options(response_mask=("row_impulse",)))
    assert solution.row_impulse == pytest.approx([3.0 * TIME_STEP], rel=RELATIVE)
    assert solution.velocity.size == solution.row_velocity.size == 0


def test_limits_of_rows_are_known(client: sap.Client) -> None:
    limits = client.info().limits
    for name in ("max_rows", "max_row_entries", "max_row_pairs"):
        assert limits[name] > 0


def guided_slider(
    v_star: float, depth: float, as_known: bool, stiffness: float = 1e5, time_step: float = 2e-3
) -> sap.Problem:
    """1 kg on a rail along a floor that it touches with μ = 0.5: J_n is 0."""
    force = max(0.0, stiffness * depth)
    contact: dict[str, Any] = {"signed_distance": -depth, "stiffness": stiffness}
    if as_known:
        contact = {
            "signed_distance": 0.0,
            "stiffness": 0.0,
            "law": [sap.ContactLaw.HUNT_CROSSLEY_LAGGED],
            "hunt_crossley": sap.HuntCrossley(
                elastic_force=force, dissipation=0.0, lagged_normal_impulse=time_step * force
            ),
        }
    return sap.Problem(
        time_step,
        trees=sap.Trees(dofs=[1], dynamics_matrix=[1.0], free_motion_velocity=[v_star]),
        contacts=sap.Contacts(
            tree_a=[0],
            tree_b=[sap.WORLD],
            jacobian=[1.0, 0.0, 0.0],
            relaxation_time=0.0,
            friction=0.5,
            **contact,
        ),
        regularization=sap.Regularization(stiction_speed=1e-6),
    )


@pytest.mark.parametrize(("depth", "speed"), [(-1e-3, 2.0), (0.0, 2.0), (1e-4, 1.0)])
def test_guided_body_with_its_known_force_slides(
    client: sap.Client, depth: float, speed: float
) -> None:
    v = 0.0
    for _ in range(100):  # 10 N for 0.2 s, less the friction of k depth
        v = client.solve(guided_slider(v + 2e-3 * 10, depth, True), TIGHT).velocity[0]
    assert v == pytest.approx(speed, rel=1e-9)


@pytest.mark.parametrize(("depth", "speed"), [(-1e-3, 2.0), (0.0, 2.0), (1e-4, 1.0)])
def test_guided_body_in_a_cone_of_large_regularization_slides(
    client: sap.Client, depth: float, speed: float
) -> None:
    dt, scale, v = 2e-3, 1e8, 0.0
    v_hat, R_n = depth / dt, 1 / (dt * 1e5 * dt)
    for _ in range(100):
        problem = guided_slider(v + dt * 10, depth, False)
        contacts = problem.contacts
        contacts.signed_distance, contacts.stiffness = (), ()
        contacts.target_velocity = [[0, 0, scale * v_hat if v_hat > 0 else -scale]]
        contacts.regularization_n = [scale * R_n]
        v = client.solve(problem, TIGHT).velocity[0]
    assert v == pytest.approx(speed, rel=1e-6)


def test_guided_body_in_a_cone_is_held_by_a_force_without_bound(client: sap.Client) -> None:
    v = 0.0
    for _ in range(100):
        solution = client.solve(guided_slider(v + 2e-3 * 10, 0.0, False, 1e12), TIGHT)
        v = solution.velocity[0]
    assert v < 0.05
    assert solution.impulse[0, 2] / 2e-3 == pytest.approx(10 / 0.5, rel=0.1)
