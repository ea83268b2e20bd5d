"""How a scene is dealt to servers: whole islands, and only where that is predicted to pay."""

from __future__ import annotations

import heapq
import socket
from collections.abc import Sequence

import numpy as np

from sap_islands._remote.address import EMBEDDED, parse_address
from sap_islands.arrays import FloatArray
from sap_islands.errors import InvalidArgument

# What a split takes in addition to the call of the whole scene: a request and an answer per server,
# and the copies of the arrays into them and out of them. Measured with three shards of 0.1 to 4 MB.
_CALLS_S = 2e-3
_PER_BYTE_S = 5e-9


def count_servers(split: bool | int, address: str) -> int:
    """The number of servers to split a scene over.

    Args:
        split: The argument of `Client.solve`.
        address: Of the client. The length of a list "A:1,B:2"; the addresses that the name in
            "dns:///NAME:PORT" has now; 1 of any other, and
            always of "embedded:", which solves in this process.

    Raises:
        InvalidArgument: The argument is neither a bool nor a number >= 1.
    """
    if split is False:
        return 1
    if split is not True and (not isinstance(split, int) or split < 1):
        raise InvalidArgument(f"split is {split!r}; it must be a bool or >= 1", "split")
    if address == EMBEDDED:
        return 1
    if split is not True:
        return split
    servers = parse_address(address).servers
    if address.startswith("dns:"):
        ((host, _),) = servers
        try:
            return len(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)) or 1
        except OSError:
            return 1
    return len(servers) or 1


def deal_largest_first(times_s: FloatArray, servers: int) -> list[list[int]]:
    """For each server that gets any, its islands, ascending.

    The largest island goes first, each to the server with the least to do [Graham 1969]: the
    longest shard is at most 4/3 of the shortest possible.
    """
    dealt: list[list[int]] = [[] for _ in range(min(servers, len(times_s)))]
    loads = [(0.0, server) for server in range(len(dealt))]
    for island in np.argsort(-times_s, kind="stable").tolist():
        load, server = loads[0]
        dealt[server].append(island)
        heapq.heapreplace(loads, (load + float(times_s[island]), server))
    return [sorted(islands) for islands in dealt if islands]


def time_on_server(times_s: FloatArray, threads: int) -> float:
    """Time of a shard on a server of so many threads [s].

    An island counts as the work of one thread, and the largest is not divided among threads.

    Args:
        times_s: Of the islands of the shard [s].
        threads: Of the server.
    """
    return float(max(times_s.sum() / threads, times_s.max()))


def pays_off(
    times_s: FloatArray, dealt: Sequence[Sequence[int]], threads: int, problem_bytes: int
) -> bool:
    """Whether shards that are solved at the same time save more than the split costs.

    Args:
        times_s: Predicted time of each island on one core [s].
        dealt: The islands of each shard.
        threads: Of each server.
        problem_bytes: Size of the arrays of the problem.
    """
    if len(dealt) < 2:
        return False
    longest = max(time_on_server(times_s[islands], threads) for islands in dealt)
    saved = time_on_server(times_s, threads) - longest
    return saved > _CALLS_S + _PER_BYTE_S * problem_bytes
