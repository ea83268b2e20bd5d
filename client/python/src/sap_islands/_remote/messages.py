"""Serializes requests and parses responses, for the synchronous and the asyncio client."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from google.protobuf import field_mask_pb2

from sap_islands._arrays import wire_format
from sap_islands.derivatives import Derivatives, DifferentiateRequest
from sap_islands.errors import Internal, SapError, error_of_failure
from sap_islands.options import Options, serialize
from sap_islands.problem import Problem
from sap_islands.session import StepOutcome
from sap_islands.solution import Solution
from sap_islands.v1 import solver_service_pb2 as service

SERVICE = "/" + service.DESCRIPTOR.services_by_name["SolverService"].full_name + "/"


class Stub:
    """The methods of the service on a channel of `grpc` or `grpc.aio`.

    They are made without serializers, so that gRPC takes and returns bytes.
    """

    def __init__(self, channel: Any) -> None:
        self.solve = channel.unary_unary(SERVICE + "Solve")
        self.solve_batch = channel.unary_unary(SERVICE + "SolveBatch")
        self.info = channel.unary_unary(SERVICE + "GetServerInfo")
        self.differentiate = channel.unary_unary(SERVICE + "Differentiate")
        self.differentiate_batch = channel.unary_unary(SERVICE + "DifferentiateBatch")
        self.stream_batch = channel.unary_stream(SERVICE + "StreamBatch")
        self.solve_session = channel.stream_stream(SERVICE + "SolveSession")


def _tag(message: Any, field: str) -> bytes:
    return wire_format.length_tag(message.DESCRIPTOR, field)


def _number(message: Any, field: str) -> int:
    return int(message.DESCRIPTOR.fields_by_name[field].number)


_REQUEST_PROBLEM = _tag(service.SolveRequest, "problem")
_REQUEST_OPTIONS = _tag(service.SolveRequest, "options")
_BATCH_PROBLEMS = _tag(service.SolveBatchRequest, "problems")
_BATCH_OPTIONS = _tag(service.SolveBatchRequest, "options")
_SESSION_STEP = _tag(service.SolveSessionRequest, "step")
_STEP_ID = wire_format.varint(_number(service.SessionStep, "step_id") << 3 | wire_format.VARINT)
_STEP_PROBLEM = _tag(service.SessionStep, "problem")
_STEP_OPTIONS = _tag(service.SessionStep, "options")

_DIFFERENTIATE_PROBLEM = _tag(service.DifferentiateRequest, "problem")
_DIFFERENTIATE_OPTIONS = _tag(service.DifferentiateRequest, "options")
_DIFFERENTIATE_VELOCITY = _tag(service.DifferentiateRequest, "velocity")
_DIFFERENTIATE_COTANGENTS = _tag(service.DifferentiateRequest, "cotangents")
_DIFFERENTIATE_TANGENTS = _tag(service.DifferentiateRequest, "tangents")
_DIFFERENTIATE_BATCH_REQUESTS = _tag(service.DifferentiateBatchRequest, "requests")

_RESPONSE_SOLUTION = _number(service.SolveResponse, "solution")
_BATCH_PROBLEM = _number(service.StreamBatchRequest, "problems")
_BATCH_OUTCOMES = _number(service.SolveBatchResponse, "outcomes")
_INDEXED_INDEX = _number(service.StreamBatchResponse, "index")
_INDEXED_OUTCOME = _number(service.StreamBatchResponse, "outcome")
_OUTCOME_SOLUTION = _number(service.Outcome, "solution")
_OUTCOME_FAILURE = _number(service.Outcome, "failure")
_DIFFERENTIATE_BATCH_OUTCOMES = _number(service.DifferentiateBatchResponse, "outcomes")
_OUTCOME_DERIVATIVES = _number(service.DifferentiateOutcome, "derivatives")
_DIFFERENTIATE_OUTCOME_FAILURE = _number(service.DifferentiateOutcome, "failure")
_SESSION_OUTCOME = _number(service.SolveSessionResponse, "step")
_SESSION_DRAINING = _number(service.SolveSessionResponse, "draining")
_OUTCOME_STEP_ID = _number(service.StepOutcome, "step_id")
_OUTCOME_OUTCOME = _number(service.StepOutcome, "outcome")
_OUTCOME_WARM = _number(service.StepOutcome, "warm_started")

# StreamBatch takes the same message as SolveBatch.
assert _tag(service.StreamBatchRequest, "problems") == _BATCH_PROBLEMS
assert _tag(service.StreamBatchRequest, "options") == _BATCH_OPTIONS


class Opened(NamedTuple):
    """A server has opened a session.

    Attributes:
        max_in_flight: Most steps that may be in flight, at least 1.
        draining: Whether the server is about to shut down.
        server: Its identity; see `server_identity`.
    """

    max_in_flight: int
    draining: bool
    server: str


def _options_parts(tag: bytes, options: Options | None) -> tuple[wire_format.Parts, int]:
    serialized = serialize(options) if options is not None else b""
    return wire_format.wrap(tag, [serialized], len(serialized)) if serialized else ([], 0)


def solve_request(problem: Problem, options: Options | None) -> bytes:
    """A serialized sap.v1.SolveRequest."""
    parts, _ = wire_format.wrap(_REQUEST_PROBLEM, *problem.encode())
    return b"".join(parts + _options_parts(_REQUEST_OPTIONS, options)[0])


def batch_request(problems: Iterable[Problem], options: Options | None) -> bytes:
    """A serialized sap.v1.SolveBatchRequest or sap.v1.StreamBatchRequest."""
    parts: wire_format.Parts = []
    for problem in problems:
        parts += wire_format.wrap(_BATCH_PROBLEMS, *problem.encode())[0]
    return b"".join(parts + _options_parts(_BATCH_OPTIONS, options)[0])


def part_of_batch(request: bytes, indices: Collection[int]) -> bytes:
    """The serialized sap.v1.StreamBatchRequest with the problems of these indices only."""
    view = memoryview(request)
    kept: list[memoryview] = []
    start = index = 0
    for number, _, _, end in wire_format.scan(request, 0, len(request)):
        if number != _BATCH_PROBLEM or index in indices:
            kept.append(view[start:end])
        index += number == _BATCH_PROBLEM
        start = end
    return b"".join(kept)


def differentiate_request(request: DifferentiateRequest) -> bytes:
    """A serialized sap.v1.DifferentiateRequest."""
    problem = request.problem
    parts, _ = wire_format.wrap(_DIFFERENTIATE_PROBLEM, *problem.encode())
    parts += _options_parts(_DIFFERENTIATE_OPTIONS, request.options)[0]
    if request.velocity.size:
        velocity = request.velocity
        parts += wire_format.wrap(_DIFFERENTIATE_VELOCITY, [velocity], velocity.nbytes)[0]
    for cotangent in request.cotangents:
        serialized = cotangent.to_bytes()
        parts += wire_format.wrap(_DIFFERENTIATE_COTANGENTS, [serialized], len(serialized))[0]
    for tangent in request.tangents:
        parts += wire_format.wrap(_DIFFERENTIATE_TANGENTS, *tangent.encode(problem))[0]
    rest = service.DifferentiateRequest(hold_delassus=request.hold_delassus)
    if request.wanted:
        rest.wanted.CopyFrom(field_mask_pb2.FieldMask(paths=request.wanted))
    return b"".join([*parts, rest.SerializeToString()])


def differentiate_batch_request(
    requests: Iterable[DifferentiateRequest], time_budget: float | None
) -> bytes:
    """A serialized sap.v1.DifferentiateBatchRequest."""
    parts: wire_format.Parts = []
    for request in requests:
        serialized = differentiate_request(request)
        parts += wire_format.wrap(_DIFFERENTIATE_BATCH_REQUESTS, [serialized], len(serialized))[0]
    rest = service.DifferentiateBatchRequest()
    if time_budget is not None:
        rest.time_budget.FromNanoseconds(round(1e9 * time_budget))
    return b"".join([*parts, rest.SerializeToString()])


def open_request(options: Options | None, low_latency: bool) -> bytes:
    """A serialized sap.v1.SolveSessionRequest that opens the session."""
    request = service.SolveSessionRequest()
    request.open.low_latency = low_latency
    request.open.SetInParent()
    if options is not None:
        request.open.options.ParseFromString(serialize(options))
    return request.SerializeToString()


def step_request(step_id: int, problem: Problem, options: Options | None) -> bytes:
    """A serialized sap.v1.SolveSessionRequest with a step."""
    number = _STEP_ID + wire_format.varint(step_id)
    problem_parts, problem_size = wire_format.wrap(_STEP_PROBLEM, *problem.encode())
    options_parts, options_size = _options_parts(_STEP_OPTIONS, options)
    size = len(number) + problem_size + options_size
    parts, _ = wire_format.wrap(_SESSION_STEP, [number, *problem_parts, *options_parts], size)
    return b"".join(parts)


def solution_of_response(data: bytes) -> Solution:
    """The solution in a serialized sap.v1.SolveResponse.

    Raises:
        Internal: There is none.
    """
    for number, _, start, end in wire_format.scan(data, 0, len(data)):
        if number == _RESPONSE_SOLUTION:
            return Solution(data, start, end)
    raise Internal("the server's response has no solution")


def outcomes_of_response(data: bytes) -> list[Solution | SapError]:
    """The outcomes in a serialized sap.v1.SolveBatchResponse, in the order of the problems."""
    return [
        _outcome(data, start, end)
        for number, _, start, end in wire_format.scan(data, 0, len(data))
        if number == _BATCH_OUTCOMES
    ]


def derivatives_of_response(data: bytes) -> Derivatives:
    """The derivatives in a serialized sap.v1.DifferentiateResponse."""
    return Derivatives.decode(data, 0, len(data))


def derivatives_of_batch(data: bytes) -> list[Derivatives | SapError]:
    """The outcomes in a serialized sap.v1.DifferentiateBatchResponse, in order."""
    return [
        _derivatives_outcome(data, start, end)
        for number, _, start, end in wire_format.scan(data, 0, len(data))
        if number == _DIFFERENTIATE_BATCH_OUTCOMES
    ]


def _derivatives_outcome(data: bytes, start: int, end: int) -> Derivatives | SapError:
    for number, _, first, last in wire_format.scan(data, start, end):
        if number == _OUTCOME_DERIVATIVES:
            return Derivatives.decode(data, first, last)
        if number == _DIFFERENTIATE_OUTCOME_FAILURE:
            return error_of_failure(service.Failure.FromString(data[first:last]))
    return Internal("the server's response has an empty outcome")


def indexed_outcome(data: bytes) -> tuple[int, Solution | SapError]:
    """Index of the problem and outcome in a serialized sap.v1.StreamBatchResponse."""
    index = 0
    outcome: Solution | SapError = Internal("the server's response has no outcome")
    for number, _, start, end in wire_format.scan(data, 0, len(data)):
        if number == _INDEXED_INDEX:
            index = start
        elif number == _INDEXED_OUTCOME:
            outcome = _outcome(data, start, end)
    return index, outcome


def session_opened(data: bytes) -> Opened:
    """What the first serialized sap.v1.SolveSessionResponse of a stream says.

    Raises:
        Internal: The response does not open the session.
    """
    response = service.SolveSessionResponse.FromString(data)
    if not response.HasField("opened"):
        raise Internal("the server's first response does not open the session")
    opened = response.opened
    return Opened(max(1, opened.max_steps_in_flight), response.draining, opened.server)


def step_outcome(data: bytes) -> tuple[StepOutcome, bool]:
    """The outcome in a serialized sap.v1.SolveSessionResponse, and whether the server is draining.

    Raises:
        Internal: There is none.
    """
    outcome = None
    draining = False
    for number, _, start, end in wire_format.scan(data, 0, len(data)):
        if number == _SESSION_OUTCOME:
            outcome = _step_outcome(data, start, end)
        elif number == _SESSION_DRAINING:
            draining = bool(start)
    if outcome is None:
        raise Internal("the server's response has no outcome of a step")
    return outcome, draining


def _step_outcome(data: bytes, start: int, end: int) -> StepOutcome:
    step_id = warm_started = 0
    outcome: Solution | SapError = Internal("the server's response has no outcome")
    for number, _, first, last in wire_format.scan(data, start, end):
        if number == _OUTCOME_STEP_ID:
            step_id = first
        elif number == _OUTCOME_OUTCOME:
            outcome = _outcome(data, first, last)
        elif number == _OUTCOME_WARM:
            warm_started = first
    return StepOutcome(step_id, outcome, bool(warm_started))


def _outcome(data: bytes, start: int, end: int) -> Solution | SapError:
    for number, _, first, last in wire_format.scan(data, start, end):
        if number == _OUTCOME_SOLUTION:
            return Solution(data, first, last)
        if number == _OUTCOME_FAILURE:
            return error_of_failure(service.Failure.FromString(data[first:last]))
    return Internal("the server's response has an empty outcome")
