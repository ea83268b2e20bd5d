"""Information of a server about itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ServerInfo:
    """Version, limits and hardware of a server.

    Attributes:
        version: For example "0.2.0".
        instruction_set: For example "x86-64-v3". Servers of equal version and instruction set
            return equal bits.
        processors: Logical processors of the machine.
        solver_threads: Threads that solve islands.
        boot_id: Names the process of the server; empty where there is none.
        limits: The fields of sap.v1.ServerLimits by name, for example "max_contacts" and
            "max_rows", with the type of each: a number, or bool for "high_priority". 0 or False for
            one that the server does not know.
    """

    version: str
    instruction_set: str
    processors: int
    solver_threads: int
    boot_id: str
    limits: dict[str, float]
