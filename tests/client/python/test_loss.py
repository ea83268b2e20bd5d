"""Which ends of a call are losses, when a lost call is repeated, and which servers are mixed."""

from __future__ import annotations

import asyncio
import itertools

import pytest
import sap_islands as sap
import sap_islands.aio
from grpc import StatusCode
from sap_islands._remote.attempts import Attempts
from sap_islands._remote.loss import is_lost
from sap_islands.errors import error_of_code
from sap_islands.v1 import problem_pb2
from sap_islands.v1 import solver_service_pb2 as service

from support.fake_server import Ending, FakeServer, opened_session
from support.scenes import balls_on_floor

IDENTITY = "0.2.0 x86-64-v3 00000000000000aa"
OTHER_BUILD = "0.3.0 x86-64 00000000000000bb"
SAME_BUILD = "0.2.0 x86-64-v3 00000000000000cc"
INFO = service.GetServerInfoResponse(version="0.2.0").SerializeToString()

LOST_CALL = {
    False: {"UNAVAILABLE", "CANCELLED", "INTERNAL", "UNKNOWN", "ABORTED", "RESOURCE_EXHAUSTED"},
    True: {"UNAVAILABLE"},
}
LOST_SESSION = {False: LOST_CALL[False], True: {"UNAVAILABLE", "CANCELLED", "ABORTED"}}
CASES = [
    (code, with_identity)
    for code, with_identity in itertools.product(StatusCode, (False, True))
    if code is not StatusCode.OK
]


@pytest.mark.parametrize(("code", "with_identity"), CASES)
def test_rule_of_losses(code: StatusCode, with_identity: bool) -> None:
    error = error_of_code(code.value[0], "", "", "")
    error.server = IDENTITY if with_identity else ""
    assert is_lost(error) == (code.name in LOST_CALL[with_identity])
    assert is_lost(error, in_session=True) == (code.name in LOST_SESSION[with_identity])


def test_a_message_that_is_too_large_is_so_at_every_server() -> None:
    code = StatusCode.RESOURCE_EXHAUSTED.value[0]
    assert not is_lost(error_of_code(code, "Received message larger than max (9 vs. 4)", "", ""))


@pytest.mark.parametrize(("code", "with_identity"), CASES)
def test_lost_calls_are_repeated_and_others_are_not(code: StatusCode, with_identity: bool) -> None:
    first = Ending(code=code, identity=IDENTITY if with_identity else "")
    is_repeated = code.name in LOST_CALL[with_identity]
    with FakeServer(first, Ending([INFO], identity=IDENTITY)) as server:
        with sap.connect(server.address) as client:
            if is_repeated:
                assert client.info().version == "0.2.0"
            else:
                with pytest.raises(sap.SapError, match="as told") as caught:
                    client.info()
                assert caught.value.server == first.identity
        assert len(server.requests) == 1 + is_repeated


@pytest.mark.parametrize("code", ["CANCELLED", "INTERNAL", "UNKNOWN", "ABORTED", "UNAVAILABLE"])
def test_lost_calls_are_repeated_by_asyncio(code: str) -> None:
    async def run(address: str) -> sap.ServerInfo:
        async with sap_islands.aio.connect(address) as client:
            return await client.info()

    with FakeServer(Ending(code=StatusCode[code]), Ending([INFO])) as server:
        assert asyncio.run(run(server.address)).version == "0.2.0"
        assert len(server.requests) == 2


def test_calls_are_not_repeated_without_time_to_reconnect() -> None:
    with (
        FakeServer(Ending(code=StatusCode.UNAVAILABLE)) as server,
        sap.connect(server.address, reconnect_within=0) as client,
    ):
        with pytest.raises(sap.Unavailable, match="as told"):
            client.info()
        assert len(server.requests) == 1


def test_deadline_of_a_call_is_that_of_all_attempts() -> None:
    with (
        FakeServer(Ending(code=StatusCode.UNAVAILABLE)) as server,
        sap.connect(server.address, reconnect_within=3600.0) as client,
        pytest.raises(sap.Unavailable, match="as told"),
    ):
        client.info(timeout=0.5)


@pytest.mark.parametrize("timeout", [0.0, -1.0])
def test_calls_without_time_are_not_sent(timeout: float) -> None:
    problem = balls_on_floor([0.1])
    with FakeServer(Ending()) as server, sap.connect(server.address) as client:
        for call in (
            lambda: client.info(timeout=timeout),
            lambda: client.solve(problem, timeout=timeout),
            lambda: client.solve_batch([problem], timeout=timeout),
            lambda: list(client.stream_batch([problem], timeout=timeout)),
        ):
            with pytest.raises(sap.DeadlineExceeded, match="deadline of the call has passed"):
                call()
        assert server.requests == []


def test_pauses_between_attempts_double_up_to_a_second() -> None:
    attempts = Attempts(3600.0)
    pauses = [attempts.next_pause() for _ in range(8)]
    assert pauses == [0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    attempts.note_progress()
    assert attempts.next_pause() == 0.0
    assert Attempts(0.0).next_pause() is None
    assert Attempts(3600.0, timeout=0.0).next_pause() is None


@pytest.mark.parametrize("code", ["CANCELLED", "INTERNAL", "UNKNOWN", "ABORTED", "UNAVAILABLE"])
@pytest.mark.parametrize("taken", [0, 2, 3])
def test_batch_stream_that_is_lost_goes_on_with_the_problems_without_outcome(
    client: sap.Client, code: str, taken: int
) -> None:
    problems = [balls_on_floor([0.1 * i]) for i in range(3)]
    outcomes = [_outcome(client, problems[i], i) for i in (2, 0, 1)]
    rest = sorted((2, 0, 1)[taken:])
    resent = [_outcome(client, problems[i], rest.index(i)) for i in reversed(rest)]
    endings = Ending(outcomes[:taken], StatusCode[code]), Ending(resent, identity=IDENTITY)
    expected = (2, 0, 1)[:taken] + tuple(reversed(rest))
    expected_requests = 1 if taken == 3 else 2

    with FakeServer(*endings) as server, sap.connect(server.address) as fleet:
        streamed = list(fleet.stream_batch(problems))
        requests = [request for _, request in server.requests]
    _check(streamed, expected, problems, client)
    assert len(requests) == expected_requests
    sent = service.StreamBatchRequest.FromString(requests[-1]).problems
    if taken < 3:
        assert [p.SerializeToString() for p in sent] == [_wire(problems[i]) for i in rest]

    async def run(address: str) -> list[tuple[int, sap.Solution | sap.SapError]]:
        async with sap_islands.aio.connect(address) as twin:
            return [outcome async for outcome in twin.stream_batch(problems)]

    with FakeServer(*endings) as server:
        _check(asyncio.run(run(server.address)), expected, problems, client)
        assert [request for _, request in server.requests] == requests


def test_batch_stream_without_all_outcomes_is_a_defect(client: sap.Client) -> None:
    problems = [balls_on_floor([0.1 * i]) for i in range(2)]
    outcome = _outcome(client, problems[0], 0)
    with (
        FakeServer(Ending([outcome], identity=IDENTITY), Ending([outcome, outcome])) as server,
        sap.connect(server.address) as fleet,
    ):
        with pytest.raises(sap.Internal, match="left 1 problems"):
            list(fleet.stream_batch(problems))
        with pytest.raises(sap.Internal, match="too many"):
            list(fleet.stream_batch(problems))


def _wire(problem: sap.Problem) -> bytes:
    return problem_pb2.ContactProblem.FromString(problem.to_bytes()).SerializeToString()


def _outcome(client: sap.Client, problem: sap.Problem, index: int) -> bytes:
    """A serialized StreamBatchResponse, told from others by the velocity."""
    response = service.StreamBatchResponse(index=index)
    solution = client.solve(problem)
    response.outcome.solution.velocity.extend(solution.velocity)
    return response.SerializeToString()


def _check(
    streamed: list[tuple[int, sap.Solution | sap.SapError]],
    indices: tuple[int, ...],
    problems: list[sap.Problem],
    client: sap.Client,
) -> None:
    assert tuple(index for index, _ in streamed) == indices
    for index, outcome in streamed:
        assert isinstance(outcome, sap.Solution)
        expected = client.solve(problems[index]).velocity
        assert outcome.velocity.tobytes() == expected.tobytes()


REFUSAL = (
    r"server 00000000000000bb is 0\.3\.0 x86-64, the first one was 0\.2\.0 x86-64-v3: bits may "
    "differ; set allow_mixed_servers"
)


def test_answer_of_another_build_is_refused() -> None:
    endings = [
        Ending([INFO], identity=identity) for identity in (IDENTITY, SAME_BUILD, OTHER_BUILD)
    ]
    with FakeServer(*endings) as server, sap.connect(server.address) as client:
        client.info()
        client.info()
        with pytest.raises(sap.FailedPrecondition, match=REFUSAL) as caught:
            client.info()
        assert caught.value.server == OTHER_BUILD
        assert len(server.requests) == 3

    async def run(address: str) -> None:
        async with sap_islands.aio.connect(address) as client:
            await client.info()
            await client.info()
            with pytest.raises(sap.FailedPrecondition, match=REFUSAL):
                await client.info()

    with FakeServer(*endings) as server:
        asyncio.run(run(server.address))


def test_session_at_another_build_is_refused() -> None:
    endings = (
        Ending([INFO], identity=IDENTITY),
        Ending([opened_session(OTHER_BUILD)], identity=OTHER_BUILD),
    )
    with FakeServer(*endings) as server, sap.connect(server.address) as client:
        client.info()
        with pytest.raises(sap.FailedPrecondition, match=REFUSAL):
            client.session()

    async def run(address: str) -> None:
        async with sap_islands.aio.connect(address) as client:
            await client.info()
            with pytest.raises(sap.FailedPrecondition, match=REFUSAL):
                await client.session()

    with FakeServer(*endings) as server:
        asyncio.run(run(server.address))


def test_batch_stream_of_another_build_is_refused(client: sap.Client) -> None:
    problem = balls_on_floor([0.0])
    outcome = _outcome(client, problem, 0)
    with (
        FakeServer(
            Ending([INFO], identity=IDENTITY), Ending([outcome], identity=OTHER_BUILD)
        ) as server,
        sap.connect(server.address) as fleet,
    ):
        fleet.info()
        with pytest.raises(sap.FailedPrecondition, match=REFUSAL):
            next(iter(fleet.stream_batch([problem])))


def test_servers_may_be_mixed_where_that_is_allowed() -> None:
    endings = [Ending([INFO], identity=identity) for identity in (IDENTITY, OTHER_BUILD)]
    session = Ending([opened_session(OTHER_BUILD)], identity=OTHER_BUILD)
    with (
        FakeServer(*endings, session) as server,
        sap.connect(server.address, allow_mixed_servers=True) as client,
    ):
        client.info()
        client.info()
        client.session().close()

    async def run(address: str) -> None:
        async with sap_islands.aio.connect(address, allow_mixed_servers=True) as client:
            await client.info()
            await client.info()
            await (await client.session()).close()

    with FakeServer(*endings, session) as server:
        asyncio.run(run(server.address))
