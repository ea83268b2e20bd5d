"""Access to what a session keeps to itself."""

from __future__ import annotations

from typing import Any

import sap_islands as sap
import sap_islands.aio


def internals(session: sap.Session | sap_islands.aio.Session) -> Any:
    """The session, whose attributes are not checked by type."""
    return session
