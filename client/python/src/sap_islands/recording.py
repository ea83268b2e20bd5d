"""Recordings: problems with their answers, as `sap-server --record` writes them.

A recording is a sequence of sap.v1.RecordedSolve messages, each behind its length in bytes.
`sap-client replay` solves them again and compares bit for bit.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from google.protobuf import message as protobuf_message

from sap_islands import wire_format
from sap_islands.client_base import ServerInfo
from sap_islands.errors import InvalidArgument, SapError, error_of_failure, failure_of_error
from sap_islands.options import Options, from_message, to_message
from sap_islands.problem import Problem
from sap_islands.problem_files import PathLike
from sap_islands.solution import Solution
from sap_islands.v1 import recording_pb2


@dataclass(frozen=True)
class Recorded:
    """One problem as it was solved, and what came of it.

    Attributes:
        problem: With the guess that the solve started from, also where a session supplied it.
        options: What it was solved with.
        outcome: The complete solution, or why there is none.
        arrival_time_ns: When the request arrived, nanoseconds since 1970.
        duration_s: From its arrival to its answer [s].
        version: Of the server.
        instruction_set: Of the server; bits agree for equal version and instruction set.
    """

    problem: Problem
    options: Options
    outcome: Solution | SapError
    arrival_time_ns: int = 0
    duration_s: float = 0.0
    version: str = ""
    instruction_set: str = ""


def read_recording(path: PathLike) -> Iterator[Recorded]:
    """The problems of a recording, one after the other."""
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
            text = f"{os.fspath(path)}: record {count} is cut off or broken"
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
        """Opens the file, and replaces it if there is one.

        Args:
            path: The file.
            info: Of the server that solves, as `Client.info` says.
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
        """Appends a problem with its complete answer.

        Args:
            problem: With the guess that the solve started from.
            outcome: What came of it, without a response mask.
            options: What it was solved with.
            duration_s: How long that took [s].
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
        """Writes what is left and closes the file."""
        self._file.close()

    def __enter__(self) -> RecordingWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
