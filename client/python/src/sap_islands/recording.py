"""Reads and writes recordings: problems with their outcomes, as `sap-server --record` does.

A recording is a sequence of sap.v1.RecordedSolve messages, each preceded by its length in bytes as
a varint. `sap-client replay` solves them again and compares the solutions bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator

from sap_islands._library.c_records import Recorded, RecordFile
from sap_islands.errors import SapError
from sap_islands.options import Options
from sap_islands.problem import Problem
from sap_islands.problem_files import PathLike
from sap_islands.server_info import ServerInfo
from sap_islands.solution import Solution

__all__ = ["Recorded", "RecordingWriter", "read_recording"]


def read_recording(path: PathLike) -> Iterator[Recorded]:
    """Yields the records of a recording in order.

    Raises:
        InvalidArgument: The file cannot be read, or a record is truncated or malformed.
    """
    file = RecordFile(path, "sap_recording_open")
    while (record := file.read()) is not None:
        yield record


class RecordingWriter:
    """Writes a recording that `read_recording` and `sap-client replay` read."""

    def __init__(self, path: PathLike, info: ServerInfo) -> None:
        """Creates the file, or overwrites it.

        Args:
            path: The file.
            info: The server that solves the problems, from `Client.info`.

        Raises:
            InvalidArgument: The file cannot be created; `write` and `close` raise it, too.
        """
        self._file = RecordFile(path, "sap_recording_create")
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
        self._file.write(self._info, problem, outcome, options, duration_s)

    def close(self) -> None:
        """Flushes and closes the file."""
        self._file.close()

    def __enter__(self) -> RecordingWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
