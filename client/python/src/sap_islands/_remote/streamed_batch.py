"""The problems of a StreamBatch that have no outcome yet. Does no I/O.

After a loss only these are sent again. They are taken from the first request, so that changes of
the problems meanwhile have no effect.
"""

from __future__ import annotations

from collections.abc import Sequence

from sap_islands._remote import messages
from sap_islands.errors import Internal, SapError
from sap_islands.options import Options
from sap_islands.problem import Problem
from sap_islands.solution import Solution


class StreamedBatch:
    """A batch, and which of its problems are answered.

    Attributes:
        request: The serialized sap.v1.StreamBatchRequest to send now.
    """

    def __init__(self, problems: Sequence[Problem], options: Options | None) -> None:
        self.request = messages.batch_request(problems, options)
        self._all = self.request
        self._indices = list(range(len(problems)))  # of the problems of the request
        self._unanswered = set(self._indices)

    @property
    def is_answered(self) -> bool:
        """Whether all problems have their outcome."""
        return not self._unanswered

    def take(self, response: bytes) -> tuple[int, Solution | SapError]:
        """Index of the problem and outcome in a serialized sap.v1.StreamBatchResponse.

        Raises:
            Internal: There is no such problem, or it has its outcome already.
        """
        position, outcome = messages.indexed_outcome(response)
        index = self._indices[position] if position < len(self._indices) else -1
        if index not in self._unanswered:
            raise Internal(f"the server's response has an outcome of problem {position} too many")
        self._unanswered.remove(index)
        return index, outcome

    def check_answered(self) -> None:
        """Raises Internal if a stream without an error leaves problems without outcome."""
        if self._unanswered:
            raise Internal(f"the server has left {len(self._unanswered)} problems without outcome")

    def resend(self) -> None:
        """Makes `request` that of the problems without outcome."""
        self._indices = sorted(self._unanswered)
        self.request = messages.part_of_batch(self._all, self._unanswered)
