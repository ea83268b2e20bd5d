"""The asyncio client has the same results and errors as the synchronous one."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import weakref
from pathlib import Path

import numpy as np
import pytest
import sap_islands as sap
import sap_islands.aio

from support.scenes import balls_on_floor, pushed_steps, same_bits
from support.server_process import ServerProcess


def test_calls_give_the_same_bits_as_the_synchronous_ones(client: sap.Client) -> None:
    problems = pushed_steps(6)
    with client.session() as session:
        stepped = [session.step(problem) for problem in problems]

    async def run() -> None:
        async with sap_islands.aio.connect(client.address) as twin:
            assert same_bits(await twin.solve(problems[0]), client.solve(problems[0]))
            assert (await twin.info()) == client.info()
            for mine, other in zip(
                await twin.solve_batch(problems), client.solve_batch(problems), strict=True
            ):
                assert isinstance(mine, sap.Solution)
                assert isinstance(other, sap.Solution)
                assert same_bits(mine, other)
            async for index, outcome in twin.stream_batch(problems):
                assert isinstance(outcome, sap.Solution)
                assert same_bits(outcome, client.solve(problems[index]))
            async with twin.session(low_latency=True) as session:
                for problem, expected in zip(problems, stepped, strict=True):
                    assert same_bits(await session.step(problem), expected)

    asyncio.run(run())


def test_concurrent_calls_give_the_same_bits(client: sap.Client) -> None:
    problems = pushed_steps(20)

    async def run() -> list[sap.Solution]:
        async with sap_islands.aio.connect(client.address) as twin:
            return await asyncio.gather(*(twin.solve(problem) for problem in problems))

    for problem, solution in zip(problems, asyncio.run(run()), strict=True):
        assert same_bits(solution, client.solve(problem))


def test_errors_are_the_same(client: sap.Client) -> None:
    bad = balls_on_floor([0.0])
    bad.body_contacts.friction = [-1.0]

    async def run() -> None:
        async with sap_islands.aio.connect(client.address) as twin:
            with pytest.raises(sap.InvalidArgument) as caught:
                await twin.solve(bad)
            assert caught.value.field == "body_contacts.friction[0]"
            with pytest.raises(sap.DeadlineExceeded):
                await twin.solve(balls_on_floor([0.0] * 20_000), timeout=1e-4)
            session = await twin.session()
            with pytest.raises(sap.InvalidArgument) as caught:
                await session.step(bad)
            assert caught.value.field == "body_contacts.friction[0]"
            await session.step(balls_on_floor([0.0]))
            await session.close()
            with pytest.raises(sap.Unavailable, match="closed"):
                await session.step(balls_on_floor([0.0]))

    asyncio.run(run())


def test_episode_after_a_reset_has_the_bits_of_the_first(client: sap.Client) -> None:
    problems = pushed_steps(4)

    async def run() -> tuple[list[sap.Solution], list[sap.Solution]]:
        async with sap_islands.aio.connect(client.address) as twin, twin.session() as session:
            first = [await session.step(problem) for problem in problems]
            session.reset()
            return first, [await session.step(problem) for problem in problems]

    for one, other in zip(*asyncio.run(run()), strict=True):
        assert same_bits(one, other)


def test_session_that_the_server_ended_as_idle_continues(client: sap.Client) -> None:
    problems = pushed_steps(2)
    with client.session() as reference:
        expected = [reference.step(problem) for problem in problems]

    async def run() -> None:
        async with (
            sap_islands.aio.connect(
                "embedded:process", server_arguments=["--session-idle-s", "0.1"]
            ) as impatient,
            impatient.session() as session,
        ):
            assert same_bits(await session.step(problems[0]), expected[0])
            await asyncio.sleep(1.0)  # its stream ends meanwhile
            assert same_bits(await session.step(problems[1]), expected[1])

    asyncio.run(run())


def test_time_to_reconnect_holds_where_nobody_answers(tmp_path: Path) -> None:
    path = f"{tmp_path}/s"

    async def run() -> None:
        server = ServerProcess(f"unix:{path}")
        async with sap_islands.aio.connect(f"unix:{path}") as client:
            session = await client.session(reconnect_within=2.0)
            await session.step(balls_on_floor([0.0]))
            server.kill()
            Path(path).unlink(missing_ok=True)
            with socket.socket(socket.AF_UNIX) as silent:
                silent.bind(path)
                silent.listen()
                with pytest.raises(sap.Unavailable):
                    await session.step(balls_on_floor([0.0]))
            assert not session.open

    asyncio.run(run())


# Each answer is larger than the window of the connection, so that it is sent only as it is read.
def test_steps_ahead_reach_a_server_at_its_limit_of_bytes(client: sap.Client) -> None:
    problem = balls_on_floor([0.0] * 20_000)
    limit = str(len(problem.to_bytes()))

    async def run() -> list[sap.StepOutcome]:
        async with (
            sap_islands.aio.connect(
                "embedded:process", server_arguments=["--max-client-bytes", limit]
            ) as limited,
            limited.session(reconnect_within=0) as session,
        ):
            for _ in range(8):
                await session.send(problem)
            return [await session.receive() for _ in range(8)]

    outcomes = asyncio.run(run())
    assert [outcome.step_id for outcome in outcomes] == list(range(1, 9))
    assert isinstance(outcomes[0].outcome, sap.Solution)
    assert same_bits(outcomes[0].outcome, client.solve(problem))
    assert all(isinstance(outcome.outcome, sap.Solution) for outcome in outcomes)


@pytest.mark.parametrize("steps", [1, 8])
def test_session_may_be_left_while_steps_are_in_flight(client: sap.Client, steps: int) -> None:
    async def run() -> None:
        async with sap_islands.aio.connect(client.address) as twin:
            async with twin.session() as session:
                for _ in range(steps):
                    await session.send(balls_on_floor([0.0] * 1000))
            assert not session.open
            assert (await twin.solve(balls_on_floor([0.0]))).solved

    asyncio.run(run())


def test_session_that_is_closed_wakes_who_waits_for_it(client: sap.Client) -> None:
    problem = balls_on_floor([0.0] * 5000)

    async def run() -> None:
        async with sap_islands.aio.connect(client.address) as twin:
            session = await twin.session()
            waiting = asyncio.create_task(session.step(problem))
            await asyncio.sleep(0)
            await session.close()
            # A solve in this process is finished.
            with contextlib.suppress(sap.Unavailable):
                await asyncio.wait_for(waiting, 10)

    asyncio.run(run())


def test_arrays_that_are_replaced_during_a_call_live_until_its_end(client: sap.Client) -> None:
    problem, direction = balls_on_floor([0.1] * 2000), sap.Cotangent(velocity=np.ones(12_000))
    expected = client.solve(problem)
    (gradient,) = client.differentiate(problem, [direction]).gradients

    async def run() -> None:
        async with sap_islands.aio.connect(client.address) as twin:
            solve = asyncio.create_task(twin.solve(problem))
            differentiate = asyncio.create_task(twin.differentiate(problem, [direction]))
            await asyncio.sleep(0)
            velocities = weakref.ref(problem.bodies.free_motion_velocity)
            cotangent = weakref.ref(direction.velocity)
            problem.bodies.free_motion_velocity = np.zeros((2000, 6))
            direction.velocity = np.zeros(12_000)
            # On a busy machine a call may have ended before its task has waited for it.
            assert velocities() is not None or (solve.done() and differentiate.done())
            assert cotangent() is not None or differentiate.done()
            assert same_bits(await solve, expected)
            (found,) = (await differentiate).gradients
            assert np.array_equal(found.bodies.mass, gradient.bodies.mass)
            del found, solve, differentiate
            assert velocities() is None
            assert cotangent() is None

    asyncio.run(run())


@pytest.mark.parametrize("in_flight", [0, 3])
def test_session_continues_after_the_server_was_killed(
    tmp_path: Path, client: sap.Client, in_flight: int
) -> None:
    problems = pushed_steps(10)
    with client.session() as reference:
        expected = [reference.step(problem) for problem in problems]

    async def run(server: ServerProcess) -> ServerProcess:
        async with (
            sap_islands.aio.connect(f"unix:{tmp_path}/s") as restarted,
            restarted.session() as session,
        ):
            outcomes = []
            for problem in problems[:5]:
                await session.send(problem)
                outcomes.append(await session.receive())
            server.pause()
            for problem in problems[5 : 5 + in_flight]:
                await session.send(problem)
            server.kill()
            server = ServerProcess(f"unix:{tmp_path}/s")
            for problem in problems[5 + in_flight :]:
                await session.send(problem)
            outcomes += [await session.receive() for _ in range(session.in_flight)]
        for outcome, wanted in zip(outcomes, expected, strict=True):
            assert isinstance(outcome.outcome, sap.Solution)
            assert same_bits(outcome.outcome, wanted)
            assert outcome.warm_started == (outcome.step_id > 1)
        return server

    asyncio.run(run(ServerProcess(f"unix:{tmp_path}/s"))).kill()


def test_sessions_and_calls_need_no_threads_or_descriptors_of_their_own() -> None:
    problem = balls_on_floor([0.3])
    count = 1500
    flags = ["--max-sessions", f"{count}", "--max-client-sessions", f"{count}"]
    flags += ["--max-streams-per-connection", "2000"]

    def threads() -> int:
        return len(list(Path("/proc/self/task").iterdir()))

    async def run() -> tuple[int, int]:
        async with sap_islands.aio.connect("embedded:process", server_arguments=flags) as client:
            await client.solve(problem)
            before = threads()
            sessions = [client.session() for _ in range(count)]
            for _ in range(2):
                solutions = await asyncio.gather(*(session.step(problem) for session in sessions))
                assert all(same_bits(solution, solutions[0]) for solution in solutions)
            solved = await asyncio.gather(*(client.solve(problem) for _ in range(count)))
            assert all(same_bits(solution, solved[0]) for solution in solved)
            after = threads()
            for session in sessions:
                await session.close()
            return before, after

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
    try:
        before, after = asyncio.run(run())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert after <= before + 80  # of which 64 make calls
