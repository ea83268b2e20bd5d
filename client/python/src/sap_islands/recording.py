"""Reads and writes recordings: problems with their outcomes, as `sap-server --record` does.

A recording is a sequence of sap.v1.RecordedSolve messages, each preceded by its length in bytes as
a varint. `sap-client replay` solves them again and compares the solutions bit for bit.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from google.protobuf import message as protobuf_message

from sap_islands._arrays import wire_format
from sap_islands.errors import InvalidArgument, SapError, error_of_failure, failure_of_error
from sap_islands.options import Options, from_message, to_message
from sap_islands.problem import Problem
from sap_islands.problem_files import PathLike
from sap_islands.server_info import ServerInfo
from sap_islands.solution import Solution
from sap_islands.v1 import recording_pb2


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


def read_recording(path: PathLike) -> Iterator[Recorded]:
    """Yields the records of a recording in order.

    Raises:
        InvalidArgument: The file cannot be read, or a record is truncated or malformed.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise InvalidArgument(f"{os.fspath(path)}: cannot be read: {error.strerror}") from None
    position = count = 0
    while position < len(data):
        try:
            length, start = wire_format.read_varint(data, position)
            if start + length > len(data):
                raise IndexError
            record = recording_pb2.RecordedSolve.FromString(data[start : start + length])
        except (IndexError, protobuf_message.DecodeError):
            text = f"{os.fspath(path)}: record {count} is truncated or malformed"
            raise InvalidArgument(text) from None
        yield _from_message(record)
        position = start + length
        count += 1


def _from_message(record: recording_pb2.RecordedSolve) -> Recorded:
    outcome: Solution | SapError
    if record.outcome.HasField("solution"):
        outcome = Solution(record.outcome.solution.SerializeToString())
    else:
        outcome = error_of_failure(record.outcome.failure)
    return Recorded(
        problem=Problem.from_bytes(record.problem.SerializeToString()),
        options=from_message(record.options),
        outcome=outcome,
        arrival_time_ns=record.arrival_time.ToNanoseconds(),
        duration_s=record.duration_s,
        version=record.version,
        instruction_set=record.instruction_set,
    )


class RecordingWriter:
    """Writes a recording that `read_recording` and `sap-client replay` read."""

    def __init__(self, path: PathLike, info: ServerInfo) -> None:
        """Creates the file, or overwrites it.

        Args:
            path: The file.
            info: The server that solves the problems, from `Client.info`.
        """
        self._file: IO[bytes] = open(path, "wb")  # noqa: SIM115  # closed by close
        self._info = info

    def write(
        self,
        problem: Problem,
        outcome: Solution | SapError,
        options: Options | None = None,
        duration_s: float = 0.0,
    ) -> None:
        """Appends a problem with its outcome.

        Args:
            problem: The problem, with the guess that the solve started from.
            outcome: The solution, without a response mask, or the error.
            options: Options of the solve.
            duration_s: Duration of the call [s].
        """
        record = recording_pb2.RecordedSolve(
            version=self._info.version,
            instruction_set=self._info.instruction_set,
            duration_s=duration_s,
        )
        record.arrival_time.GetCurrentTime()
        record.problem.ParseFromString(problem.to_bytes())
        if options is not None:
            record.options.CopyFrom(to_message(options))
        if isinstance(outcome, Solution):
            record.outcome.solution.ParseFromString(outcome.to_bytes())
        else:
            record.outcome.failure.CopyFrom(failure_of_error(outcome))
        serialized = record.SerializeToString()
        self._file.write(wire_format.varint(len(serialized)) + serialized)

    def close(self) -> None:
        """Flushes and closes the file."""
        self._file.close()

    def __enter__(self) -> RecordingWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
