"""Reads and writes problem files: JSON (proto3 mapping, original field names), binary, gzipped.

Besides the fields of sap.v1.ContactProblem a JSON file may have the keys `name`, `source`,
`reference` and `drake_velocity`, which are ignored. Any other key is an error.
"""

from __future__ import annotations

import os
from typing import TypeAlias

from sap_islands._library import formats
from sap_islands._library.formats import Format
from sap_islands.problem import Problem

PathLike: TypeAlias = str | os.PathLike[str]


def load_problem(path: PathLike) -> Problem:
    """Reads a problem file. The format is detected from the contents, not from the name.

    Raises:
        InvalidArgument: The file cannot be read or is not a problem; the message has the path and
            the reason.
    """
    return Problem.of_values(formats.load_problem(path))


def save_problem(problem: Problem, path: PathLike) -> None:
    """Writes a problem. A name ending in .json selects JSON, any other binary; .gz compresses.

    Raises:
        InvalidArgument: The file cannot be written; the message has the path and the reason.
    """
    formats.save_problem(problem, path)


def problem_from_json(text: str) -> Problem:
    """Parses a problem from JSON.

    Raises:
        InvalidArgument: The text is not JSON, or not a sap.v1.ContactProblem.
    """
    return Problem.of_values(formats.problem_from_bytes(text.encode(), Format.JSON))


def problem_to_json(problem: Problem) -> str:
    """The problem as JSON."""
    return formats.problem_to_bytes(problem, Format.JSON).decode()
