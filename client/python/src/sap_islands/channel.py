"""Makes the gRPC channel for an address: TCP or Unix socket, TLS, bearer token, retries."""

from __future__ import annotations

import ipaddress
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import grpc

from sap_islands.errors import InvalidArgument
from sap_islands.owner_process import check_grpc_works

Metadata: TypeAlias = tuple[tuple[str, str], ...]

# All calls are idempotent, so an unanswered one may be repeated.
_RETRIES = {
    "methodConfig": [
        {
            "name": [
                {"service": "sap.v1.SolverService", "method": method}
                for method in (
                    "Solve",
                    "SolveBatch",
                    "Differentiate",
                    "DifferentiateBatch",
                    "GetServerInfo",
                )
            ],
            "retryPolicy": {
                "maxAttempts": 5,
                "initialBackoff": "0.1s",
                "maxBackoff": "2s",
                "backoffMultiplier": 3,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }
    ]
}
_NO_MESSAGE_LIMIT = -1  # the server enforces its own limit and names it in the error

_OPTIONS: tuple[tuple[str, Any], ...] = (
    ("grpc.max_send_message_length", _NO_MESSAGE_LIMIT),
    ("grpc.max_receive_message_length", _NO_MESSAGE_LIMIT),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2000),
    ("grpc.keepalive_time_ms", 600_000),
)
# Calls with larger requests are sent once: gRPC retries only what fits in this buffer.
_RETRY_BUFFER_BYTES = 256 << 20


@dataclass(frozen=True)
class Tls:
    """TLS settings. Certificates and keys are PEM, as bytes or as the path of a file.

    Attributes:
        root_certificates: Trusted authorities; None: those that gRPC ships with.
        certificate_chain: The client's certificate, for servers that require one.
        private_key: The private key of `certificate_chain`.
        server_name: Name expected in the server's certificate; None: the host of the address.
    """

    root_certificates: bytes | str | Path | None = None
    certificate_chain: bytes | str | Path | None = None
    private_key: bytes | str | Path | None = None
    server_name: str | None = None


@dataclass(frozen=True)
class Endpoint:
    """All that is needed to open a channel: target, channel options, credentials, metadata."""

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


def make_endpoint(
    address: str, tls: Tls | bool = False, token: str | None = None, retry: bool = True
) -> Endpoint:
    """The endpoint of an address, "HOST:PORT" or "unix:PATH".

    Raises:
        InvalidArgument: The address is malformed, a certificate cannot be read, or a token would
            be sent to another machine without TLS.
    """
    options = list(_OPTIONS)
    if retry:
        options.append(("grpc.service_config", json.dumps(_RETRIES)))
        options.append(("grpc.per_rpc_retry_buffer_size", _RETRY_BUFFER_BYTES))
    else:
        options.append(("grpc.enable_retries", 0))
    credentials = None
    if tls:
        tls = Tls() if tls is True else tls
        credentials = grpc.ssl_channel_credentials(
            _read(tls.root_certificates), _read(tls.private_key), _read(tls.certificate_chain)
        )
        if tls.server_name is not None:
            options.append(("grpc.ssl_target_name_override", tls.server_name))
    metadata: Metadata = ()
    if token is not None:
        if not tls and not _is_local(address):
            message = f"token would be sent to {address} in clear text; connect with tls"
            raise InvalidArgument(message, "token")
        metadata = (("authorization", f"Bearer {token}"),)
    return Endpoint(_target(address), tuple(options), credentials, metadata)


def _target(address: str) -> str:
    if address.startswith("unix:"):
        if address == "unix:":
            raise InvalidArgument(
                f"address {address!r} has no path; it must be unix:PATH", "address"
            )
        return address
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        message = (
            f"address is {address!r}; it must be HOST:PORT, unix:PATH, embedded: or "
            "embedded:process"
        )
        raise InvalidArgument(message, "address")
    return address


def _is_local(address: str) -> bool:
    if address.startswith("unix:"):
        return True
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _read(source: bytes | str | Path | None) -> bytes | None:
    if source is None or isinstance(source, bytes):
        return source
    try:
        return Path(os.path.expanduser(source)).read_bytes()
    except OSError as error:
        raise InvalidArgument(f"tls: {source}: {error.strerror}", "tls") from error
