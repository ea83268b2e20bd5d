"""Exceptions: a status code, a message, and the field at fault.

Every error of this package is a `SapError`. Where a built-in exception fits, the subclass derives
from it too, so that for example `except TimeoutError` works.
"""

from __future__ import annotations

import enum
import re
from typing import Any, TypeVar

ValueT = TypeVar("ValueT")

_INDEX = re.compile(r"\[(\d+)\]$")


class StatusCode(enum.IntEnum):
    """Names and numbers of google.rpc.Code."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


class SapError(Exception):
    """A call failed, or one problem of a batch or session has no solution.

    Attributes:
        message: For example "contacts.friction[17] is -0.3; it must be finite and >= 0".
        field: The field at fault, for example "contacts.friction[17]"; empty if there is none.
        index: The array index in `field`, here 17; None if it has none.
        reason: Machine-readable name of the exceeded limit, for example "QUEUE_TIME"; or empty.
        retry_after_s: Time after which a retry may succeed [s]; None if the server gives none.
        request_id: Names the failed call in the server's log; empty if no server has answered.
        server: Boot id, as in `ServerInfo`, of the server that ended the call; empty if none has:
            the connection was lost, or the error is of this process, or of a problem or step alone.
        lost_attempts: How often the call or step was lost with its connection after it was sent.
            With 2 it may be what ends servers.
        states: Of a step or rollout of many states in this process: the numbers of those with an
            error, in ascending order. Otherwise empty.
        code: Status code.
    """

    code = StatusCode.UNKNOWN
    states: tuple[int, ...] = ()

    def __init__(
        self,
        message: str,
        field: str = "",
        reason: str = "",
        retry_after_s: float | None = None,
        request_id: str = "",
        server: str = "",
        lost_attempts: int = 0,
    ) -> None:
        super().__init__(message, field, reason, retry_after_s, request_id, server, lost_attempts)
        self.message = message
        self.field = field
        self.reason = reason
        self.retry_after_s = retry_after_s
        self.request_id = request_id
        self.server = server
        self.lost_attempts = lost_attempts
        match = _INDEX.search(field)
        self.index = int(match.group(1)) if match else None

    def __str__(self) -> str:
        return f"{self.message} (request id {self.request_id})" if self.request_id else self.message


class InvalidArgument(SapError, ValueError):
    """A problem, option, argument or file is invalid; `field` names the part at fault."""

    code = StatusCode.INVALID_ARGUMENT


class ResourceExhausted(SapError):
    """A limit of the server is exceeded; `reason` names it."""

    code = StatusCode.RESOURCE_EXHAUSTED


class DeadlineExceeded(SapError, TimeoutError):
    """The deadline of the call or of the session has passed."""

    code = StatusCode.DEADLINE_EXCEEDED


class Cancelled(SapError):
    """The call was cancelled."""

    code = StatusCode.CANCELLED


class Aborted(SapError):
    """The server ended the session, since no step came within its limit."""

    code = StatusCode.ABORTED


class Unauthenticated(SapError, PermissionError):
    """The call has no token, or one that the server does not know."""

    code = StatusCode.UNAUTHENTICATED


class PermissionDenied(SapError, PermissionError):
    """The server knows the token but does not permit it this call."""

    code = StatusCode.PERMISSION_DENIED


class FailedPrecondition(SapError, RuntimeError):
    """The call cannot be made now.

    The server is of another version or instruction set than the first one of the client, or this
    process was forked from one that had a client of servers.
    """

    code = StatusCode.FAILED_PRECONDITION


class Unavailable(SapError, ConnectionError):
    """The server cannot be reached, or is shutting down; the call may be repeated."""

    code = StatusCode.UNAVAILABLE


class Unimplemented(SapError, NotImplementedError):
    """The server does not implement this call."""

    code = StatusCode.UNIMPLEMENTED


class Internal(SapError):
    """A defect of the server or of this package."""

    code = StatusCode.INTERNAL


_KINDS: dict[StatusCode, type[SapError]] = {
    kind.code: kind
    for kind in (
        InvalidArgument,
        ResourceExhausted,
        DeadlineExceeded,
        Cancelled,
        Aborted,
        Unauthenticated,
        PermissionDenied,
        FailedPrecondition,
        Unavailable,
        Unimplemented,
        Internal,
    )
}

_NUMBERS = frozenset(int(code) for code in StatusCode)


def value_of(outcome: ValueT | SapError) -> ValueT:
    """The outcome of a problem; raises it if it is an error."""
    if isinstance(outcome, SapError):
        raise outcome
    return outcome


def error_of_code(code: int, *arguments: Any) -> SapError:
    """The exception of a google.rpc.Code; the arguments are those of `SapError`."""
    known = StatusCode(code) if code in _NUMBERS else StatusCode.UNKNOWN
    kind = _KINDS.get(known)
    if kind is not None:
        return kind(*arguments)
    error = SapError(*arguments)
    error.code = known
    return error
