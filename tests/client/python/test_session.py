"""Sessions: warm starts, steps in flight, failed steps, lost connections."""

from __future__ import annotations

import pickle
import socket
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import sap_islands as sap

from support.scenes import balls_on_floor, pushed_steps, same_bits
from support.server_process import ServerProcess


def test_step_starts_from_the_one_before(client: sap.Client) -> None:
    problem = balls_on_floor([0.0, 0.4])
    with client.session() as session:
        first = session.step(problem)
        session.send(problem)
        outcome = session.receive()
        assert outcome.warm_started
        assert isinstance(outcome.outcome, sap.Solution)
        assert outcome.outcome.islands.iterations.sum() <= first.islands.iterations.sum()
        problem.bodies.guess_velocity = first.velocity
        assert same_bits(outcome.outcome, client.solve(problem))


def test_steps_in_flight_are_answered_in_their_order(client: sap.Client) -> None:
    problems = pushed_steps(30)
    with client.session() as session:
        one_by_one = [session.step(problem) for problem in problems]
    with client.session() as session:
        ids = [session.send(problem) for problem in problems]
        assert session.in_flight == 30
        outcomes = [session.receive() for _ in problems]
        assert session.in_flight == 0
    assert ids == [outcome.step_id for outcome in outcomes] == list(range(1, 31))
    for outcome, expected in zip(outcomes, one_by_one, strict=True):
        assert isinstance(outcome.outcome, sap.Solution)
        assert same_bits(outcome.outcome, expected)


def test_episode_after_a_reset_has_the_bits_of_the_first(client: sap.Client) -> None:
    problems = pushed_steps(6)
    with client.session() as session:
        first = [session.step(problem) for problem in problems]
        for restart in ("reset", "go on"):
            if restart == "reset":
                session.reset()
                session.reset()
            session.send(problems[0])
            outcome = session.receive()
            assert isinstance(outcome.outcome, sap.Solution)
            assert outcome.warm_started == (restart == "go on")
            again = [outcome.outcome] + [session.step(problem) for problem in problems[1:]]
            same = [same_bits(a, b) for a, b in zip(again, first, strict=True)]
            assert all(same) == (restart == "reset")


def test_reset_holds_until_a_step_is_solved(client: sap.Client) -> None:
    problems = pushed_steps(3)
    bad = pushed_steps(1)[0]
    bad.bodies.mass = [-1.0] * 3
    with client.session() as session:
        first = [session.step(problem) for problem in problems]
        session.reset()
        ids = [session.send(problem) for problem in (bad, bad, *problems)]
        outcomes = [session.receive() for _ in ids]
        assert [outcome.step_id for outcome in outcomes] == ids
        assert all(isinstance(outcome.outcome, sap.InvalidArgument) for outcome in outcomes[:2])
        assert [outcome.warm_started for outcome in outcomes[2:]] == [False, True, True]
        for outcome, wanted in zip(outcomes[2:], first, strict=True):
            assert isinstance(outcome.outcome, sap.Solution)
            assert same_bits(outcome.outcome, wanted)


def test_reset_holds_on_a_new_stream_and_for_steps_with_a_guess(
    tmp_path: Path, client: sap.Client
) -> None:
    problems = pushed_steps(3)
    problems[0].bodies.guess_velocity = np.full((3, 6), 0.1)
    with client.session() as session:
        first = [session.step(problem) for problem in problems]
        session.reset()
        again = [session.step(problem) for problem in problems]
    address = f"unix:{tmp_path}/s"
    server = ServerProcess(address)
    with sap.connect(address) as restarted, restarted.session() as session:
        session.step(problems[1])
        session.reset()
        server.kill()
        server = ServerProcess(address)
        once_more = [session.step(problem) for problem in problems]
    server.kill()
    for i, wanted in enumerate(first):
        assert same_bits(again[i], wanted)
        assert same_bits(once_more[i], wanted)


def test_reset_is_refused_while_steps_are_in_flight(client: sap.Client) -> None:
    with client.session() as session:
        session.send(balls_on_floor([0.0]))
        with pytest.raises(RuntimeError, match="in flight"):
            session.reset()
        session.receive()


def test_session_of_low_latency_gives_the_same_bits(client: sap.Client) -> None:
    with client.session() as plain, client.session(low_latency=True) as quick:
        for problem in pushed_steps(5):
            assert same_bits(quick.step(problem), plain.step(problem))


def test_failed_step_does_not_end_the_session(client: sap.Client) -> None:
    good, bad = balls_on_floor([0.3]), balls_on_floor([0.3])
    bad.bodies.mass = [-1.0]
    with client.session() as session:
        session.step(good)
        with pytest.raises(sap.InvalidArgument) as caught:
            session.step(bad)
        assert caught.value.field == "bodies.mass[0]"
        assert session.open
        session.send(good)
        assert session.receive().warm_started


def test_step_is_refused_while_others_are_in_flight(client: sap.Client) -> None:
    with client.session() as session:
        session.send(balls_on_floor([0.0]))
        with pytest.raises(RuntimeError, match="in flight"):
            session.step(balls_on_floor([0.0]))
        session.receive()
        with pytest.raises(RuntimeError, match="no step is in flight"):
            session.receive()


def test_step_of_a_closed_session_is_refused(client: sap.Client) -> None:
    session = client.session()
    session.step(balls_on_floor([0.0]))
    session.close()
    session.close()
    assert not session.open
    with pytest.raises(sap.Unavailable, match="closed"):
        session.step(balls_on_floor([0.0]))


def test_session_may_be_closed_during_steps_of_another_thread(client: sap.Client) -> None:
    problem = balls_on_floor([0.0] * 500)
    for _ in range(10):
        session = client.session()
        begun = threading.Event()
        ends: list[Exception] = []

        def run(session: sap.Session, begun: threading.Event, ends: list[Exception]) -> None:
            try:
                while True:
                    session.step(problem)
                    begun.set()
            except sap.Unavailable as error:
                ends.append(error)

        thread = threading.Thread(target=run, args=(session, begun, ends))
        thread.start()
        begun.wait()
        session.close()
        thread.join()
        assert [str(end) for end in ends] == ["the session is closed"]


def test_timeout_ends_the_session(client: sap.Client) -> None:
    session = client.session(timeout=2.0)
    with pytest.raises(sap.DeadlineExceeded):
        while True:
            session.step(balls_on_floor([0.0]))
    assert not session.open


@pytest.mark.parametrize("in_flight", [0, 1, 5])
def test_session_continues_with_the_same_bits_after_the_server_was_killed(
    tmp_path: Path, client: sap.Client, in_flight: int
) -> None:
    problems = pushed_steps(14)
    problems[7].bodies.mass = [-1.0]  # fails, so that step 8 starts from step 6
    problems[8].bodies.free_motion_velocity = np.zeros((3, 6))
    with client.session() as session:
        for problem in problems:
            session.send(problem)
        expected = [session.receive() for _ in problems]

    address = f"unix:{tmp_path}/s"
    server = ServerProcess(address)
    with sap.connect(address) as restarted, restarted.session() as session:
        for problem in problems[:7]:
            session.send(problem)
        outcomes = [session.receive() for _ in range(7)]
        # SIGSTOP: the server answers none of the following steps, which are lost with it.
        server.pause()
        for problem in problems[7 : 7 + in_flight]:
            session.send(problem)
        server.kill()
        server = ServerProcess(address)
        for problem in problems[7 + in_flight :]:
            session.send(problem)
        outcomes += [session.receive() for _ in range(7)]
        assert session.in_flight == 0
    server.kill()
    for i, (outcome, wanted) in enumerate(zip(outcomes, expected, strict=True)):
        assert outcome.step_id == wanted.step_id
        assert outcome.warm_started == wanted.warm_started
        if i == 7:
            assert isinstance(outcome.outcome, sap.InvalidArgument)
            continue
        assert isinstance(outcome.outcome, sap.Solution)
        assert isinstance(wanted.outcome, sap.Solution)
        assert same_bits(outcome.outcome, wanted.outcome)


def test_fields_outside_the_mask_are_kept_by_the_session_alone(
    tmp_path: Path, client: sap.Client
) -> None:
    problems = pushed_steps(4)
    cost = sap.Options(response_mask=("cost",))
    impulse = sap.Options(response_mask=("impulse", "islands"))
    with client.session(cost, reconnect_within=0) as session:
        expected = [session.step(problems[0]), session.step(problems[1], impulse)]
        expected += [session.step(problem) for problem in problems[2:]]

    address = f"unix:{tmp_path}/s"
    server = ServerProcess(address)
    with sap.connect(address) as restarted, restarted.session(cost) as session:
        solutions = []
        for i, problem in enumerate(problems):
            solutions.append(session.step(problem, impulse if i == 1 else None))
            server.kill()
            server = ServerProcess(address)
    server.kill()
    for solution, wanted in zip(solutions, expected, strict=True):
        assert not solution.velocity.size
        assert same_bits(solution, wanted)
        assert not pickle.loads(pickle.dumps(solution)).velocity.size


def test_session_that_the_server_ended_as_idle_continues(client: sap.Client) -> None:
    problems = pushed_steps(2)
    with client.session() as session:
        expected = [session.step(problem) for problem in problems]
    with (
        sap.connect("embedded:process", server_arguments=["--session-idle-s", "0.1"]) as impatient,
        impatient.session() as session,
    ):
        assert same_bits(session.step(problems[0]), expected[0])
        time.sleep(1.0)  # its stream ends meanwhile
        assert same_bits(session.step(problems[1]), expected[1])


def test_session_stays_at_a_server_that_shuts_down_and_outlives_it(
    tmp_path: Path, client: sap.Client
) -> None:
    problems = pushed_steps(5)
    address = f"unix:{tmp_path}/s"
    server = ServerProcess(address, "--lame-duck-s", "60")
    with sap.connect(address) as leaving, leaving.session() as session:
        solutions = [session.step(problems[0])]
        server.terminate()
        # There is no other server: the session stays until this one ends.
        for _ in range(20):
            solutions.append(session.step(problems[0]))
        repeated = len(solutions)
        solutions += [session.step(problem) for problem in problems[1:3]]
        server.kill()
        server = ServerProcess(address)
        solutions += [session.step(problem) for problem in problems[3:]]
    server.kill()
    with client.session() as session:
        for problem, solution in zip(
            problems[:1] * repeated + problems[1:], solutions, strict=True
        ):
            assert same_bits(session.step(problem), solution)


def test_time_to_reconnect_holds_where_nobody_answers(tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/s"
    server = ServerProcess(address)
    with sap.connect(address) as client:
        session = client.session(reconnect_within=2.0)
        session.step(balls_on_floor([0.0]))
        server.kill()
        Path(f"{tmp_path}/s").unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as silent:
            silent.bind(f"{tmp_path}/s")
            silent.listen()
            with pytest.raises(sap.Unavailable):
                session.step(balls_on_floor([0.0]))
        assert not session.open


def test_session_that_may_not_reconnect_ends(tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/s"
    server = ServerProcess(address)
    with sap.connect(address) as client:
        session = client.session(reconnect_within=0)
        session.step(balls_on_floor([0.0]))
        server.kill()
        with pytest.raises(sap.Unavailable):
            session.step(balls_on_floor([0.0]))
        assert not session.open
