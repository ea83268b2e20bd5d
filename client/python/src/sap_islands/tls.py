"""TLS of the connections to servers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Tls:
    """TLS settings. Certificates and keys are PEM, as bytes or as the path of a file.

    Attributes:
        root_certificates: Trusted authorities; None: those of the system.
        certificate_chain: The client's certificate, for servers that require one.
        private_key: The private key of `certificate_chain`.
        server_name: Name expected in the servers' certificates; None: the host of the address. A
            list of several hosts needs it.
    """

    root_certificates: bytes | str | Path | None = None
    certificate_chain: bytes | str | Path | None = None
    private_key: bytes | str | Path | None = None
    server_name: str | None = None
