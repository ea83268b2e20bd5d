"""Session: a stream of contact problems, one per time step of a simulation."""

from sap_islands._remote.remote_session import Session

__all__ = ["Session"]
