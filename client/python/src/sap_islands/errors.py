"""Exceptions: a gRPC status code, a message, and the field at fault.

Every error of this package is a `SapError`. Where a built-in exception fits, the subclass derives
from it too, so that for example `except TimeoutError` works.
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

import grpc
from google.rpc import error_details_pb2, status_pb2

from sap_islands.v1 import solver_service_pb2

ValueT = TypeVar("ValueT")

_DETAILS_KEY = "grpc-status-details-bin"
_REQUEST_ID_KEY = "x-request-id"
SERVER_KEY = "sap-server"
_INDEX = re.compile(r"\[(\d+)\]$")


class SapError(Exception):
    """A call failed, or one problem of a batch or session has no solution.

    Attributes:
        message: For example "contacts.friction[17] is -0.3; it must be finite and >= 0".
        field: The field at fault, for example "contacts.friction[17]"; empty if there is none.
        index: The array index in `field`, here 17; None if it has none.
        reason: Machine-readable name of the exceeded limit, for example "QUEUE_TIME"; or empty.
        retry_after_s: Time after which a retry may succeed [s]; None if the server gives none.
        request_id: Names the failed call in the server's log; empty if no server has answered.
        server: Version, instruction set and boot id of the server that chose the status; empty if
            none has: the connection was lost, or the error is of this process.
        code: gRPC status code.
    """

    code = grpc.StatusCode.UNKNOWN

    def __init__(
        self,
        message: str,
        field: str = "",
        reason: str = "",
        retry_after_s: float | None = None,
        request_id: str = "",
        server: str = "",
    ) -> None:
        super().__init__(message, field, reason, retry_after_s, request_id, server)
        self.message = message
        self.field = field
        self.reason = reason
        self.retry_after_s = retry_after_s
        self.request_id = request_id
        self.server = server
        match = _INDEX.search(field)
        self.index = int(match.group(1)) if match else None

    def __str__(self) -> str:
        return f"{self.message} (request id {self.request_id})" if self.request_id else self.message


class InvalidArgument(SapError, ValueError):
    """A problem, option, argument or file is invalid; `field` names the part at fault."""

    code = grpc.StatusCode.INVALID_ARGUMENT


class ResourceExhausted(SapError):
    """A limit of the server is exceeded; `reason` names it."""

    code = grpc.StatusCode.RESOURCE_EXHAUSTED


class DeadlineExceeded(SapError, TimeoutError):
    """The deadline of the call or of the session has passed."""

    code = grpc.StatusCode.DEADLINE_EXCEEDED


class Cancelled(SapError):
    """The call was cancelled."""

    code = grpc.StatusCode.CANCELLED


class Aborted(SapError):
    """The server ended the session, since no step came within its limit."""

    code = grpc.StatusCode.ABORTED


class Unauthenticated(SapError, PermissionError):
    """The call has no token, or one that the server does not know."""

    code = grpc.StatusCode.UNAUTHENTICATED


class PermissionDenied(SapError, PermissionError):
    """The server knows the token but does not permit it this call."""

    code = grpc.StatusCode.PERMISSION_DENIED


class FailedPrecondition(SapError):
    """The server is of another version or instruction set than the first one of the client."""

    code = grpc.StatusCode.FAILED_PRECONDITION


class Unavailable(SapError, ConnectionError):
    """The server cannot be reached, or is shutting down; the call may be repeated."""

    code = grpc.StatusCode.UNAVAILABLE


class Unimplemented(SapError, NotImplementedError):
    """The server does not implement this call."""

    code = grpc.StatusCode.UNIMPLEMENTED


class Internal(SapError):
    """A defect of the server or of this package."""

    code = grpc.StatusCode.INTERNAL


_KINDS: dict[grpc.StatusCode, type[SapError]] = {
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
_CODES: dict[int, grpc.StatusCode] = {code.value[0]: code for code in grpc.StatusCode}


def error_of_call(call: Any) -> SapError:
    """The exception for a call that failed.

    Args:
        call: The exception of gRPC, with `code`, `details` and `trailing_metadata`.
    """
    message = call.details() or call.code().name
    details, request_id, server = b"", "", ""
    for key, value in call.trailing_metadata() or ():
        if key == _DETAILS_KEY and isinstance(value, bytes):
            details = value
        elif key == _REQUEST_ID_KEY:
            request_id = str(value)
        elif key == SERVER_KEY:
            server = str(value)
    return _error(call.code(), message, *_details_of(details), request_id, server)


def value_of(outcome: ValueT | SapError) -> ValueT:
    """The outcome of a problem; raises it if it is an error."""
    if isinstance(outcome, SapError):
        raise outcome
    return outcome


def error_of_code(code: int, *arguments: Any) -> SapError:
    """The exception of a google.rpc.Code; the arguments are those of `SapError`."""
    return _error(_CODES.get(code, grpc.StatusCode.UNKNOWN), *arguments)


def error_of_failure(failure: solver_service_pb2.Failure) -> SapError:
    """The exception for a failed problem of a batch or a failed step of a session."""
    code = _CODES.get(failure.code, grpc.StatusCode.UNKNOWN)
    retry_after_s = None
    if failure.HasField("retry_delay"):
        retry_after_s = failure.retry_delay.ToNanoseconds() / 1e9
    return _error(code, failure.message, failure.field, failure.reason, retry_after_s)


def failure_of_error(error: SapError) -> solver_service_pb2.Failure:
    """The sap.v1.Failure of an exception; the inverse of `error_of_failure`."""
    failure = solver_service_pb2.Failure(
        code=error.code.value[0], message=error.message, field=error.field, reason=error.reason
    )
    if error.retry_after_s is not None:
        failure.retry_delay.FromNanoseconds(round(1e9 * error.retry_after_s))
    return failure


def _error(code: grpc.StatusCode, *arguments: Any) -> SapError:
    kind = _KINDS.get(code)
    if kind is not None:
        return kind(*arguments)
    error = SapError(*arguments)
    error.code = code
    return error


def _details_of(serialized_status: bytes) -> tuple[str, str, float | None]:
    """Field, reason and retry delay [s] from a serialized google.rpc.Status."""
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
