"""Recordings of the C library: problems with their outcomes."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from typing import Any

from sap_islands._library import c_solution
from sap_islands._library.c_answer import Answer, AnsweredSolution
from sap_islands._library.c_memory import error_at, read
from sap_islands._library.c_requests import options_at, options_block
from sap_islands._library.c_structs import ProblemBlock
from sap_islands._library.declarations import new
from sap_islands._library.formats import library_of_files
from sap_islands._library.problem_reader import problem_values
from sap_islands.errors import InvalidArgument, SapError
from sap_islands.options import Options
from sap_islands.problem import Problem
from sap_islands.server_info import ServerInfo
from sap_islands.solution import Solution


@dataclass(frozen=True)
class Recorded:
    """One recorded problem and its outcome.

    Attributes:
        problem: With the guess that the solve started from, including one from a session.
        options: Options of the solve.
        outcome: The complete solution, or the error.
        arrival_time_ns: Arrival of the request [ns since 1970].
        duration_s: Time from arrival to answer [s].
        version: Version of the server.
        instruction_set: Instruction set of the server; bits agree for equal version and
            instruction set.
    """

    problem: Problem
    options: Options
    outcome: Solution | SapError
    arrival_time_ns: int = 0
    duration_s: float = 0.0
    version: str = ""
    instruction_set: str = ""


class RecordFile:
    """A sap_recording."""

    def __init__(self, path: str | os.PathLike[str], function: str) -> None:
        """Opens it by sap_recording_open, or by sap_recording_create.

        Raises:
            InvalidArgument: The file cannot be opened.
        """
        self._handle = 0
        self._library = library_of_files()
        recording = ctypes.c_void_p()
        answer = self._answer()
        name, place = os.fsencode(path), ctypes.addressof(recording)
        if getattr(self._library, function)(name, place, answer.handle) != 0:
            raise answer.error()
        self._handle = recording.value or 0

    def __del__(self) -> None:
        if self._handle:
            self._library.sap_recording_free(self._handle)

    def read(self) -> Recorded | None:
        """The next record; None at the end.

        Raises:
            InvalidArgument: It is truncated or malformed.
        """
        answer = self._answer()
        if self._library.sap_recording_read(self._handle, answer.handle) != 0:
            raise answer.error()
        address = self._library.sap_answer_record(answer.handle)
        if address is None:
            return None
        record = read("sap_record", address)
        return Recorded(
            Problem.of_values(problem_values(answer, record.problem)),
            options_at(record.options),
            AnsweredSolution(answer, record.solution)
            if record.solution
            else error_at(record.error),
            record.arrival_time_ns,
            record.duration_s,
            record.version.decode(),
            record.instruction_set.decode(),
        )

    def write(
        self,
        info: ServerInfo,
        problem: Problem,
        outcome: Solution | SapError,
        options: Options | None,
        duration_s: float,
    ) -> None:
        """Appends a record.

        Raises:
            InvalidArgument: It cannot be written.
        """
        block = ProblemBlock()
        block.fill(problem)
        record = new(
            "sap_record",
            version=info.version.encode(),
            instruction_set=info.instruction_set.encode(),
            duration_s=duration_s,
            problem=block.address,
            options=options_block(options).address,
        )
        if isinstance(outcome, Solution):
            record.point("solution", c_solution.struct_of(outcome.fields()))
        else:
            record.point("error", _error_struct(outcome))
        self._finish("sap_recording_write", ctypes.addressof(record))

    def close(self) -> None:
        """Writes what is buffered.

        Raises:
            InvalidArgument: It cannot be written.
        """
        if self._handle:
            try:
                self._finish("sap_recording_close")
            finally:
                self._library.sap_recording_free(self._handle)
                self._handle = 0

    def _finish(self, function: str, *arguments: int) -> None:
        if not self._handle:
            raise InvalidArgument("the recording is closed")
        answer = self._answer()
        if getattr(self._library, function)(self._handle, *arguments, answer.handle) != 0:
            raise answer.error()

    def _answer(self) -> Answer:
        return Answer(self._library, [])


def _error_struct(error: SapError) -> Any:
    return new(
        "sap_error",
        kind=int(error.code),
        message=error.message.encode(),
        field=error.field.encode(),
        reason=error.reason.encode(),
        retry_after_s=error.retry_after_s or 0.0,
    )
