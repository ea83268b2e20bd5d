"""Spans that a server sends to a collector, read by OpenTelemetry's own messages."""

from __future__ import annotations

import queue
import struct
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest
import sap_islands as sap
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from sap_islands.binaries import find_server

from fleet import PATIENCE_S, Process, box_on_floor, free_port, status_of, wait_until

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"
SAMPLED = f"00-{TRACE}-{PARENT}-01"
OK, INVALID_ARGUMENT = 0, 3


class Collector:
    """Keeps what it is sent."""

    def __init__(self) -> None:
        self._batches: queue.Queue[service.ExportTraceServiceRequest] = queue.Queue()
        self._spans: list[Span] = []
        self.resources: list[Resource] = []
        self._server = grpc.server(futures.ThreadPoolExecutor(2))
        name = service.DESCRIPTOR.services_by_name["TraceService"].full_name
        export = grpc.unary_unary_rpc_method_handler(
            self._export, service.ExportTraceServiceRequest.FromString, bytes
        )
        handler = grpc.method_handlers_generic_handler(name, {"Export": export})
        self._server.add_generic_rpc_handlers((handler,))
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def _export(
        self, request: service.ExportTraceServiceRequest, context: grpc.ServicerContext
    ) -> bytes:
        del context
        self._batches.put(request)
        return b""  # an answer without fields

    def take(self, count: int) -> list[Span]:
        """The next spans, those of calls first, then by their beginnings."""
        while len(self._spans) < count:
            for of_resource in self._batches.get(timeout=PATIENCE_S).resource_spans:
                self.resources.append(of_resource.resource)
                for of_scope in of_resource.scope_spans:
                    self._spans.extend(of_scope.spans)
        taken, self._spans = self._spans[:count], self._spans[count:]
        return sorted(taken, key=lambda span: (-span.kind, span.start_time_unix_nano))

    def stop(self) -> None:
        self._server.stop(None)


class TracedServer(Process):
    """A server on a Unix socket that sends its spans to a collector."""

    def __init__(self, directory: Path, collector: str, flags: Sequence[str] = ()) -> None:
        self.address = f"unix:{directory / 'socket'}"
        self.metrics = f"http://127.0.0.1:{free_port()}"
        listen = self.metrics.removeprefix("http://")
        super().__init__(
            [
                find_server(),
                f"--listen={self.address}",
                f"--metrics-listen={listen}",
                f"--otlp-collector={collector}",
                *flags,
            ]
        )
        wait_until(lambda: status_of(self.metrics + "/ready") == 200, "the server is ready")


@pytest.fixture
def collector() -> Iterator[Collector]:
    it = Collector()
    yield it
    it.stop()


def message_of(problem: sap.Problem, directory: Path) -> bytes:
    path = directory / "problem.binpb"
    sap.save_problem(problem, path)
    return path.read_bytes()


def varint(number: int) -> bytes:
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def part(number: int, content: bytes) -> bytes:
    """A field of a message that is a message."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def call(address: str, method: str, request: bytes, traceparent: str) -> grpc.StatusCode:
    """The status of a call by a stock client."""
    with grpc.insecure_channel(address) as channel:
        stub: Any = channel.unary_unary(f"/sap.v1.SolverService/{method}")
        try:
            stub(request, timeout=PATIENCE_S, metadata=[("traceparent", traceparent)])
        except grpc.RpcError as error:
            return error.code()
    return grpc.StatusCode.OK


def text_of(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())


def facts(span: Span) -> dict[str, str | int]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


def check_within(outer: Span, inner: Sequence[Span]) -> None:
    """Phases belong to the call and run within it."""
    for span in inner:
        assert span.trace_id == outer.trace_id == bytes.fromhex(TRACE)
        assert span.parent_span_id == outer.span_id
        assert span.kind == Span.SPAN_KIND_INTERNAL
        assert span.start_time_unix_nano <= span.end_time_unix_nano
        assert span.end_time_unix_nano <= outer.end_time_unix_nano
    assert len({outer.span_id, *(span.span_id for span in inner)}) == 1 + len(inner)


def test_a_sampled_call_has_a_span_below_its_clients_and_one_for_each_phase(
    collector: Collector, tmp_path: Path
) -> None:
    problem = part(1, message_of(box_on_floor(), tmp_path))
    with TracedServer(tmp_path, collector.address) as server:
        assert call(server.address, "Solve", problem, SAMPLED) == grpc.StatusCode.OK
        outer, *phases = collector.take(4)
    assert outer.name == "sap.v1.SolverService/Solve"
    assert outer.parent_span_id.hex() == PARENT
    assert outer.kind == Span.SPAN_KIND_SERVER
    assert [span.name for span in phases] == ["decode", "solve", "encode"]
    check_within(outer, phases)
    assert facts(outer).items() >= {
        ("rpc.system", "grpc"),
        ("rpc.service", "sap.v1.SolverService"),
        ("rpc.method", "Solve"),
        ("rpc.grpc.status_code", OK),
        ("sap.request_bytes", len(problem)),
    }
    (resource,) = collector.resources
    names = {each.key: each.value.string_value for each in resource.attributes}
    assert names["service.name"] == "sap-server"
    assert names["service.version"] == sap.__version__


def test_a_problem_that_waits_has_a_span_of_the_queue(collector: Collector, tmp_path: Path) -> None:
    problem = part(1, message_of(box_on_floor(), tmp_path))
    with TracedServer(tmp_path, collector.address, ["--inline-below-us=0"]) as server:
        assert call(server.address, "Solve", problem, SAMPLED) == grpc.StatusCode.OK
        outer, *phases = collector.take(5)
    assert {span.name for span in phases} == {"queue", "decode", "solve", "encode"}
    check_within(outer, phases)


def test_each_problem_of_a_batch_has_its_phases(collector: Collector, tmp_path: Path) -> None:
    problem = part(1, message_of(box_on_floor(), tmp_path))
    with TracedServer(tmp_path, collector.address) as server:
        assert call(server.address, "SolveBatch", 3 * problem, SAMPLED) == grpc.StatusCode.OK
        outer, *phases = collector.take(13)
    check_within(outer, phases)
    names = [span.name for span in phases]
    assert {name: names.count(name) for name in names} == {
        "queue": 3, "decode": 3, "solve": 3, "encode": 3
    }  # fmt: skip


def test_each_step_of_a_session_has_a_span(collector: Collector, tmp_path: Path) -> None:
    problem = message_of(box_on_floor(), tmp_path)
    # open = 1; step = 2 { step_id = 1, problem = 2 }
    steps = [part(2, b"\x08" + varint(number) + part(2, problem)) for number in (7, 8)]
    with TracedServer(tmp_path, collector.address) as server:
        with grpc.insecure_channel(server.address) as channel:
            stub: Any = channel.stream_stream("/sap.v1.SolverService/SolveSession")
            sent = iter([part(1, b""), *steps])
            answers = list(stub(sent, timeout=PATIENCE_S, metadata=[("traceparent", SAMPLED)]))
        assert len(answers) == 3
        spans = collector.take(9)
    ended = [span for span in spans if span.kind == Span.SPAN_KIND_SERVER]
    assert {span.name for span in ended} == {
        "sap.v1.SolverService/SolveSession",
        "sap.v1.SolverService/SolveSession step",
    }
    of_steps = [span for span in ended if span.name.endswith("step")]
    assert [facts(span)["sap.step_id"] for span in of_steps] == [7, 8]
    for step in of_steps:
        assert step.parent_span_id.hex() == PARENT
        phases = [span for span in spans if span.parent_span_id == step.span_id]
        assert [span.name for span in phases] == ["decode", "solve", "encode"]
        check_within(step, phases)


def test_a_failed_call_tells_its_code_and_one_that_is_not_sampled_is_not_sent(
    collector: Collector, tmp_path: Path
) -> None:
    problem = part(1, message_of(box_on_floor(), tmp_path))
    with TracedServer(tmp_path, collector.address) as server:
        for traceparent in (SAMPLED[:-1] + "0", "nonsense"):
            assert call(server.address, "Solve", problem, traceparent) == grpc.StatusCode.OK
        wrong = part(1, struct.pack("<Bd", 9, -1.0))  # a time step of -1 s
        assert call(server.address, "Solve", wrong, SAMPLED) == grpc.StatusCode.INVALID_ARGUMENT
        (span,) = collector.take(1)
    assert facts(span)["rpc.grpc.status_code"] == INVALID_ARGUMENT
    assert facts(span)["rpc.method"] == "Solve"


def test_calls_are_answered_without_a_collector_and_lost_spans_are_counted(tmp_path: Path) -> None:
    problem = part(1, message_of(box_on_floor(), tmp_path))
    with TracedServer(tmp_path, f"unix:{tmp_path / 'nobody'}") as server:
        assert call(server.address, "Solve", problem, SAMPLED) == grpc.StatusCode.OK
        lost = 'sap_trace_spans_total{taken="no"} 4'
        wait_until(lambda: lost in text_of(server.metrics + "/metrics"), "the spans are counted")
