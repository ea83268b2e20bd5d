"""Clients that keep a fleet busy, each in a thread of its own, and check every outcome."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import sap_islands as sap

from ledger import Ledger


class Load:
    """One client for each kind of work that is named; kinds may be named several times."""

    def __init__(
        self, works: Sequence[str], open_client: Callable[[], AbstractContextManager[sap.Client]]
    ) -> None:
        self._works = works
        self._stop = threading.Event()
        self._ledgers = [Ledger(number, self._stop) for number in range(len(works))]
        self._threads = [
            threading.Thread(target=ledger.drive, args=(work, open_client))
            for ledger, work in zip(self._ledgers, works, strict=True)
        ]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def violations(self) -> list[str]:
        return [
            f"{work}: {violation}"
            for ledger, work in zip(self._ledgers, self._works, strict=True)
            for violation in ledger.violations
        ]
