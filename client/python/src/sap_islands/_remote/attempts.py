"""When a lost call is repeated, and how long a session looks for a server.

The first repetition follows at once, the second after 50 ms, each further one after twice the last
pause, at most 1 s.
"""

from __future__ import annotations

import math
import time

from sap_islands.errors import DeadlineExceeded, InvalidArgument

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0


def check_reconnect_within(seconds: float) -> float:
    """The argument `reconnect_within`.

    Raises:
        InvalidArgument: It is negative or not finite.
    """
    if not 0 <= seconds < math.inf:
        message = f"reconnect_within is {seconds}; it must be finite and >= 0"
        raise InvalidArgument(message, "reconnect_within")
    return seconds


def time_left(timeout: float | None, start: float) -> float | None:
    """What is left of a time that began at `start` of the monotonic clock [s]; None: no limit.

    Raises:
        DeadlineExceeded: Nothing is left. gRPC may still answer a call that begins at its deadline.
    """
    return None if timeout is None else _positive(timeout - (time.monotonic() - start))


def _positive(left: float) -> float:
    if left <= 0:
        raise DeadlineExceeded("the deadline of the call has passed")
    return left


class Attempts:
    """The attempts of one call, which share its deadline."""

    def __init__(self, reconnect_within: float, timeout: float | None = None) -> None:
        """Begins the first attempt.

        Args:
            reconnect_within: How long after the first loss another attempt may begin [s].
            timeout: Time for all attempts together [s]; None: unlimited.
        """
        self._reconnect_within = reconnect_within
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._give_up: float | None = None
        self._pause = 0.0
        self.number = 0  # of the present one

    @property
    def time_left(self) -> float | None:
        """For an attempt that begins now [s]; None: unlimited.

        Raises:
            DeadlineExceeded: Nothing is left.
        """
        return None if self._deadline is None else _positive(self._deadline - time.monotonic())

    @property
    def search_left(self) -> float:
        """How long another attempt may begin [s]. The search starts when this is first asked."""
        if self._give_up is None:
            self._give_up = time.monotonic() + self._reconnect_within
        return self._give_up - time.monotonic()

    def note_progress(self) -> None:
        """Makes the next loss the first one."""
        self._give_up = None
        self._pause = 0.0

    def next_pause(self) -> float | None:
        """How long to wait after a loss before the next attempt [s]; None: there is none."""
        pause = self._pause
        too_late = self._deadline is not None and time.monotonic() + pause >= self._deadline
        if pause >= self.search_left or too_late:
            return None
        self.number += 1
        self._pause = min(max(2 * pause, _FIRST_PAUSE_S), _LONGEST_PAUSE_S)
        return pause
