"""Messages and files of problems and solutions, written and read by the C library."""

from __future__ import annotations

import ctypes
import enum
import os
from collections.abc import Callable, Mapping
from typing import Any

from sap_islands._library import c_solution
from sap_islands._library.c_library import load
from sap_islands._library.c_memory import AnswerMemory
from sap_islands._library.c_structs import AnyProblem, ProblemBlock
from sap_islands._library.declarations import struct_type
from sap_islands._library.problem_reader import problem_values
from sap_islands.binaries import find_client_library


class Format(enum.IntEnum):
    """How a message is written."""

    BINARY = 0
    JSON = 1


def library_of_files() -> Any:
    """The library that reads and writes files.

    Raises:
        Unavailable: It was not found or cannot be loaded.
    """
    return load(find_client_library())


def problem_to_bytes(problem: AnyProblem, form: Format = Format.BINARY) -> bytes:
    """A sap.v1.ContactProblem."""
    block = _block_of(problem)
    return _bytes("sap_format_problem", block.address, form)


def problem_from_bytes(data: bytes, form: Format = Format.BINARY) -> dict[str, Any]:
    """The attributes of a problem; see `problem_values`.

    Raises:
        InvalidArgument: It is malformed.
    """
    answer = _called(lambda library, handle: library.sap_parse_problem(_given(data), form, handle))
    return _problem(answer)


def save_problem(problem: AnyProblem, path: str | os.PathLike[str]) -> None:
    """Writes a file, whose form is that of its name.

    Raises:
        InvalidArgument: It cannot be written.
    """
    block = _block_of(problem)
    _called(lambda lib, handle: lib.sap_save_problem(block.address, os.fsencode(path), handle))


def load_problem(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The attributes of the problem in a file.

    Raises:
        InvalidArgument: The file cannot be read, or is none of a problem.
    """
    return _problem(_called(lambda lib, handle: lib.sap_load_problem(os.fsencode(path), handle)))


def solution_to_bytes(values: Mapping[str, Any]) -> bytes:
    """A sap.v1.ContactSolution, of fields by name."""
    library_of_files()  # has the structs
    struct = c_solution.struct_of(values)
    return _bytes("sap_format_solution", ctypes.addressof(struct), Format.BINARY)


def solution_from_bytes(data: bytes) -> dict[str, Any]:
    """The fields of a sap.v1.ContactSolution by name.

    Raises:
        InvalidArgument: It is malformed.
    """
    answer = _called(
        lambda lib, handle: lib.sap_parse_solution(_given(data), Format.BINARY, handle)
    )
    return c_solution.values_at(answer, answer.library.sap_answer_solution(answer.handle))


def _block_of(problem: AnyProblem) -> ProblemBlock:
    """The structs of a problem, for the library of files."""
    library_of_files()  # has the structs
    block = ProblemBlock()
    block.fill(problem)
    return block


def _given(data: bytes) -> Any:
    """The sap_bytes of data that are kept by the caller."""
    return struct_type("sap_bytes")(ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p), len(data))


def _problem(answer: AnswerMemory) -> dict[str, Any]:
    return problem_values(answer, answer.library.sap_answer_problem(answer.handle))


def _bytes(function: str, address: int, form: Format) -> bytes:
    answer = _called(lambda library, handle: getattr(library, function)(address, form, handle))
    contents = answer.library.sap_answer_bytes(answer.handle)
    return ctypes.string_at(contents.data, contents.length)


def _called(call: Callable[[Any, int], int]) -> AnswerMemory:
    """The answer of `call(library, handle of the answer)`; raises its error."""
    library = library_of_files()
    answer = AnswerMemory(library, [])
    if call(library, answer.handle) != 0:
        raise answer.error()
    return answer
