"""Calls of a session that an exception ends have no effect, and the session goes on.

The server is stopped by SIGSTOP meanwhile, so that the interrupt comes while a call waits.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sap_islands as sap
import sap_islands.aio

from support.scenes import balls_on_floor, pushed_steps, same_bits
from support.server_process import ServerProcess


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(f"unix:{tmp_path}/s") as process:
        yield process


@pytest.fixture
def interrupt_soon() -> Iterator[Callable[[], None]]:
    """A function after which this thread gets a KeyboardInterrupt in 0.2 s."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    main = threading.main_thread().ident
    assert main is not None
    before = signal.signal(signal.SIGUSR1, interrupt)  # pytest-timeout has SIGALRM
    yield lambda: threading.Timer(0.2, signal.pthread_kill, (main, signal.SIGUSR1)).start()
    signal.signal(signal.SIGUSR1, before)


def one_by_one(client: sap.Client, problems: list[sap.Problem]) -> list[sap.Solution]:
    with client.session() as session:
        return [session.step(problem) for problem in problems]


@pytest.mark.parametrize("taken", [0, 2])
def test_interrupted_step_is_not_taken(
    server: ServerProcess, interrupt_soon: Callable[[], None], client: sap.Client, taken: int
) -> None:
    problems = pushed_steps(taken + 2)
    expected = one_by_one(client, problems)
    with sap.connect(server.address) as stopped, stopped.session() as session:
        solutions = [session.step(problem) for problem in problems[:taken]]
        server.pause()
        interrupt_soon()
        with pytest.raises(KeyboardInterrupt):
            session.step(balls_on_floor([2.0, -1.0, 3.0]))
        server.go_on()
        assert session.in_flight == 0
        solutions += [session.step(problem) for problem in problems[taken:]]
    for solution, wanted in zip(solutions, expected, strict=True):
        assert same_bits(solution, wanted)


def test_outcome_whose_receiving_was_interrupted_is_received_again(
    server: ServerProcess, interrupt_soon: Callable[[], None], client: sap.Client
) -> None:
    problems = pushed_steps(4)
    expected = one_by_one(client, problems)
    with sap.connect(server.address) as stopped, stopped.session() as session:
        assert same_bits(session.step(problems[0]), expected[0])
        server.pause()
        for problem in problems[1:3]:
            session.send(problem)
        interrupt_soon()
        with pytest.raises(KeyboardInterrupt):
            session.receive()
        server.go_on()
        assert session.in_flight == 2
        session.send(problems[3])
        outcomes = [session.receive() for _ in range(3)]
    assert [outcome.step_id for outcome in outcomes] == [2, 3, 4]
    for outcome, wanted in zip(outcomes, expected[1:], strict=True):
        assert outcome.warm_started
        assert isinstance(outcome.outcome, sap.Solution)
        assert same_bits(outcome.outcome, wanted)


def test_interrupt_ends_a_session_that_may_not_reconnect(
    server: ServerProcess, interrupt_soon: Callable[[], None]
) -> None:
    with sap.connect(server.address) as stopped, stopped.session(reconnect_within=0) as session:
        server.pause()
        interrupt_soon()
        with pytest.raises(KeyboardInterrupt):
            session.step(balls_on_floor([0.0]))
        server.go_on()
        assert not session.open
        with pytest.raises(sap.Cancelled, match="withdrawn"):
            session.step(balls_on_floor([0.0]))


def test_calls_and_openings_are_interrupted(
    server: ServerProcess, interrupt_soon: Callable[[], None]
) -> None:
    problem = balls_on_floor([0.0])
    with sap.connect(server.address, reconnect_within=3600.0) as stopped:
        stopped.info()
        server.pause()
        for call in (
            lambda: stopped.solve(problem),
            lambda: stopped.solve_batch([problem]),
            lambda: list(stopped.stream_batch([problem])),
            lambda: stopped.differentiate(problem, [sap.Cotangent(cost=1.0)]),
            stopped.session,
        ):
            interrupt_soon()
            with pytest.raises(KeyboardInterrupt):
                call()
        server.go_on()
        assert stopped.solve(problem).solved


def test_interrupted_session_can_be_closed(
    server: ServerProcess, interrupt_soon: Callable[[], None]
) -> None:
    with sap.connect(server.address) as stopped:
        session = stopped.session()
        server.pause()
        interrupt_soon()
        with pytest.raises(KeyboardInterrupt):
            session.step(balls_on_floor([0.0]))
        session.close()
        server.go_on()
        assert stopped.solve(balls_on_floor([0.0])).solved


@pytest.mark.parametrize("taken", [0, 2])
def test_step_that_asyncio_cancels_is_not_taken(
    server: ServerProcess, client: sap.Client, taken: int
) -> None:
    problems = pushed_steps(taken + 2)
    expected = one_by_one(client, problems)

    async def run() -> list[sap.Solution]:
        async with sap_islands.aio.connect(server.address) as stopped, stopped.session() as session:
            solutions = [await session.step(problem) for problem in problems[:taken]]
            server.pause()
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(session.step(balls_on_floor([2.0, -1.0, 3.0])), 0.2)
            server.go_on()
            assert session.in_flight == 0
            return solutions + [await session.step(problem) for problem in problems[taken:]]

    for solution, wanted in zip(asyncio.run(run()), expected, strict=True):
        assert same_bits(solution, wanted)


def test_outcome_whose_receiving_asyncio_cancels_is_received_again(
    server: ServerProcess, client: sap.Client
) -> None:
    problems = pushed_steps(4)
    expected = one_by_one(client, problems)

    async def run() -> list[sap.StepOutcome]:
        async with sap_islands.aio.connect(server.address) as stopped, stopped.session() as session:
            await session.step(problems[0])
            server.pause()
            for problem in problems[1:3]:
                await session.send(problem)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(session.receive(), 0.2)
            server.go_on()
            assert session.in_flight == 2
            await session.send(problems[3])
            return [await session.receive() for _ in range(3)]

    outcomes = asyncio.run(run())
    assert [outcome.step_id for outcome in outcomes] == [2, 3, 4]
    for outcome, wanted in zip(outcomes, expected[1:], strict=True):
        assert isinstance(outcome.outcome, sap.Solution)
        assert same_bits(outcome.outcome, wanted)
