"""A batch whose outcomes are taken one by one, as each problem is finished."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

from sap_islands._library.c_call import CallSettings
from sap_islands._library.c_requests import addresses, options_block
from sap_islands._library.native_client import NativeClient
from sap_islands.errors import SapError
from sap_islands.options import Options
from sap_islands.problem import Problem
from sap_islands.solution import Solution

WAITS = -1


class NativeBatch:
    """A sap_batch.

    Attributes:
        count: Number of problems.
    """

    def __init__(
        self,
        client: NativeClient,
        problems: Iterable[Problem],
        options: Options | None,
        timeout: float | None,
        **notification: Any,
    ) -> None:
        """Begins to solve the problems.

        Args:
            client: The client.
            problems: The problems.
            options: Of each problem.
            timeout: Deadline of the batch [s].
            notification: `done` and `context` of the sap_call.

        Raises:
            SapError: The options or the call are at fault.
        """
        handle = client.live()
        self._client = client
        self._library = client.library
        self._settings = options_block(options)
        self._blocks = [client.filled_block(problem) for problem in problems]
        self.count = len(self._blocks)
        inputs = addresses([block.address for block in self._blocks] or [None])
        self._answers = [client.answer() for _ in inputs]
        pointers = addresses([answer.handle for answer in self._answers])
        call = CallSettings(timeout, **notification)
        self._kept = (handle, inputs, pointers, call)
        batch = ctypes.c_void_p()
        client.library.sap_batch_begin(
            handle,
            len(inputs),
            ctypes.addressof(inputs),
            self._settings.address,
            call.address,
            ctypes.addressof(pointers),
            ctypes.addressof(batch),
        )
        if not batch.value:
            raise self._answers[0].error()
        self._handle: int = batch.value

    def next(self, wait: int | None) -> int:
        """Number of a problem that is finished and was not returned before.

        Waits for one as long as the double at `wait` says; then `WAITS`. Less: there is none left.
        """
        return int(self._library.sap_batch_next(self._handle, wait))

    def outcome(self, number: int) -> Solution | SapError:
        """The outcome of a problem."""
        return self._answers[number].outcome()

    def free(self) -> None:
        """Ends what is left of it."""
        if self._handle:
            self._library.sap_batch_free(self._handle)
            self._handle = 0
            self._client.keep(self._blocks)
