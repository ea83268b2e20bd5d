"""Setting of a case: a client with its server, full or quick form, directory of plots."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sap_islands.binaries import find_server
from sap_islands.client import Client, connect
from sap_islands.errors import Unavailable


@dataclass(frozen=True)
class Setting:
    """Setting in which a case is run.

    Attributes:
        client: Client of a server with one solver thread, as in the paper's tests.
        full: Whether to run the full case; False: its quick form.
        out: Directory for plots; None: no plots are saved.
    """

    client: Client
    full: bool
    out: Path | None


@contextmanager
def open_setting(full: bool, out: Path | None) -> Iterator[Setting]:
    """Context manager: a setting with a solver on one thread."""
    with connect("embedded:", threads=1) as client:
        yield Setting(client, full, out)


def find_simulator() -> str:
    """Path of sap-client, in the directory of sap-server.

    Raises:
        Unavailable: It is not there.
    """
    program = Path(find_server()).with_name("sap-client")
    if not program.is_file():
        raise Unavailable(f"{program} was not found; it runs the rigid-body simulations")
    return str(program)
