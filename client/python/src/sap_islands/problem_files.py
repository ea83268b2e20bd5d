"""Reads and writes problem files: JSON (proto3 mapping, original field names), binary, gzipped.

Besides the fields of sap.v1.ContactProblem a JSON file may have the keys `name`, `source`,
`reference` and `drake_velocity`, which are ignored. Any other key is an error.
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
    """Reads a problem file. The format is detected from the contents, not from the name.

    Raises:
        InvalidArgument: The file cannot be read or is not a problem; the message has the path and
            the reason.
    """
    contents = _read(path)
    try:
        # A binary problem cannot start with these bytes: ContactProblem has no field with such a
        # tag.
        if contents[:1] in (b"{", b"[", b" ", b"\r", b"\n"):
            return problem_from_json(contents.decode())
        if not contents:
            raise InvalidArgument("is empty")
        problem_pb2.ContactProblem.FromString(contents)  # raises DecodeError if it is malformed
        return Problem.from_bytes(contents)
    except (InvalidArgument, UnicodeDecodeError) as error:
        raise InvalidArgument(f"{os.fspath(path)}: {error}") from None
    except message.DecodeError:
        text = f"{os.fspath(path)}: is neither JSON nor a sap.v1.ContactProblem"
        raise InvalidArgument(text) from None


def save_problem(problem: Problem, path: PathLike) -> None:
    """Writes a problem. A name ending in .json selects JSON, any other binary; .gz compresses."""
    name = os.fspath(path)
    if name.removesuffix(".gz").endswith(".json"):
        contents = problem_to_json(problem).encode()
    else:
        contents = problem.to_bytes()
    if name.endswith(".gz"):
        contents = gzip.compress(contents, mtime=0)
    Path(name).write_bytes(contents)


def problem_from_json(text: str) -> Problem:
    """Parses a problem from JSON.

    Raises:
        InvalidArgument: The text is not JSON, or not a sap.v1.ContactProblem.
    """
    try:
        values = json.loads(text, parse_int=_parse_integer, object_pairs_hook=_without_duplicates)
    except ValueError as error:
        raise InvalidArgument(f"is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise InvalidArgument("is not a JSON object")
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
    # As an integer, -0 would lose its sign, on which the frame of a contact with n_z = -0 depends.
    return -0.0 if text == "-0" else int(text)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"key {twice!r} appears twice")
    return values
