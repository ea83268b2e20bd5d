"""The certificate of rest: a closed form, who needs which velocities, the same at every server."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
import sap_islands as sap
from sap_islands._library.c_requests import OptionsBlock, options_at

from support.scenes import same_bits
from support.stacks import stacks

GRAVITY, TIME_STEP, MASS, HORIZON = 9.81, 0.01, 2.0, 0.25
ASKING = sap.Options(rest=sap.Rest(horizon=HORIZON))


def balls(speeds: list[float]) -> sap.Problem:
    """Balls far above a floor, each with a contact that pushes nothing, at these speeds."""
    count = len(speeds)
    velocity = np.zeros((count, 6))
    velocity[:, 0] = speeds
    return sap.Problem(
        TIME_STEP,
        bodies=sap.RigidBodies(
            mass=np.full(count, MASS),
            inertia=[0.1, 0.1, 0.1, 0, 0, 0],
            center_of_mass=np.arange(3.0 * count).reshape(count, 3),
            free_motion_velocity=velocity - [0, 0, GRAVITY * TIME_STEP, 0, 0, 0],
            guess_velocity=velocity,
            initial_velocity=velocity,
        ),
        body_contacts=sap.BodyContacts(
            body_a=np.arange(count),
            body_b=sap.WORLD,
            point=np.zeros((count, 3)),
            normal=np.tile([0.0, 0.0, 1.0], (count, 1)),
            signed_distance=1.0,
            stiffness=1.0,
            relaxation_time=0.0,
            friction=0.5,
        ),
    )


@pytest.mark.parametrize("address", ["embedded:", "embedded:process"])
def test_drift_is_the_speed_and_the_fall_within_the_horizon(address: str) -> None:
    speeds = [0.0, 1e-3, 0.5]
    fall = GRAVITY * HORIZON * (HORIZON + TIME_STEP) / 2
    options = replace(ASKING, max_iterations=0)
    with sap.connect(address) as client:
        solution = client.solve(balls(speeds), options)
        plain = client.solve(balls(speeds), sap.Options(max_iterations=0))
        outcomes = client.solve_batch([balls(speeds)], options)
        with client.session(options) as session:
            stepped = session.step(balls(speeds))
    expected = HORIZON * np.array(speeds) + fall
    assert solution.islands.rest_drift == pytest.approx(expected, rel=1e-9)
    assert solution.islands[2].rest_drift == solution.islands.rest_drift[2]
    assert np.array_equal(plain.velocity, solution.velocity)
    assert np.array_equal(plain.impulse, solution.impulse)
    assert plain.islands.rest_drift.size == 0
    assert plain.islands[0].rest_drift is None
    assert isinstance(outcomes[0], sap.Solution)
    assert same_bits(outcomes[0], solution)
    assert np.array_equal(stepped.islands.rest_drift, solution.islands.rest_drift)
    assert same_bits(pickle.loads(pickle.dumps(solution)), solution)


def test_exact_friction_has_no_bound() -> None:
    options = replace(ASKING, coulomb=sap.CoulombFriction())
    with sap.connect("embedded:") as client:
        assert client.solve(balls([0.0]), options).islands[0].rest_drift == np.inf


@pytest.mark.parametrize("address", ["embedded:", "embedded:process"])
def test_missing_velocities_and_horizons_out_of_range_are_named(address: str) -> None:
    problem = balls([0.0])
    with sap.connect(address) as client:
        for horizon in (0.0, -1.0, np.nan, np.inf):
            with pytest.raises(sap.InvalidArgument) as refused:
                client.solve(problem, sap.Options(rest=sap.Rest(horizon=horizon)))
            assert refused.value.field == "options.rest.horizon"
        problem.bodies.initial_velocity = np.zeros((0, 6))
        with pytest.raises(sap.InvalidArgument) as refused:
            client.solve(problem, ASKING)
        assert refused.value.field == "bodies.initial_velocity"
        assert client.solve(problem).solved
        with client.session(ASKING) as session, pytest.raises(sap.InvalidArgument):
            session.step(problem)


def test_options_come_back_from_their_struct() -> None:
    for rest in (sap.Rest(), sap.Rest(horizon=0.5), None):
        options = sap.Options(rest=rest)
        assert options_at(OptionsBlock(options).address) == options


def test_a_scene_on_several_servers_has_the_drifts_of_one() -> None:
    scene = stacks(80, 40)
    scene.bodies.initial_velocity = scene.bodies.free_motion_velocity
    with sap.connect("embedded:process", server_arguments=["--threads", "1"]) as client:
        whole = client.solve(scene, ASKING)
        assert whole.islands.rest_drift.size == 80
        assert np.isfinite(whole.islands.rest_drift).all()
        assert same_bits(client.solve(scene, ASKING, split=3), whole)
