"""Several real servers: calls and sessions do without the one that dies or leaves."""

from __future__ import annotations

import asyncio
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sap_islands as sap
import sap_islands.aio

from support.called_client import value
from support.fleet import Fleet
from support.scenes import balls_on_floor, pushed_steps, same_bits

PROBLEM = balls_on_floor([0.0, 0.3])
COTANGENT = sap.Cotangent(cost=1.0)


@pytest.fixture
def fleet() -> Iterator[Fleet]:
    with Fleet(2) as servers:
        yield servers


@pytest.fixture
def rolling() -> Iterator[Fleet]:
    """Servers that announce their end a minute before it."""
    with Fleet(2, "--lame-duck-s", "60") as servers:
        yield servers


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def boot_id(address: str) -> str:
    with sap.connect(address) as client:
        return client.info().boot_id


def solve(client: sap.Client) -> bytes:
    return client.solve(PROBLEM).velocity.tobytes()


def solve_batch(client: sap.Client) -> bytes:
    (outcome,) = client.solve_batch([PROBLEM])
    assert isinstance(outcome, sap.Solution)
    return outcome.velocity.tobytes()


def stream_batch(client: sap.Client) -> bytes:
    ((index, outcome),) = client.stream_batch([PROBLEM])
    assert index == 0
    assert isinstance(outcome, sap.Solution)
    return outcome.velocity.tobytes()


def differentiate(client: sap.Client) -> bytes:
    result = client.differentiate(PROBLEM, [COTANGENT])
    return result.gradients[0].applied_impulse.tobytes()


def differentiate_batch(client: sap.Client) -> bytes:
    (outcome,) = client.differentiate_batch([sap.DifferentiateRequest(PROBLEM, [COTANGENT])])
    assert isinstance(outcome, sap.Derivatives)
    return outcome.gradients[0].applied_impulse.tobytes()


CALLS = [solve, solve_batch, stream_batch, differentiate, differentiate_batch]


def test_calls_take_turns_over_the_servers_of_a_list(fleet: Fleet) -> None:
    ids = {boot_id(address) for address in fleet.addresses}
    assert len(ids) == 2
    with sap.connect(fleet.address) as client:
        wait_until(lambda: {client.info().boot_id for _ in range(2)} == ids)


@pytest.mark.parametrize("call", CALLS)
def test_call_goes_on_at_another_server_when_its_own_dies(
    fleet: Fleet, client: sap.Client, call: Callable[[sap.Client], bytes]
) -> None:
    expected = call(client)
    with sap.connect(fleet.address) as spread:
        wait_until(lambda: len({spread.info().boot_id for _ in range(2)}) == 2)
        # One of two calls in turn waits for the server that answers nothing any more.
        fleet.servers[0].pause()
        threading.Timer(0.3, fleet.servers[0].kill).start()
        assert [call(spread) for _ in range(4)] == [expected] * 4
    assert fleet.servers[1].runs()


def test_calls_of_asyncio_go_on_at_another_server(fleet: Fleet, client: sap.Client) -> None:
    expected = client.solve(PROBLEM)

    async def run() -> None:
        async with sap_islands.aio.connect(fleet.address) as spread:
            ids: set[str] = set()
            while len(ids) < 2:
                ids.add((await spread.info()).boot_id)
            fleet.servers[0].pause()
            asyncio.get_running_loop().call_later(0.3, fleet.servers[0].kill)
            calls: list[Any] = [spread.solve(PROBLEM) for _ in range(4)]
            for solution in await asyncio.gather(*calls):
                assert same_bits(solution, expected)
            outcomes = [outcome async for outcome in spread.stream_batch([PROBLEM] * 4)]
            assert sorted(index for index, _ in outcomes) == [0, 1, 2, 3]

    asyncio.run(run())


def test_servers_that_restart_one_after_the_other_fail_no_call(
    fleet: Fleet, client: sap.Client
) -> None:
    expected = client.solve(PROBLEM)
    with sap.connect(fleet.address) as spread:
        for i in (0, 1, 0, 1):
            assert same_bits(spread.solve(PROBLEM), expected)
            fleet.servers[i].kill()
            assert same_bits(spread.solve(PROBLEM), expected)
            fleet.start(i)
            assert same_bits(spread.solve(PROBLEM), expected)


def reference(client: sap.Client, problems: list[sap.Problem]) -> list[sap.Solution]:
    with client.session() as session:
        return [session.step(problem) for problem in problems]


def check_outcomes(outcomes: list[sap.StepOutcome], expected: list[sap.Solution]) -> None:
    assert [outcome.step_id for outcome in outcomes] == list(range(1, len(expected) + 1))
    for outcome, wanted in zip(outcomes, expected, strict=True):
        assert isinstance(outcome.outcome, sap.Solution)
        assert same_bits(outcome.outcome, wanted)
        assert outcome.warm_started == (outcome.step_id > 1)


@pytest.mark.parametrize("in_flight", [1, 3])
def test_session_moves_from_a_server_that_announces_its_end(
    rolling: Fleet, client: sap.Client, in_flight: int
) -> None:
    problems = pushed_steps(40)
    expected = reference(client, problems)
    rolling.servers[1].kill()
    outcomes: list[sap.StepOutcome] = []
    with sap.connect(rolling.address) as spread, spread.session() as session:
        rolling.start(1)
        other = boot_id(rolling.addresses[1])
        wait_until(lambda: spread.info().boot_id == other)
        rolling.servers[0].terminate()
        wait_until(lambda: {spread.info().boot_id for _ in range(4)} == {other})
        for problem in problems:
            while session.in_flight >= in_flight:
                outcomes.append(session.receive())
            session.send(problem)
        assert rolling.servers[0].runs()
        rolling.servers[0].kill()
        outcomes += [session.receive() for _ in range(session.in_flight)]
    check_outcomes(outcomes, expected)


@pytest.mark.parametrize("in_flight", [1, 3])
def test_session_of_asyncio_moves_from_a_server_that_announces_its_end(
    rolling: Fleet, client: sap.Client, in_flight: int
) -> None:
    problems = pushed_steps(40)
    expected = reference(client, problems)
    rolling.servers[1].kill()

    async def run() -> list[sap.StepOutcome]:
        outcomes: list[sap.StepOutcome] = []
        async with (
            sap_islands.aio.connect(rolling.address) as spread,
            spread.session() as session,
        ):
            rolling.start(1)
            other = boot_id(rolling.addresses[1])
            while (await spread.info()).boot_id != other:
                await asyncio.sleep(0.01)
            rolling.servers[0].terminate()
            while {(await spread.info()).boot_id for _ in range(4)} != {other}:
                await asyncio.sleep(0.01)
            for problem in problems:
                while session.in_flight >= in_flight:
                    outcomes.append(await session.receive())
                await session.send(problem)
            assert rolling.servers[0].runs()
            rolling.servers[0].kill()
            outcomes += [await session.receive() for _ in range(session.in_flight)]
        return outcomes

    check_outcomes(asyncio.run(run()), expected)


def test_session_goes_on_at_another_server_when_its_own_dies(
    fleet: Fleet, client: sap.Client
) -> None:
    problems = pushed_steps(10)
    expected = reference(client, problems)
    fleet.servers[1].kill()
    with sap.connect(fleet.address) as spread, spread.session() as session:
        for problem in problems[:3]:
            session.send(problem)
        outcomes = [session.receive() for _ in range(3)]
        fleet.start(1)
        fleet.servers[0].pause()
        for problem in problems[3:6]:
            session.send(problem)
        fleet.servers[0].kill()
        for problem in problems[6:]:
            session.send(problem)
        outcomes += [session.receive() for _ in range(7)]
    check_outcomes(outcomes, expected)


def test_session_does_not_look_for_a_server_without_time_for_it(fleet: Fleet) -> None:
    with sap.connect(fleet.address, reconnect_within=0) as spread:
        session = spread.session()
        session.step(PROBLEM)
        for i in range(2):
            fleet.servers[i].kill()
        with pytest.raises(sap.Unavailable):
            session.step(PROBLEM)
        assert not session.open


@pytest.mark.parametrize("face", [sap, sap_islands.aio])
def test_receive_raises_why_the_session_has_ended(fleet: Fleet, face: Any) -> None:
    async def run() -> None:
        session = await value(face.connect(fleet.addresses[0]).session(reconnect_within=0))
        await value(session.step(PROBLEM))
        fleet.servers[0].pause()
        await value(session.send(PROBLEM))
        fleet.servers[0].kill()
        with pytest.raises(sap.Unavailable):
            await value(session.receive())

    asyncio.run(run())


def test_an_error_says_how_often_its_call_was_lost(fleet: Fleet) -> None:
    with sap.connect(fleet.addresses[0], reconnect_within=0) as alone:
        alone.solve(PROBLEM)
        fleet.servers[0].pause()
        threading.Timer(1.0, fleet.servers[0].kill).start()
        with pytest.raises(sap.Unavailable) as caught:
            alone.solve(PROBLEM)
        with pytest.raises(sap.Unavailable) as unsent:
            alone.solve(PROBLEM)
    assert caught.value.lost_attempts == 1
    assert pickle.loads(pickle.dumps(caught.value)).lost_attempts == 1
    assert unsent.value.lost_attempts == 0


def test_closed_client_is_refused(fleet: Fleet) -> None:
    client = sap.connect(fleet.address)
    session = client.session()
    client.close()
    with pytest.raises(sap.Unavailable, match="the client is closed"):
        client.solve(PROBLEM)
    with pytest.raises(sap.Unavailable, match="the client is closed"):
        session.step(PROBLEM)
    assert not session.open
