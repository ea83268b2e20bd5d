"""What goes wrong, as exceptions: a status code, a message for people, the field at fault.

Every error of this package is a `SapError`. Each kind is also the built-in exception that fits, so
that `except TimeoutError` works for whoever does not know this package.
"""

from __future__ import annotations

import re
from typing import Any

import grpc
from google.rpc import error_details_pb2, status_pb2

_DETAILS_KEY = "grpc-status-details-bin"
_INDEX = re.compile(r"\[(\d+)\]$")


class SapError(Exception):
    """A problem has no solution, or a call failed.

    Attributes:
        message: What is wrong, as in "contacts.friction[17] is -0.3; it must be finite and >= 0".
        field: The field at fault, as in "contacts.friction[17]"; empty where it is no field's.
        index: Where in the array, as 17; None where the field is no array.
        code: Status code of gRPC.
    """

    code = grpc.StatusCode.UNKNOWN

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message, field)
        self.message = message
        self.field = field
        match = _INDEX.search(field)
        self.index = int(match.group(1)) if match else None

    def __str__(self) -> str:
        return self.message


class InvalidArgument(SapError, ValueError):
    """A problem, an option or a file breaks a rule; `field` says which part of it."""

    code = grpc.StatusCode.INVALID_ARGUMENT


class ResourceExhausted(SapError):
    """Over a limit of the server."""

    code = grpc.StatusCode.RESOURCE_EXHAUSTED


class DeadlineExceeded(SapError, TimeoutError):
    """The timeout of the call has passed."""

    code = grpc.StatusCode.DEADLINE_EXCEEDED


class Cancelled(SapError):
    """The call was cancelled."""

    code = grpc.StatusCode.CANCELLED


class Unauthenticated(SapError, PermissionError):
    """The server wants a token that it knows."""

    code = grpc.StatusCode.UNAUTHENTICATED


class PermissionDenied(SapError, PermissionError):
    """The server knows the token and refuses the call."""

    code = grpc.StatusCode.PERMISSION_DENIED


class Unavailable(SapError, ConnectionError):
    """No server there, or it is shutting down: try again, or elsewhere."""

    code = grpc.StatusCode.UNAVAILABLE


class Unimplemented(SapError, NotImplementedError):
    """The server does not know this call."""

    code = grpc.StatusCode.UNIMPLEMENTED


class Internal(SapError):
    """A fault of the server or of this package."""

    code = grpc.StatusCode.INTERNAL


_KINDS: dict[grpc.StatusCode, type[SapError]] = {
    kind.code: kind
    for kind in (
        InvalidArgument,
        ResourceExhausted,
        DeadlineExceeded,
        Cancelled,
        Unauthenticated,
        PermissionDenied,
        Unavailable,
        Unimplemented,
        Internal,
    )
}
_CODES: dict[int, grpc.StatusCode] = {code.value[0]: code for code in grpc.StatusCode}


def error_of_call(call: Any) -> SapError:
    """The exception for a call that did not end OK.

    Args:
        call: What gRPC raises, which knows code, details and trailing metadata of the call.
    """
    kind = _KINDS.get(call.code(), SapError)
    message = call.details() or call.code().name
    field = ""
    for key, value in call.trailing_metadata() or ():
        if key == _DETAILS_KEY and isinstance(value, bytes):
            field = _field_of(value)
    return kind(message, field)


def error_of_failure(code: int, message: str, field: str) -> SapError:
    """The exception for one problem of a batch, or one step of a session, that failed."""
    return _KINDS.get(_CODES.get(code, grpc.StatusCode.UNKNOWN), SapError)(message, field)


def _field_of(serialized_status: bytes) -> str:
    status = status_pb2.Status.FromString(serialized_status)
    for detail in status.details:
        bad_request = error_details_pb2.BadRequest()
        if detail.Unpack(bad_request) and bad_request.field_violations:
            return str(bad_request.field_violations[0].field)
    return ""
