"""The part of a client that does no I/O, shared by the synchronous and the asyncio client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sap_islands import messages
from sap_islands.channel import Endpoint, Metadata, Tls, make_endpoint
from sap_islands.embedded import EmbeddedServer
from sap_islands.errors import InvalidArgument
from sap_islands.options import Options, Priority
from sap_islands.owner_process import OwnerProcess
from sap_islands.v1 import solver_service_pb2 as service

EMBEDDED = "embedded:"  # in this process
EMBEDDED_PROCESS = "embedded:process"  # in a server that the client owns
_HIGH_PRIORITY = ("sap-priority", "high")


@dataclass(frozen=True)
class ServerInfo:
    """Version, limits and hardware of a server.

    Attributes:
        version: For example "0.1.0".
        instruction_set: For example "x86-64-v3". Servers of equal version and instruction set
            return equal bits.
        processors: Logical processors of the machine.
        solver_threads: Threads that solve islands.
        limits: The fields of sap.v1.ServerLimits by name, for example "max_contacts" and
            "max_rows", with the type of each: a number, or bool for "high_priority". 0 or False for
            one that the server does not know.
    """

    version: str
    instruction_set: str
    processors: int
    solver_threads: int
    limits: dict[str, float]


def parse_info(data: bytes) -> ServerInfo:
    """Decodes a serialized sap.v1.GetServerInfoResponse."""
    message = service.GetServerInfoResponse.FromString(data)
    names = service.ServerLimits.DESCRIPTOR.fields_by_name
    return ServerInfo(
        version=message.version,
        instruction_set=message.instruction_set,
        processors=message.processors,
        solver_threads=message.solver_threads,
        limits={name: getattr(message.limits, name) for name in names},
    )


def check_embedded(address: str, threads: int | None, server_arguments: Sequence[str]) -> bool:
    """Whether the address is that of the solver in this process.

    Raises:
        InvalidArgument: An argument is for another kind of address.
    """
    if server_arguments and address != EMBEDDED_PROCESS:
        message = f"server_arguments need the address {EMBEDDED_PROCESS!r}; it is {address!r}"
        raise InvalidArgument(message, "server_arguments")
    if threads is not None and address != EMBEDDED:
        message = f"threads needs the address {EMBEDDED!r}; it is {address!r}"
        raise InvalidArgument(message, "threads")
    return address == EMBEDDED


def resolve_address(
    address: str, tls: Tls | bool, token: str | None, retry: bool, server_arguments: Sequence[str]
) -> tuple[Endpoint, EmbeddedServer | None]:
    """The endpoint of an address; for "embedded:process" it starts a server and returns it too."""
    if address == EMBEDDED_PROCESS:
        server = EmbeddedServer(server_arguments)
        return make_endpoint(server.address, tls, token, retry), server
    return make_endpoint(address, tls, token, retry), None


class ClientBase:
    """A channel to a server, and the server if it is embedded."""

    def __init__(self, endpoint: Endpoint, server: EmbeddedServer | None, library: Any) -> None:
        """Opens a channel with `library`, which is `grpc` or `grpc.aio`."""
        self._owner = OwnerProcess()
        self._server = server
        self._endpoint = endpoint
        self._channel = endpoint.open(library)
        self._methods = messages.Stub(self._channel)

    @property
    def address(self) -> str:
        """Address of the server; of an embedded one, its Unix socket."""
        return self._endpoint.target

    @property
    def _stub(self) -> messages.Stub:
        """The methods of the service.

        Raises:
            RuntimeError: Another process made the client.
        """
        self._owner.check("client")
        return self._methods

    def _metadata(self, options: Options | None) -> Metadata:
        """Headers of a call, with its priority: admission is decided before the message is read."""
        metadata = self._endpoint.metadata
        if options is not None and options.priority is Priority.HIGH:
            return (*metadata, _HIGH_PRIORITY)
        return metadata
