"""A gRPC server whose statuses and identities a test chooses, in place of sap-server."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent import futures
from dataclasses import dataclass, field
from typing import Any

import grpc
from sap_islands.v1 import solver_service_pb2 as service


@dataclass
class Ending:
    """How a call ends.

    Attributes:
        responses: Sent before the end.
        code: Its status.
        identity: The server's, in the trailing metadata, of StreamBatch also in the initial ones;
            empty: none, as of a lost connection.
    """

    responses: list[bytes] = field(default_factory=list)
    code: grpc.StatusCode = grpc.StatusCode.OK
    identity: str = ""


def opened_session(identity: str) -> bytes:
    """A serialized SolveSessionResponse that opens a session."""
    response = service.SolveSessionResponse()
    response.opened.max_steps_in_flight = 8
    response.opened.server = identity
    return response.SerializeToString()


class FakeServer(grpc.GenericRpcHandler):
    """Ends its calls as told: the first ones by `endings`, one each, the others by the last.

    Attributes:
        address: Where it listens.
        requests: Method and first request of each call.
    """

    def __init__(self, *endings: Ending) -> None:
        self.requests: list[tuple[str, bytes]] = []
        self._endings = endings
        self._server = grpc.server(futures.ThreadPoolExecutor(8), handlers=[self])
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def __enter__(self) -> FakeServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(0).wait()

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        method = details.method.rpartition("/")[2]
        if "sap.v1" not in details.method:
            return None  # no health service: gRPC takes the server for healthy

        def stream(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
            self.requests.append((method, next(requests)))
            ending = self._endings[min(len(self.requests), len(self._endings)) - 1]
            if ending.identity and method == "StreamBatch":
                context.send_initial_metadata((("sap-server", ending.identity),))
            yield from ending.responses
            if ending.identity:
                context.set_trailing_metadata((("sap-server", ending.identity),))
            if ending.code is not grpc.StatusCode.OK:
                context.abort(ending.code, "as told")

        # Over the wire a single message is a stream of one.
        return grpc.stream_stream_rpc_method_handler(stream)
