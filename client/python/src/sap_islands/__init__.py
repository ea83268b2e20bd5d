"""Frictional contact, solved by sap-server over gRPC.

    import sap_islands as sap

    with sap.connect("embedded:") as client:            # or "host:port", or "unix:PATH"
        solution = client.solve(problem)

Problems are NumPy arrays (`Problem`), answers too (`Solution`); errors name the field at fault
(`SapError`). For asyncio see `sap_islands.aio`; to solve the contacts of a MuJoCo or Drake model,
`sap_islands.mujoco` and `sap_islands.drake`.
"""

from sap_islands.channel import Tls
from sap_islands.client import Client, connect
from sap_islands.client_base import ServerInfo
from sap_islands.embedded import EmbeddedServer
from sap_islands.errors import (
    Cancelled,
    DeadlineExceeded,
    Internal,
    InvalidArgument,
    PermissionDenied,
    ResourceExhausted,
    SapError,
    Unauthenticated,
    Unavailable,
    Unimplemented,
)
from sap_islands.messages import StepOutcome
from sap_islands.options import NewtonMethod, Options, Priority
from sap_islands.problem import (
    WORLD,
    BodyContacts,
    Contacts,
    Problem,
    Regularization,
    RegularizationRule,
    RigidBodies,
    Trees,
    concatenate,
)
from sap_islands.problem_files import load_problem, save_problem
from sap_islands.recording import Recorded, RecordingWriter, read_recording
from sap_islands.session import Session
from sap_islands.solution import Island, Islands, IslandStatus, Solution, Timings

__all__ = [
    "WORLD",
    "BodyContacts",
    "Cancelled",
    "Client",
    "Contacts",
    "DeadlineExceeded",
    "EmbeddedServer",
    "Internal",
    "InvalidArgument",
    "Island",
    "IslandStatus",
    "Islands",
    "NewtonMethod",
    "Options",
    "PermissionDenied",
    "Priority",
    "Problem",
    "Recorded",
    "RecordingWriter",
    "Regularization",
    "RegularizationRule",
    "ResourceExhausted",
    "RigidBodies",
    "SapError",
    "ServerInfo",
    "Session",
    "Solution",
    "StepOutcome",
    "Timings",
    "Tls",
    "Trees",
    "Unauthenticated",
    "Unavailable",
    "Unimplemented",
    "concatenate",
    "connect",
    "load_problem",
    "read_recording",
    "save_problem",
]
