"""Wakes coroutines from threads of the C library. All wakeups of a client share one descriptor.

A wakeup may be set for its previous owner, so waiters check their condition again each time.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
from collections.abc import Iterator
from typing import Any, ClassVar

from sap_islands._library.declarations import struct_type

_PER_BLOCK = 1024  # wakeups whose flags are searched as one


class Wakeup:
    """Is set by the library, and a coroutine waits for it.

    Attributes:
        done: The function that sets it, as an address.
        context: Its argument.
        number: On its board.
    """

    def __init__(self, board: Switchboard, number: int, done: int, context: int) -> None:
        self.done = done
        self.context = context
        self.number = number
        self._board = board
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Wakes who waits."""
        self._woken.set()

    async def wait(self) -> None:
        """Waits until it was set since the last wait."""
        await self._woken.wait()
        self._woken.clear()

    def close(self) -> None:
        """Gives it back."""
        self._board.take_back(self)


class _Block:
    """Flags and structs of wakeups, which the library reads and writes."""

    def __init__(self, eventfd: int) -> None:
        self._flags = bytearray(_PER_BLOCK)
        self._memory = (ctypes.c_uint8 * _PER_BLOCK).from_buffer(self._flags)
        first = ctypes.addressof(self._memory)
        event = struct_type("sap_event")
        self._events = (event * _PER_BLOCK)(
            *(event(first + place, eventfd) for place in range(_PER_BLOCK))
        )

    def context(self, place: int) -> int:
        """The sap_event at a place."""
        return ctypes.addressof(self._events) + place * ctypes.sizeof(struct_type("sap_event"))

    def take_set(self) -> Iterator[int]:
        """Places whose flags are set, which it clears."""
        place = self._flags.find(1)
        while place >= 0:
            self._flags[place] = 0
            yield place
            place = self._flags.find(1, place + 1)


class Switchboard:
    """Wakeups that share a descriptor, which one event loop watches.

    It is kept for the next client in the end: a call that nobody waits for any more may still end,
    and a descriptor that was closed may be another file by then.

    Attributes:
        loop: The event loop.
    """

    _unused: ClassVar[list[Switchboard]] = []

    def __init__(self) -> None:
        self._eventfd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._blocks: list[_Block] = []
        self._wakeups: list[Wakeup | None] = []
        self._free: list[int] = []

    @classmethod
    def for_loop(cls, loop: asyncio.AbstractEventLoop, library: Any) -> Switchboard:
        """A board that its caller alone uses, until it leaves it."""
        board = cls._unused.pop() if cls._unused else cls()
        board._take(loop, library)
        return board

    def wakeup(self) -> Wakeup:
        """A wakeup, until it is closed."""
        if not self._free:
            first = len(self._wakeups)
            self._blocks.append(_Block(self._eventfd))
            self._wakeups += [None] * _PER_BLOCK
            self._free += reversed(range(first, first + _PER_BLOCK))
        number = self._free.pop()
        block, place = divmod(number, _PER_BLOCK)
        wakeup = Wakeup(self, number, self._done, self._blocks[block].context(place))
        self._wakeups[number] = wakeup
        return wakeup

    def take_back(self, wakeup: Wakeup) -> None:
        """Gets a wakeup back, if it has not."""
        if self._wakeups[wakeup.number] is wakeup:
            self._wakeups[wakeup.number] = None
            self._free.append(wakeup.number)
            self._keep_if_unused()

    def leave(self) -> None:
        """Wakes all who wait, since their client is closed; keeps it for others when they go."""
        for wakeup in self._wakeups:
            if wakeup is not None:
                wakeup.wake()
        self._left = True
        self._keep_if_unused()

    def _take(self, loop: asyncio.AbstractEventLoop, library: Any) -> None:
        self.loop = loop
        self._done = ctypes.cast(library.sap_notify_event, ctypes.c_void_p).value or 0
        self._left = False
        loop.add_reader(self._eventfd, self._wake)

    def _keep_if_unused(self) -> None:
        if self._left and len(self._free) == len(self._wakeups):
            if not self.loop.is_closed():
                self.loop.remove_reader(self._eventfd)
            self._unused.append(self)

    def _wake(self) -> None:
        os.eventfd_read(self._eventfd)
        for number, block in enumerate(self._blocks):
            for place in block.take_set():
                wakeup = self._wakeups[number * _PER_BLOCK + place]
                if wakeup is not None:
                    wakeup.wake()


# The descriptors of a child are those of its parent.
os.register_at_fork(after_in_child=Switchboard._unused.clear)
