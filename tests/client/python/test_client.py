"""Calls: equal bits over every transport, errors that name the field, batches, deadlines."""

from __future__ import annotations

import pickle
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sap_islands as sap
from sap_islands.errors import StatusCode, error_of_code

from support.scenes import balls_on_floor, same_bits
from support.server_process import ServerProcess


def test_pushed_ball_sticks_and_rolls_as_a_solid_ball_does(client: sap.Client) -> None:
    solution = client.solve(balls_on_floor([0.0, 0.1]))
    assert solution.solved
    v = solution.velocity.reshape(-1, 6)
    assert v[1, 0] == pytest.approx(0.1 * 5 / 7, rel=1e-2)
    assert v[1, 0] == pytest.approx(0.1 * v[1, 4], rel=1e-2)
    assert solution.impulse.shape == (2, 3)
    assert solution.impulse[0, 2] == pytest.approx(9.81 * 0.01, rel=0.06)
    assert solution.island_of_tree.tolist() == [0, 1]
    assert len(solution.islands) == 2
    assert solution.islands[0].status is sap.IslandStatus.CONVERGED
    assert solution.islands[0].contacts == 1
    assert solution.timings.solve_s > 0


def test_answers_have_the_same_bits_over_every_transport(
    client: sap.Client, tcp_address: str
) -> None:
    problem = balls_on_floor([0.0, 0.4, 3.0])
    with sap.connect(tcp_address) as remote:
        assert same_bits(client.solve(problem), remote.solve(problem))


def test_error_names_field_and_index(client: sap.Client) -> None:
    problem = balls_on_floor([0.0] * 5)
    problem.body_contacts.friction = [0.5, 0.5, 0.5, -0.3, 0.5]
    with pytest.raises(sap.InvalidArgument, match="must be finite and >= 0") as caught:
        client.solve(problem)
    assert caught.value.field == "body_contacts.friction[3]"
    assert caught.value.index == 3
    assert isinstance(caught.value, ValueError)


def test_wrong_length_names_the_array(client: sap.Client) -> None:
    problem = balls_on_floor([0.0] * 5)
    problem.body_contacts.stiffness = [1e5] * 4
    with pytest.raises(sap.InvalidArgument) as caught:
        client.solve(problem)
    assert caught.value.field == "body_contacts.stiffness"
    assert caught.value.index is None


def test_value_of_the_wrong_type_is_refused_on_assignment() -> None:
    contacts = sap.Contacts()
    with pytest.raises(sap.InvalidArgument, match=r"contacts\.friction has type"):
        contacts.friction = ["rough"]
    with pytest.raises(sap.InvalidArgument, match="integers are needed"):
        contacts.tree_a = [0.5]
    with pytest.raises(sap.InvalidArgument) as caught:
        contacts.tree_b = [0, 2**40]
    assert caught.value.field == "contacts.tree_b[1]"


def test_array_whose_rows_have_the_wrong_length_is_refused_on_assignment() -> None:
    bodies = sap.RigidBodies(mass=[1.0, 1.0], center_of_mass=np.zeros(6))
    for shape in [(3, 2), (6, 1), (1, 6), (2, 3, 1)]:
        with pytest.raises(sap.InvalidArgument, match="the last axis must have 3") as caught:
            bodies.center_of_mass = np.zeros(shape)
        assert caught.value.field == "bodies.center_of_mass"
    bodies.center_of_mass = np.zeros((2, 3))
    bodies.center_of_mass = np.empty((0, 0))


@pytest.mark.parametrize(
    ("field", "part"),
    [
        ("trees", balls_on_floor([0.0]).bodies),
        ("bodies", {"mass": 1.0}),
        ("contacts", balls_on_floor([0.0]).body_contacts),
        ("rows", None),
        ("time_step", "0.01"),
        ("time_step", None),
        # Wrong types on purpose.
        ("regularization.beta", sap.Regularization(beta="1")),  # type: ignore[arg-type]
        ("regularization.rule", sap.Regularization(rule="full")),  # type: ignore[arg-type]
    ],
)
def test_part_of_a_problem_of_the_wrong_type_is_named(
    client: sap.Client, field: str, part: Any
) -> None:
    problem = balls_on_floor([0.0])
    setattr(problem, field.partition(".")[0], part)
    with pytest.raises(sap.InvalidArgument, match=f"{field} has type .* is needed") as caught:
        client.solve(problem)
    assert caught.value.field == field
    (outcome,) = client.solve_batch([balls_on_floor([0.0])])
    assert isinstance(outcome, sap.Solution)


def test_what_is_no_problem_or_no_options_is_refused(client: sap.Client) -> None:
    problem: Any = balls_on_floor([0.0])
    wrong: Any = {"relative_tolerance": 1e-3}
    with pytest.raises(sap.InvalidArgument, match="problem has type list; Problem is needed"):
        client.solve([problem])  # type: ignore[arg-type]  # on purpose
    with pytest.raises(sap.InvalidArgument, match=r"options is {.*; Options is"):
        client.solve(problem, wrong)
    for names in ("bodies.mass", [1]):
        with pytest.raises(sap.InvalidArgument, match="a list of names is needed") as caught:
            client.differentiate(problem, wanted=names)  # type: ignore[arg-type]  # on purpose
        assert caught.value.field == "wanted"


@pytest.mark.parametrize(
    "wrong",
    [
        {"relative_tolerance": "1e-3"},
        {"relative_tolerance": np.array([1e-3])},
        {"max_iterations": 10.0},
        {"time_budget": [1]},
        {"newton": "plain"},
        {"priority": "high"},
        {"coulomb": True},
        {"rest": 0.25},
        {"response_mask": "velocity"},
        {"response_mask": [1]},
    ],
)
def test_option_of_the_wrong_type_is_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(sap.InvalidArgument, match="is needed") as caught:
        sap.Options(**wrong)
    assert caught.value.field == f"options.{next(iter(wrong))}"
    with pytest.raises(sap.InvalidArgument) as caught:
        sap.CoulombFriction(max_rounds=1.5)  # type: ignore[arg-type]  # on purpose
    assert caught.value.field == "options.coulomb.max_rounds"


def test_batch_has_an_outcome_for_each_problem(client: sap.Client) -> None:
    problems = [balls_on_floor([0.1 * i]) for i in range(5)]
    problems[2].time_step = -1.0
    outcomes = client.solve_batch(problems)
    assert len(outcomes) == 5
    for i, outcome in enumerate(outcomes):
        if i == 2:
            assert isinstance(outcome, sap.InvalidArgument)
            assert outcome.field == "time_step"
        else:
            assert isinstance(outcome, sap.Solution)
            assert same_bits(outcome, client.solve(problems[i]))
    assert len(client.solve_batch(iter(problems))) == 5
    streamed = dict(client.stream_batch(iter(problems)))
    assert sorted(streamed) == list(range(5))
    last = streamed[4]
    assert isinstance(last, sap.Solution)
    assert isinstance(outcomes[4], sap.Solution)
    assert same_bits(last, outcomes[4])


def test_options_reach_the_solver(client: sap.Client) -> None:
    problem = balls_on_floor([0.0, 0.4])
    options = sap.Options(max_iterations=0, response_mask=("velocity", "islands"))
    solution = client.solve(problem, options)
    assert not solution.solved
    assert np.array_equal(solution.velocity, problem.bodies.free_motion_velocity.ravel())
    assert solution.impulse.shape == (0, 3)
    assert set(solution.islands.status) == {sap.IslandStatus.ITERATION_LIMIT}
    problem = balls_on_floor([0.0, 0.1])
    for no in (np.False_, 0, False):
        options = sap.Options(islands=no)  # type: ignore[arg-type]  # on purpose
        assert len(client.solve(problem, options).islands) == 1
    with pytest.raises(sap.InvalidArgument) as caught:
        client.solve(problem, sap.Options(relative_tolerance=2.0))
    assert caught.value.field == "options.relative_tolerance"


def test_timeout_of_a_call_ends_it(client: sap.Client) -> None:
    with pytest.raises(sap.DeadlineExceeded) as caught:
        client.solve(balls_on_floor([0.0] * 20_000), timeout=1e-4)
    assert isinstance(caught.value, TimeoutError)


def test_call_waits_for_a_server_that_restarts(tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/s"
    with (
        sap.connect(address, reconnect_within=0) as impatient,
        pytest.raises(sap.Unavailable) as caught,
    ):
        impatient.solve(balls_on_floor([0.0]))
    assert isinstance(caught.value, ConnectionError)

    # A start may take longer than a client waits, so the server runs, and gets the address late.
    server = ServerProcess(f"unix:{tmp_path}/elsewhere")
    late = threading.Timer(0.3, lambda: Path(f"{tmp_path}/elsewhere").rename(f"{tmp_path}/s"))
    late.start()
    try:
        with sap.connect(address) as client:
            assert client.solve(balls_on_floor([0.0])).solved
    finally:
        late.join()
        server.kill()


def test_problems_solutions_options_and_errors_can_be_pickled(client: sap.Client) -> None:
    problem = balls_on_floor([0.0, 0.2])
    copy = pickle.loads(pickle.dumps(problem))
    assert copy.to_bytes() == problem.to_bytes()
    solution = client.solve(problem)
    assert same_bits(pickle.loads(pickle.dumps(solution)), solution)
    options = sap.Options(time_budget=0.5, response_mask=("velocity",))
    assert pickle.loads(pickle.dumps(options)) == options
    error = pickle.loads(pickle.dumps(sap.InvalidArgument("wrong", "contacts.friction[2]")))
    assert (error.message, error.field, error.index) == ("wrong", "contacts.friction[2]", 2)
    for connected in (client, client.session()):
        with pytest.raises(TypeError, match="connect in each process"):
            pickle.dumps(connected)


def test_every_kind_of_error_has_its_class_and_code() -> None:
    kinds = [error_of_code(int(code), "what") for code in StatusCode]
    assert [error.code for error in kinds] == list(StatusCode)
    assert len({type(error) for error in kinds} - {sap.SapError}) == 11
    assert isinstance(error_of_code(8, "what"), sap.ResourceExhausted)
    assert error_of_code(99, "what").code is StatusCode.UNKNOWN


def test_an_error_over_a_limit_has_reason_and_retry_delay() -> None:
    flags = ("--max-client-calls-per-s", "0.01")
    with (
        sap.connect("embedded:process", server_arguments=flags) as client,
        pytest.raises(sap.ResourceExhausted) as caught,
    ):
        for _ in range(1000):
            client.info()
    error = caught.value
    assert error.reason == "CLIENT_RATE"
    assert error.retry_after_s is not None
    assert error.retry_after_s > 0
    assert error.server
    assert str(error) == f"{error.message} (request id {error.request_id})"
    assert pickle.loads(pickle.dumps(error)).args == error.args


def test_a_failed_call_has_the_request_id_of_the_server(tcp_address: str) -> None:
    problem = balls_on_floor([0.0])
    problem.time_step = -1.0
    with sap.connect(tcp_address) as client, pytest.raises(sap.InvalidArgument) as caught:
        client.solve(problem)
    assert len(caught.value.request_id) == 32
    assert caught.value.request_id in str(caught.value)
    assert caught.value.request_id not in caught.value.message


def test_info_has_version_threads_and_limits(client: sap.Client) -> None:
    info = client.info()
    assert info.version.count(".") == 2
    assert info.solver_threads >= 1
    assert info.limits["max_steps_in_flight"] >= 1


def test_limits_of_parts_of_a_second_are_exact() -> None:
    flags = ("--queue-timeout-s", "0.5", "--max-solve-s", "0.25")
    with sap.connect("embedded:process", server_arguments=flags) as client:
        limits = client.info().limits
    assert (limits["queue_timeout_s"], limits["max_solve_s"]) == (0.5, 0.25)
    assert isinstance(limits["max_contacts"], int)
    assert limits["high_priority"] is True


def test_package_is_typed() -> None:
    assert (Path(sap.__file__).parent / "py.typed").is_file()
    assert sys.modules["sap_islands"].__all__ == sorted(
        sap.__all__, key=lambda name: (not name.isupper(), name[0].islower(), name)
    )
