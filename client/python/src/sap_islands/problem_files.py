"""Problems in files: JSON (the proto3 mapping with original field names) and binary, also gzipped.

JSON files may have four keys beside those of the message, which are no part of the problem: `name`,
`source`, `reference` and `drake_velocity`. Any other is refused.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from pathlib import Path
from typing import Any, TypeAlias

from google.protobuf import json_format, message

from sap_islands.errors import InvalidArgument
from sap_islands.problem import Problem
from sap_islands.v1 import problem_pb2

PathLike: TypeAlias = str | os.PathLike[str]

EXTRA_KEYS = ("name", "source", "reference", "drake_velocity")

_GZIP_MAGIC = b"\x1f\x8b"


def load_problem(path: PathLike) -> Problem:
    """Reads a problem; whether it is JSON, binary or gzipped is seen by its contents.

    Raises:
        InvalidArgument: The file cannot be read or is no problem; the message says why.
    """
    contents = _read(path)
    try:
        # No binary problem starts with these: they would be tags of fields that it does not have.
        if contents[:1] in (b"{", b"[", b" ", b"\r", b"\n"):
            return problem_from_json(contents.decode())
        if not contents:
            raise InvalidArgument("is empty")
        problem_pb2.ContactProblem.FromString(contents)  # which raises where it is none
        return Problem.from_bytes(contents)
    except (InvalidArgument, UnicodeDecodeError) as error:
        raise InvalidArgument(f"{os.fspath(path)}: {error}") from None
    except message.DecodeError:
        text = f"{os.fspath(path)}: is neither JSON nor a sap.v1.ContactProblem"
        raise InvalidArgument(text) from None


def save_problem(problem: Problem, path: PathLike) -> None:
    """Writes a problem, by the name of the file: .json, anything else is binary; .gz is gzipped."""
    name = os.fspath(path)
    if name.removesuffix(".gz").endswith(".json"):
        contents = problem_to_json(problem).encode()
    else:
        contents = problem.to_bytes()
    if name.endswith(".gz"):
        contents = gzip.compress(contents, mtime=0)
    Path(name).write_bytes(contents)


def problem_from_json(text: str) -> Problem:
    """The problem of a JSON text."""
    try:
        values = json.loads(text, parse_int=_parse_integer, object_pairs_hook=_without_duplicates)
    except ValueError as error:
        raise InvalidArgument(f"is no JSON: {error}") from None
    if not isinstance(values, dict):
        raise InvalidArgument("a problem is a JSON object")
    for key in EXTRA_KEYS:
        values.pop(key, None)
    try:
        parsed = json_format.ParseDict(values, problem_pb2.ContactProblem())
    except json_format.ParseError as error:
        raise InvalidArgument(str(error)) from None
    return Problem.from_bytes(parsed.SerializeToString())


def problem_to_json(problem: Problem) -> str:
    """The problem as JSON."""
    parsed = problem_pb2.ContactProblem.FromString(problem.to_bytes())
    return json_format.MessageToJson(parsed, preserving_proto_field_name=True, indent=None) + "\n"


def _read(path: PathLike) -> bytes:
    try:
        contents = Path(path).read_bytes()
        return gzip.decompress(contents) if contents[:2] == _GZIP_MAGIC else contents
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidArgument(f"{os.fspath(path)}: cannot be read: {reason}") from None


def _parse_integer(text: str) -> int | float:
    # As an integer -0 would lose its sign, which decides the frame of a contact with n_z = -0.
    return -0.0 if text == "-0" else int(text)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} comes twice")
    return values
