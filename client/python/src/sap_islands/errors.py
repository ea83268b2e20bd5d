"""What goes wrong, as exceptions: a status code, a message for people, the field at fault.

Every error of this package is a `SapError`. Each kind is also the built-in exception that fits, so
that `except TimeoutError` works for whoever does not know this package.
"""

from __future__ import annotations

import re
from typing import Any

import grpc
from google.rpc import error_details_pb2, status_pb2

from sap_islands.v1 import solver_service_pb2

_DETAILS_KEY = "grpc-status-details-bin"
_INDEX = re.compile(r"\[(\d+)\]$")


class SapError(Exception):
    """A problem has no solution, or a call failed.

    Attributes:
        message: What is wrong, as in "contacts.friction[17] is -0.3; it must be finite and >= 0".
        field: The field at fault, as in "contacts.friction[17]"; empty where it is no field's.
        index: Where in the array, as 17; None where the field is no array.
        reason: Which limit it is over, as in "QUEUE_TIME", for programs; empty where it is none.
        retry_after_s: When to try again at the earliest [s]; None if the server does not say.
        code: Status code of gRPC.
    """

    code = grpc.StatusCode.UNKNOWN

    def __init__(
        self, message: str, field: str = "", reason: str = "", retry_after_s: float | None = None
    ) -> None:
        super().__init__(message, field, reason, retry_after_s)
        self.message = message
        self.field = field
        self.reason = reason
        self.retry_after_s = retry_after_s
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
    for key, value in call.trailing_metadata() or ():
        if key == _DETAILS_KEY and isinstance(value, bytes):
            return kind(message, *_details_of(value))
    return kind(message)


def error_of_failure(failure: solver_service_pb2.Failure) -> SapError:
    """The exception for one problem of a batch, or one step of a session, that failed."""
    kind = _KINDS.get(_CODES.get(failure.code, grpc.StatusCode.UNKNOWN), SapError)
    retry_after_s = None
    if failure.HasField("retry_delay"):
        retry_after_s = failure.retry_delay.ToNanoseconds() / 1e9
    return kind(failure.message, failure.field, failure.reason, retry_after_s)


def failure_of_error(error: SapError) -> solver_service_pb2.Failure:
    """The message that an exception came from."""
    failure = solver_service_pb2.Failure(
        code=error.code.value[0], message=error.message, field=error.field, reason=error.reason
    )
    if error.retry_after_s is not None:
        failure.retry_delay.FromNanoseconds(round(1e9 * error.retry_after_s))
    return failure


def _details_of(serialized_status: bytes) -> tuple[str, str, float | None]:
    """Field, reason, and seconds after which to try again."""
    field, reason, retry_after_s = "", "", None
    for detail in status_pb2.Status.FromString(serialized_status).details:
        bad_request = error_details_pb2.BadRequest()
        info = error_details_pb2.ErrorInfo()
        retry = error_details_pb2.RetryInfo()
        if detail.Unpack(bad_request) and bad_request.field_violations:
            field = str(bad_request.field_violations[0].field)
        elif detail.Unpack(info):
            reason = str(info.reason)
        elif detail.Unpack(retry):
            retry_after_s = retry.retry_delay.ToNanoseconds() / 1e9
    return field, reason, retry_after_s
