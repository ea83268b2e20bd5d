"""Derivatives of solutions: closed forms, both directions, errors by name, batches."""

from __future__ import annotations

import asyncio
import pickle

import numpy as np
import pytest
import sap_islands as sap
import sap_islands.aio
from sap_islands._gradients.input_arrays import get

from support.scenes import balls_on_floor, linked_balls
from support.sliding_block import R_T, TIME_STEP, SlidingBlock

BLOCK = SlidingBlock()
WANTED = tuple(BLOCK.slopes_of_velocity())
V_X = sap.Cotangent(velocity=np.eye(6)[0])


def test_closed_form_of_the_block_agrees_with_its_differences() -> None:
    slopes = BLOCK.slopes_of_velocity()
    for path, name in (
        ("body_contacts.friction", "friction"),
        ("bodies.mass", "mass"),
        ("body_contacts.signed_distance", "distance"),
    ):
        assert slopes[path][0] == pytest.approx(BLOCK.difference(name), rel=1e-6)
    assert slopes["bodies.free_motion_velocity"][0, 0] == pytest.approx(BLOCK.difference("speed"))


def test_gradients_of_a_sliding_block_are_those_of_its_closed_form(client: sap.Client) -> None:
    result = client.differentiate(BLOCK.problem(), [V_X], wanted=WANTED)
    assert result.accurate
    assert result.solution.velocity[0] == pytest.approx(BLOCK.velocity, rel=1e-12)
    assert result.kink_margin.shape == (1,)
    assert 0 < result.kink_margin[0] <= 1
    for path, expected in BLOCK.slopes_of_velocity().items():
        found = get(result.gradients[0], path)
        assert found.shape == expected.shape
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_friction_does_not_matter_to_a_block_that_sticks(client: sap.Client) -> None:
    block = SlidingBlock(speed=1e-4)
    result = client.differentiate(block.problem(), [V_X], wanted=WANTED)
    gradient = result.gradients[0]
    assert abs(gradient.body_contacts.friction[0]) <= 1e-15 * block.speed
    held = 1 / (1 + 1 / (block.mass * R_T))
    assert gradient.bodies.free_motion_velocity[0, 0] == pytest.approx(held, rel=1e-9)


def test_the_floor_does_not_matter_to_a_block_that_flies(client: sap.Client) -> None:
    problem = SlidingBlock(distance=0.1).problem()
    result = client.differentiate(problem, [V_X, sap.Cotangent(impulse=[[1.0, 1.0, 1.0]])])
    flying, impulse = result.gradients
    assert flying.bodies.free_motion_velocity == pytest.approx(np.eye(6)[:1], abs=1e-14)
    assert flying.body_contacts.friction.tolist() == [0.0]
    for path in WANTED:
        assert not get(impulse, path).any()


def test_index_arrays_and_unwanted_inputs_have_no_gradient(client: sap.Client) -> None:
    problem = BLOCK.problem()
    (gradient,) = client.differentiate(problem, [V_X], wanted=["bodies.mass"]).gradients
    assert gradient.bodies.mass.shape == (1,)
    assert gradient.body_contacts.friction.size == gradient.body_contacts.body_a.size == 0
    assert gradient["bodies.mass"] is gradient.bodies.mass
    with pytest.raises(KeyError):
        gradient["bodies.color"]


def test_single_numbers_have_a_gradient_for_each_entry(client: sap.Client) -> None:
    problem = balls_on_floor([0.3, 2.0])
    cotangent = sap.Cotangent(velocity=np.ones(12))
    (gradient,) = client.differentiate(problem, [cotangent]).gradients
    assert gradient.bodies.mass.shape == (2,)
    assert gradient.bodies.inertia.shape == (2, 6)
    assert gradient.body_contacts.normal.shape == (2, 3)
    assert gradient.trees.dynamics_matrix.size == 0


def random_direction(problem: sap.Problem, rng: np.random.Generator) -> sap.Problem:
    bodies, contacts, rows = problem.bodies, problem.body_contacts, problem.rows
    return sap.Problem(
        0.0,
        bodies=sap.RigidBodies(
            mass=rng.normal(size=bodies.count),
            free_motion_velocity=rng.normal(size=(bodies.count, 6)),
            inertia=1e-3 * rng.normal(size=(bodies.count, 6)),
        ),
        body_contacts=sap.BodyContacts(
            friction=rng.normal(size=contacts.count),
            point=rng.normal(size=(contacts.count, 3)),
            adhesion=rng.normal(size=contacts.count),
        ),
        rows=sap.ConstraintRows(force_upper=rng.normal(size=rows.count)),
    )


def random_cotangent(solution: sap.Solution, rng: np.random.Generator) -> sap.Cotangent:
    return sap.Cotangent(
        velocity=rng.normal(size=solution.velocity.shape),
        impulse=rng.normal(size=solution.impulse.shape),
        contact_velocity=rng.normal(size=solution.contact_velocity.shape),
        row_impulse=rng.normal(size=solution.row_impulse.shape),
        row_velocity=rng.normal(size=solution.row_velocity.shape),
        angular_impulse=rng.normal(size=solution.angular_impulse.shape),
        cost=float(rng.normal()),
    )


PATHS = (
    "bodies.mass",
    "bodies.free_motion_velocity",
    "bodies.inertia",
    "body_contacts.friction",
    "body_contacts.point",
    "body_contacts.adhesion",
    "rows.force_upper",
)
OUTPUTS = (
    "velocity",
    "impulse",
    "contact_velocity",
    "row_impulse",
    "row_velocity",
    "angular_impulse",
    "cost",
)


@pytest.mark.parametrize("hold_delassus", [False, True])
def test_forward_and_reverse_mode_are_transposes(client: sap.Client, hold_delassus: bool) -> None:
    rng = np.random.default_rng(7)
    problem = linked_balls(3)
    solution = client.solve(problem, sap.Options(relative_tolerance=1e-10))
    cotangent, direction = random_cotangent(solution, rng), random_direction(problem, rng)
    result = client.differentiate(
        problem,
        [cotangent],
        tangents=[direction],
        velocity=solution.velocity,
        wanted=PATHS,
        hold_delassus=hold_delassus,
    )
    (gradient,), (tangent,) = result.gradients, result.tangents
    inputs = [np.vdot(get(gradient, path), get(direction, path)) for path in PATHS]
    outputs = [np.vdot(getattr(cotangent, name), getattr(tangent, name)) for name in OUTPUTS]
    scale = sum(abs(np.array(inputs))) + sum(abs(np.array(outputs)))
    assert abs(sum(inputs) - sum(outputs)) <= 1e-11 * scale


def test_a_number_in_a_direction_stands_for_all_entries(client: sap.Client) -> None:
    problem = balls_on_floor([2.0, 3.0])
    one = sap.Problem(0.0, body_contacts=sap.BodyContacts(friction=0.5))
    all_entries = sap.Problem(0.0, body_contacts=sap.BodyContacts(friction=[0.5, 0.5]))
    tangents = client.differentiate(problem, tangents=[one, all_entries]).tangents
    assert tangents[0].velocity.any()
    assert tangents[0].velocity.tobytes() == tangents[1].velocity.tobytes()
    assert tangents[0].impulse.shape == (2, 3)


def test_tangent_of_the_block_is_its_slope(client: sap.Client) -> None:
    direction = sap.Problem(0.0, body_contacts=sap.BodyContacts(friction=[1.0]))
    (tangent,) = client.differentiate(BLOCK.problem(), tangents=[direction]).tangents
    slope = BLOCK.slopes_of_velocity()["body_contacts.friction"][0]
    assert tangent.velocity[0] == pytest.approx(slope, rel=1e-9)


def test_velocity_at_hand_is_checked_and_another_is_a_guess(client: sap.Client) -> None:
    problem = BLOCK.problem()
    options = sap.Options(relative_tolerance=1e-12)
    solved = client.differentiate(problem, [V_X], options=options).solution
    again = client.differentiate(problem, [V_X], velocity=solved.velocity, options=options)
    assert again.solution.islands[0].iterations == 0
    wrong = client.differentiate(problem, [V_X], velocity=np.ones(6), options=options)
    assert wrong.solution.islands[0].iterations > 0
    assert wrong.solution.velocity == pytest.approx(solved.velocity, abs=1e-12)


def test_islands_without_cotangents_have_no_gradient(client: sap.Client) -> None:
    problem = balls_on_floor([2.0, 3.0])
    cotangent = sap.Cotangent(velocity=np.eye(12)[0])
    (gradient,) = client.differentiate(problem, [cotangent]).gradients
    assert gradient.body_contacts.friction[0] != 0
    assert gradient.body_contacts.friction[1] == 0
    assert not gradient.applied_impulse[6:].any()


def test_errors_name_the_cotangent_the_tangent_and_the_path(client: sap.Client) -> None:
    problem = BLOCK.problem()
    with pytest.raises(sap.InvalidArgument) as caught:
        client.differentiate(problem, [V_X, sap.Cotangent(velocity=[1.0])])
    assert caught.value.field == "cotangents[1].velocity"
    direction = sap.Problem(0.0, body_contacts=sap.BodyContacts(friction=[1.0, 2.0]))
    with pytest.raises(sap.InvalidArgument) as caught:
        client.differentiate(problem, tangents=[direction])
    assert caught.value.field == "tangents[0].body_contacts.friction"
    with pytest.raises(sap.InvalidArgument, match=r"contacts\.fritcion"):
        client.differentiate(problem, [V_X], wanted=["contacts.fritcion"])
    with pytest.raises(sap.InvalidArgument, match=r"cotangent\.velocity has type"):
        sap.Cotangent(velocity=["fast"])


def test_batch_has_an_outcome_for_each_request(client: sap.Client) -> None:
    blocks = [SlidingBlock(friction=0.1 * i) for i in range(1, 5)]
    requests = [sap.DifferentiateRequest(block.problem(), [V_X], wanted=WANTED) for block in blocks]
    requests[2].problem.time_step = -TIME_STEP
    outcomes = client.differentiate_batch(requests)
    assert isinstance(outcomes[2], sap.InvalidArgument)
    for i in (0, 1, 3):
        outcome = outcomes[i]
        assert isinstance(outcome, sap.Derivatives)
        single = client.differentiate(blocks[i].problem(), [V_X], wanted=WANTED)
        for path in WANTED:
            batched, alone = get(outcome.gradients[0], path), get(single.gradients[0], path)
            assert batched.tobytes() == alone.tobytes()


def test_asyncio_client_has_the_same_derivatives(client: sap.Client) -> None:
    request = sap.DifferentiateRequest(BLOCK.problem(), [V_X])

    async def run() -> tuple[sap.Derivatives, list[sap.Derivatives | sap.SapError]]:
        async with sap_islands.aio.connect(client.address) as twin:
            single = await twin.differentiate(BLOCK.problem(), [V_X])
            return single, await twin.differentiate_batch([request])

    single, (batched,) = asyncio.run(run())
    assert isinstance(batched, sap.Derivatives)
    expected = client.differentiate(BLOCK.problem(), [V_X]).gradients[0].applied_impulse
    assert single.gradients[0].applied_impulse.tobytes() == expected.tobytes()
    assert batched.gradients[0].applied_impulse.tobytes() == expected.tobytes()


def test_derivatives_can_be_pickled(client: sap.Client) -> None:
    result = client.differentiate(BLOCK.problem(), [V_X])
    copy = pickle.loads(pickle.dumps(result))
    assert copy.gradients[0].bodies.mass.tolist() == result.gradients[0].bodies.mass.tolist()
    assert copy.solution.velocity.tolist() == result.solution.velocity.tolist()
    assert copy.adjoint_status.tolist() == [sap.AdjointStatus.DIFFERENTIATED]
