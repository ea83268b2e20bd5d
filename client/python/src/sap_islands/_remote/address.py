"""Addresses of servers, and what gRPC makes of them.

| address | what |
|---|---|
| HOST:PORT | one server, or a proxy |
| unix:PATH | a server on this machine |
| HOST:PORT,HOST:PORT,... | several servers: calls and sessions take turns over the healthy ones |
| dns:///NAME:PORT | all addresses of a name, likewise; dns://SERVER/NAME:PORT asks that server |
| xds:///NAME | servers and policy are those of the control plane in $GRPC_XDS_BOOTSTRAP |
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sap_islands.errors import InvalidArgument, Unavailable

HostPort: TypeAlias = tuple[str, int]  # an IPv6 address without its brackets
Lookup: TypeAlias = Callable[[str], Sequence[str]]  # the IP addresses of a name

EMBEDDED = "embedded:"  # the solver in this process
EMBEDDED_PROCESS = "embedded:process"  # in a server that the client owns

_FORMS = (
    "HOST:PORT, a list of these separated by commas, unix:PATH, dns:///NAME:PORT, xds:///NAME, "
    "embedded: or embedded:process"
)
_HOST_PORT = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^][:/,\s]+)):([0-9]{1,5})", re.ASCII)
_DNS = re.compile(r"dns://([^/\s]*)/(.+)")
_XDS = re.compile(r"xds://[^/\s]*/\S+")
_MAPPED_IPV4 = "[::ffff:{}]:{}"  # lists of gRPC have one family


@dataclass(frozen=True)
class Address:
    """A checked address.

    Attributes:
        text: As it was given.
        servers: Host and port of HOST:PORT, of each entry of a list, or of the name of dns:.
        target: As gRPC takes it; empty for a list, whose names have yet to be resolved.
        is_shared: Whether calls take turns over several servers.
        is_local: Whether nothing that is sent there leaves this machine.
    """

    text: str
    servers: tuple[HostPort, ...]
    target: str
    is_shared: bool
    is_local: bool

    @property
    def common_host(self) -> str | None:
        """The host that all servers have; None if they differ."""
        hosts = {host for host, _ in self.servers}
        return hosts.pop() if len(hosts) == 1 else None


def parse_address(text: str) -> Address:
    """Checks an address.

    Raises:
        InvalidArgument: It has none of the forms above.
    """
    if text.startswith("unix:"):
        if text == "unix:":
            raise _malformed(f"address {text!r} has no path; it must be unix:PATH")
        return Address(text, (), text, False, True)
    if text.startswith("xds:"):
        if not _XDS.fullmatch(text):
            raise _malformed(f"address is {text!r}; it must be xds:///NAME")
        return Address(text, (), text, False, False)
    if text.startswith("dns:"):
        return _parse_dns(text)
    servers = tuple(_parse_server(entry, text) for entry in text.split(","))
    is_shared = len(servers) > 1
    is_local = all(_is_loopback(host) for host, _ in servers)
    return Address(text, servers, "" if is_shared else text, is_shared, is_local)


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


def resolve(address: Address, lookup: Lookup | None = None) -> str:
    """The target for gRPC.

    Names in a list are replaced by their addresses: IPv4 where a name has any, otherwise IPv6.

    Raises:
        Unavailable: A name in a list is unknown.
    """
    if address.target:
        return address.target
    lookup = lookup or _look_up
    found: list[tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int]] = []
    for host, port in address.servers:
        found += [(ip, port) for ip in _addresses(host, lookup)]
    if all(ip.version == 4 for ip, _ in found):
        return "ipv4:" + ",".join(f"{ip}:{port}" for ip, port in found)
    return "ipv6:" + ",".join(
        f"[{ip}]:{port}" if ip.version == 6 else _MAPPED_IPV4.format(ip, port) for ip, port in found
    )


def _parse_dns(text: str) -> Address:
    match = _DNS.fullmatch(text)
    if match is None or "," in match[2]:
        raise _malformed(f"address is {text!r}; it must be dns:///NAME:PORT")
    host, port = _parse_server(match[2], text)
    # Another name server may give any address for localhost.
    return Address(text, ((host, port),), text, True, host == "localhost" and not match[1])


def _parse_server(entry: str, text: str) -> HostPort:
    match = _HOST_PORT.fullmatch(entry)
    if match is None or not 0 < int(match[3]) < 65536 or (match[1] and _ip(match[1]) is None):
        if entry == text:
            raise _malformed(f"address is {text!r}; it must be {_FORMS}")
        raise _malformed(f"address {text!r} has {entry!r}; it must be HOST:PORT")
    return match[1] or match[2], int(match[3])


def _addresses(
    host: str, lookup: Lookup
) -> Sequence[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    literal = _ip(host)
    if literal is not None:
        return (literal,)
    found = [ip for text in dict.fromkeys(lookup(host)) if (ip := _ip(text)) is not None]
    return [ip for ip in found if ip.version == 4] or found


def _look_up(host: str) -> Sequence[str]:
    try:
        entries = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise Unavailable(f"address: {host}: {error.strerror}", "address") from error
    return [str(entry[4][0]) for entry in entries]


def _is_loopback(host: str) -> bool:
    ip = _ip(host)
    return host == "localhost" if ip is None else ip.is_loopback


def _ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _malformed(message: str) -> InvalidArgument:
    return InvalidArgument(message, "address")
