"""Solves frictional contact problems: in this process, or by a sap-server.

    import sap_islands as sap

    with sap.connect("embedded:") as client:            # or "host:port", or "unix:PATH"
        solution = client.solve(problem)

`Problem` and `Solution` hold NumPy arrays. Every error is a `SapError` that names the field at
fault. `sap_islands.aio` has the same calls for asyncio. `sap_islands.torch` and `sap_islands.jax`
make the solve a differentiable function of tensors. `sap_islands.mujoco` and `sap_islands.drake`
make it the contact solver of a MuJoCo or Drake model. `sap_islands.gymnasium` has an environment
with such contacts, `sap_islands.ray` runs servers on the nodes of a Ray cluster.
`sap_islands.certify`, which needs MuJoCo, compares recorded steps of a simulator with exact ones.
"""

import importlib
import importlib.metadata
from typing import TYPE_CHECKING, Any

from sap_islands._process.embedded_server import EmbeddedServer
from sap_islands.client import Client, connect
from sap_islands.derivatives import (
    AdjointStatus,
    Cotangent,
    Derivatives,
    DifferentiateRequest,
    Gradient,
    Tangent,
)
from sap_islands.errors import (
    Aborted,
    Cancelled,
    DeadlineExceeded,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    PermissionDenied,
    ResourceExhausted,
    SapError,
    Unauthenticated,
    Unavailable,
    Unimplemented,
)
from sap_islands.joints import Frame, Joints
from sap_islands.motion import Advanced, advance, rotations
from sap_islands.options import (
    CoulombFriction,
    InteriorPoint,
    NewtonMethod,
    Options,
    Priority,
    Rest,
)
from sap_islands.problem import (
    WORLD,
    BodyContacts,
    ConstraintRows,
    ContactLaw,
    Contacts,
    HuntCrossley,
    Problem,
    Regularization,
    RegularizationRule,
    RigidBodies,
    Trees,
    concatenate,
)
from sap_islands.problem_files import load_problem, save_problem
from sap_islands.recording import Recorded, RecordingWriter, read_recording
from sap_islands.resting import BodyMoves, LongSteps, RestCounts, RestingIslands, WakeReason
from sap_islands.server_info import ServerInfo
from sap_islands.session import Session, StepOutcome
from sap_islands.solution import Island, Islands, IslandStatus, Solution, Timings
from sap_islands.tls import Tls

if TYPE_CHECKING:
    from sap_islands.referee import certify as certify

__all__ = [
    "WORLD",
    "Aborted",
    "AdjointStatus",
    "Advanced",
    "BodyContacts",
    "BodyMoves",
    "Cancelled",
    "Client",
    "ConstraintRows",
    "ContactLaw",
    "Contacts",
    "Cotangent",
    "CoulombFriction",
    "DeadlineExceeded",
    "Derivatives",
    "DifferentiateRequest",
    "EmbeddedServer",
    "FailedPrecondition",
    "Frame",
    "Gradient",
    "HuntCrossley",
    "InteriorPoint",
    "Internal",
    "InvalidArgument",
    "Island",
    "IslandStatus",
    "Islands",
    "Joints",
    "LongSteps",
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
    "Rest",
    "RestCounts",
    "RestingIslands",
    "RigidBodies",
    "SapError",
    "ServerInfo",
    "Session",
    "Solution",
    "StepOutcome",
    "Tangent",
    "Timings",
    "Tls",
    "Trees",
    "Unauthenticated",
    "Unavailable",
    "Unimplemented",
    "WakeReason",
    "advance",
    "concatenate",
    "connect",
    "load_problem",
    "read_recording",
    "rotations",
    "save_problem",
]


_MODULES = ("aio", "drake", "fem", "gymnasium", "jax", "mujoco", "newton", "ray", "torch")


def __getattr__(name: str) -> Any:
    """Imports at its first use what needs packages that this one does not."""
    if name == "certify":
        from sap_islands.referee import certify

        return certify
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name == "__version__":
        return importlib.metadata.version("sap-islands")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
