"""Makes the client of an address, for `connect` of both faces."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from sap_islands._library.c_library import load
from sap_islands._library.c_requests import ConnectSettings, check_reconnect_within
from sap_islands._library.native_client import EMBEDDED, NativeClient
from sap_islands._process.embedded_server import EmbeddedServer
from sap_islands.binaries import find_c_library, find_client_library
from sap_islands.errors import InvalidArgument
from sap_islands.tls import Tls

EMBEDDED_PROCESS = "embedded:process"  # a server that the client owns

_MAX_THREADS = 1024
_MAX_SCENE_CONNECTIONS = 64
_PEM = b"-----BEGIN"


def open_client(
    address: str,
    tls: Tls | bool,
    token: str | None,
    reconnect_within: float,
    allow_mixed_servers: bool,
    server_arguments: Sequence[str],
    threads: int | None,
    scene_connections: int,
) -> tuple[NativeClient, EmbeddedServer | None]:
    """The client of an address, and the server that it owns if it does; see `connect`."""
    if not isinstance(address, str):
        message = f"address is {address!r}; a string such as {EMBEDDED!r} or 'HOST:PORT' is needed"
        raise InvalidArgument(message, "address")
    if not isinstance(tls, (bool, Tls)):
        raise InvalidArgument(f"tls is {tls!r}; it must be True, False or a Tls", "tls")
    check_reconnect_within(reconnect_within)
    if server_arguments and address != EMBEDDED_PROCESS:
        message = f"server_arguments need the address {EMBEDDED_PROCESS!r}; it is {address!r}"
        raise InvalidArgument(message, "server_arguments")
    if threads is not None and address != EMBEDDED:
        message = f"threads needs the address {EMBEDDED!r}; it is {address!r}"
        raise InvalidArgument(message, "threads")
    if scene_connections not in range(1, _MAX_SCENE_CONNECTIONS + 1):
        message = (
            f"scene_connections is {scene_connections!r}; "
            f"it must be an integer in [1, {_MAX_SCENE_CONNECTIONS}]"
        )
        raise InvalidArgument(message, "scene_connections")
    if address == EMBEDDED:
        return embedded_client(threads), None
    server = EmbeddedServer(server_arguments) if address == EMBEDDED_PROCESS else None
    client = remote_client(
        address if server is None else server.address,
        reconnect_within,
        allow_mixed_servers,
        scene_connections=int(scene_connections),
        **_credentials(tls, token),
    )
    return client, server


def embedded_client(threads: int | None) -> NativeClient:
    """A client of the solver in this process.

    Args:
        threads: That work on one problem; None: as many as the process may use.

    Raises:
        InvalidArgument: The number of threads is out of range.
        Unavailable: The library was not found or cannot be loaded.
    """
    if threads is not None and threads not in range(1, _MAX_THREADS + 1):
        message = f"threads is {threads!r}; it must be an integer in [1, {_MAX_THREADS}]"
        raise InvalidArgument(message, "threads")
    library, number = load(find_c_library()), int(threads or len(os.sched_getaffinity(0)))
    return NativeClient(library, EMBEDDED, ConnectSettings(threads=int(threads or 0)), number)


def remote_client(
    address: str,
    reconnect_within: float,
    allow_mixed_servers: bool,
    **others: int | bytes | None,
) -> NativeClient:
    """A client of servers, which connects with its first call.

    Args:
        address: Of the servers.
        reconnect_within: See `connect`.
        allow_mixed_servers: See `connect`.
        others: Fields of the sap_connect_options.

    Raises:
        InvalidArgument: An argument is malformed.
        Unavailable: The library was not found, or a name in a list is unknown.
    """
    seconds, library = check_reconnect_within(reconnect_within), load(find_client_library())
    settings = ConnectSettings(
        connect_timeout_s=0.0,
        reconnect_within_s=seconds,
        allow_mixed_servers=allow_mixed_servers,
        **others,
    )
    return NativeClient(library, address, settings)


def _credentials(tls: Tls | bool, token: str | None) -> dict[str, int | bytes | None]:
    given = tls if isinstance(tls, Tls) else Tls()
    fields: dict[str, int | bytes | None] = {"tls": bool(tls)}
    for name, field, source in (
        ("root_certificates", "server_ca", given.root_certificates),
        ("certificate_chain", "certificate", given.certificate_chain),
        ("private_key", "key", given.private_key),
    ):
        if isinstance(source, bytes):
            if _PEM not in source:
                raise InvalidArgument(f"tls.{name} is not in PEM", f"tls.{name}")
            fields[field] = source[source.index(_PEM) :]
        elif source is not None:
            fields[f"{field}_file"] = os.fsencode(Path(source).expanduser())
    if given.server_name is not None:
        fields["server_name"] = given.server_name.encode()
    if token is not None:
        fields["token"] = token.encode()
    return fields
