"""Clients that keep a fleet busy, each in a thread of its own, and check every outcome."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import sap_islands as sap

from fleet import wait_until
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

    def await_outcomes(self, more: int) -> None:
        """Waits until every client had so many more outcomes."""
        enough = [ledger.answered + more for ledger in self._ledgers]

        def have_them() -> bool:
            assert all(thread.is_alive() for thread in self._threads), self.violations()
            return all(
                ledger.answered >= count
                for ledger, count in zip(self._ledgers, enough, strict=True)
            )

        wait_until(have_them, f"every client has {more} more outcomes")

    def violations(self) -> list[str]:
        return [
            f"{work}: {violation}"
            for ledger, work in zip(self._ledgers, self._works, strict=True)
            for violation in ledger.violations
        ]

    def outcomes(self) -> dict[str, int]:
        """For each kind, the number of problems with an outcome."""
        counts = dict.fromkeys(self._works, 0)
        for ledger, work in zip(self._ledgers, self._works, strict=True):
            counts[work] += ledger.answered
        return counts

    def take_slowest_s(self) -> dict[str, float]:
        """For each kind, the longest time to an outcome since the last question."""
        slowest = dict.fromkeys(self._works, 0.0)
        for ledger, work in zip(self._ledgers, self._works, strict=True):
            slowest[work] = max(slowest[work], ledger.slowest_s)
            ledger.slowest_s = 0.0
        return slowest
