"""What ends a call or a session without an outcome, so that it is repeated.

A server sends its identity with every status that it chooses (`server_identity`). An
end without an identity is that of a connection, whatever gRPC or a proxy makes of it.
"""

from __future__ import annotations

from grpc import StatusCode

from sap_islands.errors import SapError

_LOST_CONNECTION = frozenset(
    (
        StatusCode.CANCELLED,
        StatusCode.INTERNAL,
        StatusCode.UNKNOWN,
        StatusCode.ABORTED,
        StatusCode.RESOURCE_EXHAUSTED,
    )
)
# gRPC's own status for a message over the limit of the server, which is the same at every server.
_TOO_LARGE = "larger than max"
# The server ends a session without steps with ABORTED, and one that does not read its answers in
# time with CANCELLED.
_SESSION_ENDED = frozenset((StatusCode.ABORTED, StatusCode.CANCELLED))


def is_lost(error: SapError, *, in_session: bool = False) -> bool:
    """Whether an error says nothing about the call, so that another server may answer it.

    The caller excludes calls that it cancelled, and those whose deadline has passed.
    """
    if error.code is StatusCode.UNAVAILABLE:
        return True
    if not error.server:
        return error.code in _LOST_CONNECTION and _TOO_LARGE not in str(error)
    return in_session and error.code in _SESSION_ENDED
