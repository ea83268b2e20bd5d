"""A DNS server on the loopback that knows one set of addresses, whatever the name."""

from __future__ import annotations

from dnslib import QTYPE, RR, A, DNSRecord  # type: ignore[import-untyped]  # it has no types
from dnslib.server import (  # type: ignore[import-untyped]  # as above
    BaseResolver,
    DNSLogger,
    DNSServer,
)

from fleet import free_port


class _Resolver(BaseResolver):  # type: ignore[misc]  # see above
    def __init__(self) -> None:
        self.addresses: list[str] = []

    def resolve(self, request: DNSRecord, handler: object) -> DNSRecord:
        reply = request.reply()
        if request.q.qtype == QTYPE.A:
            for address in self.addresses:
                reply.add_answer(RR(request.q.qname, QTYPE.A, ttl=0, rdata=A(address)))
        return reply


class Names:
    """The DNS server; `addresses` may change at any time."""

    def __init__(self) -> None:
        self._resolver = _Resolver()
        port = free_port()
        self.server = f"127.0.0.1:{port}"
        self._server = DNSServer(
            self._resolver, port=port, address="127.0.0.1", logger=DNSLogger("-request,-reply")
        )

    @property
    def addresses(self) -> list[str]:
        return self._resolver.addresses

    @addresses.setter
    def addresses(self, addresses: list[str]) -> None:
        self._resolver.addresses = addresses

    def __enter__(self) -> Names:
        self._server.start_thread()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()
        self._server.server.server_close()
