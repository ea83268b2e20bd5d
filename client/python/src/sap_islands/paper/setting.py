"""What every case is given: a server, how much to do, and where plots go."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sap_islands.client import Client, connect
from sap_islands.embedded import find_server
from sap_islands.errors import Unavailable


@dataclass(frozen=True)
class Setting:
    """How a case is run.

    Attributes:
        client: Of a server with one solver thread, as the paper's tests have it.
        full: Whether to run all of the case, or its quick form.
        out: Directory of plots; None: none are kept.
    """

    client: Client
    full: bool
    out: Path | None


@contextmanager
def open_setting(full: bool, out: Path | None) -> Iterator[Setting]:
    """A setting with a server of its own."""
    with connect("embedded:", server_arguments=("--threads", "1")) as client:
        yield Setting(client, full, out)


def find_simulator() -> str:
    """Path of sap-client, which lies beside sap-server."""
    program = Path(find_server()).with_name("sap-client")
    if not program.is_file():
        raise Unavailable(f"there is no {program}, which has the rigid-body simulation")
    return str(program)
