"""Makes the gRPC channel for an address: policy for several servers, TLS, bearer token."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import grpc

from sap_islands._process.owner_process import check_grpc_works
from sap_islands._remote.address import Address, parse_address, resolve
from sap_islands.errors import InvalidArgument

Metadata: TypeAlias = tuple[tuple[str, str], ...]

# Calls and sessions take turns over the servers whose health service says that they serve.
_TURNS = {
    "loadBalancingConfig": [{"round_robin": {}}],
    "healthCheckConfig": {"serviceName": "sap.v1.SolverService"},
}
_NO_MESSAGE_LIMIT = -1  # the server enforces its own limit and names it in the error

_OPTIONS: tuple[tuple[str, Any], ...] = (
    ("grpc.max_send_message_length", _NO_MESSAGE_LIMIT),
    ("grpc.max_receive_message_length", _NO_MESSAGE_LIMIT),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1000),  # how long one attempt to connect may take
    ("grpc.max_reconnect_backoff_ms", 2000),
    ("grpc.keepalive_time_ms", 600_000),
    # 30 s by default, in which a fleet that has moved would not be found.
    ("grpc.dns_min_time_between_resolutions_ms", 2000),
)


@dataclass(frozen=True)
class Tls:
    """TLS settings. Certificates and keys are PEM, as bytes or as the path of a file.

    Attributes:
        root_certificates: Trusted authorities; None: those that gRPC ships with.
        certificate_chain: The client's certificate, for servers that require one.
        private_key: The private key of `certificate_chain`.
        server_name: Name expected in the servers' certificates; None: the host of the address. A
            list of several hosts needs it.
    """

    root_certificates: bytes | str | Path | None = None
    certificate_chain: bytes | str | Path | None = None
    private_key: bytes | str | Path | None = None
    server_name: str | None = None


@dataclass(frozen=True)
class Endpoint:
    """All that is needed to open a channel: target, channel options, credentials, metadata."""

    address: str
    target: str
    options: tuple[tuple[str, Any], ...]
    credentials: grpc.ChannelCredentials | None
    metadata: Metadata

    def open(self, library: Any) -> Any:
        """Opens a channel with `library`, which is `grpc` or `grpc.aio`.

        Raises:
            RuntimeError: gRPC does not work in this process, since it ran before the fork.
        """
        check_grpc_works()
        if self.credentials is None:
            return library.insecure_channel(self.target, self.options)
        return library.secure_channel(self.target, self.credentials, self.options)


def make_endpoint(address: str, tls: Tls | bool = False, token: str | None = None) -> Endpoint:
    """The endpoint of an address in one of the forms of `sap_islands._remote.address`.

    Raises:
        InvalidArgument: The address is malformed, a certificate cannot be read, TLS has no name to
            expect, or a token would be sent to another machine without TLS.
        Unavailable: A host name in a list is unknown.
    """
    parsed = parse_address(address)
    options = list(_OPTIONS)
    if parsed.is_shared:
        options.append(("grpc.service_config", json.dumps(_TURNS)))
    credentials = None
    if tls:
        tls = Tls() if tls is True else tls
        credentials = grpc.ssl_channel_credentials(
            _read(tls.root_certificates), _read(tls.private_key), _read(tls.certificate_chain)
        )
        if tls.server_name is not None:
            options.append(("grpc.ssl_target_name_override", tls.server_name))
    if not parsed.target:
        options.append(("grpc.default_authority", _authority(parsed, tls)))
    metadata: Metadata = ()
    if token is not None:
        if not tls and not parsed.is_local:
            message = f"token would be sent to {address} in clear text; connect with tls"
            raise InvalidArgument(message, "token")
        metadata = (("authorization", f"Bearer {token}"),)
    return Endpoint(address, resolve(parsed), tuple(options), credentials, metadata)


def _authority(servers: Address, tls: Tls | bool) -> str:
    """What calls to a list name as their server; under TLS, the name in the certificates."""
    if not isinstance(tls, Tls):
        return servers.text.partition(",")[0]
    name = tls.server_name or servers.common_host
    if name is None:
        message = f"tls.server_name is needed, since the hosts of {servers.text} differ"
        raise InvalidArgument(message, "tls.server_name")
    return name


def _read(source: bytes | str | Path | None) -> bytes | None:
    if source is None or isinstance(source, bytes):
        return source
    try:
        return Path(os.path.expanduser(source)).read_bytes()
    except OSError as error:
        raise InvalidArgument(f"tls: {source}: {error.strerror}", "tls") from error
