"""Calls of WorldService by stock grpcio and protobuf, and models to make them with."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import grpc
import mujoco
import numpy as np
from google.rpc import error_details_pb2, status_pb2
from numpy.typing import NDArray

from support.schema import world_service_pb2 as pb

FloatArray = NDArray[np.float64]


def library() -> Path:
    """MuJoCo's library in the package that is installed here."""
    return next(Path(mujoco.__file__).parent.glob("libmujoco.so*"))


def children_of(pid: int) -> list[int]:
    """The processes that a process has started and that have not ended."""
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], stdout=subprocess.PIPE)
    return [int(word) for word in found.stdout.split()]


def detail_of(error: grpc.RpcError) -> error_details_pb2.ErrorInfo:
    """The google.rpc.ErrorInfo of a status; an empty one: it has none."""
    metadata: Any = error.trailing_metadata()
    status = status_pb2.Status.FromString(dict(metadata).get("grpc-status-details-bin", b""))
    info = error_details_pb2.ErrorInfo()
    for detail in status.details:
        if detail.Unpack(info):
            break
    return info


def reason_of(error: grpc.RpcError) -> str:
    """The reason in it."""
    return str(detail_of(error).reason)


class Worlds:
    """The two calls at an address."""

    def __init__(self, address: str, token: str = "") -> None:
        limits = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        self._channel = grpc.insecure_channel(address, options=limits)
        self._metadata = [("authorization", f"Bearer {token}")] if token else []

    def __enter__(self) -> Worlds:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._channel.close()

    def _method(self, name: str, response: Any) -> Any:
        return self._channel.unary_unary(
            f"/sap.v1.WorldService/{name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=response.FromString,
        )

    def put(self, request: Any) -> Any:
        """Calls PutModel."""
        method = self._method("PutModel", pb.PutModelResponse)
        return method(request, metadata=self._metadata)

    def put_xml(self, xml: str | bytes, **files: bytes) -> Any:
        """Puts a model of MJCF with further files."""
        return self.put(mjcf(xml, files))

    def put_model(self, model: Any) -> Any:
        """Puts a compiled model."""
        buffer = np.empty(mujoco.mj_sizeModel(model), np.uint8)
        mujoco.mj_saveModel(model, None, buffer)
        return self.put(binary(buffer.tobytes()))

    def start_put(self, request: Any) -> Any:
        """Begins a call of PutModel, which has `result` and `cancel`."""
        method = self._method("PutModel", pb.PutModelResponse)
        return method.future(request, metadata=self._metadata)

    def advance(self, request: Any, timeout: float | None = None) -> Any:
        """Calls Advance."""
        method = self._method("Advance", pb.AdvanceResponse)
        return method(request, metadata=self._metadata, timeout=timeout)

    def start(self, request: Any) -> Any:
        """Begins a call of Advance, which has `result` and `cancel`."""
        method = self._method("Advance", pb.AdvanceResponse)
        return method.future(request, metadata=self._metadata)


def mjcf(xml: str | bytes, files: dict[str, bytes] | None = None) -> Any:
    """A request to put a model of MJCF."""
    request = pb.PutModelRequest(mujoco_version=mujoco.mj_version(), kind=pb.MODEL_KIND_MJCF)
    request.files.add(name="model.xml", content=xml if isinstance(xml, bytes) else xml.encode())
    for name, content in (files or {}).items():
        request.files.add(name=name, content=content)
    return request


def binary(content: bytes) -> Any:
    """A request to put a binary model."""
    request = pb.PutModelRequest(mujoco_version=mujoco.mj_version(), kind=pb.MODEL_KIND_MJB)
    request.files.add(content=content)
    return request


def advance_request(
    model_id: bytes, states: FloatArray, controls: FloatArray | None, steps: int, **fields: Any
) -> Any:
    """A request for states and sensors after each step, held after a warning."""
    request = pb.AdvanceRequest(
        model_id=model_id,
        worlds=len(states),
        steps=steps,
        states=np.asarray(states, np.float64).ravel(),
        holds_after_warning=True,
        answers_states=True,
        answers_sensors=True,
        **fields,
    )
    if controls is not None:
        request.control_components.append(pb.CONTROL_COMPONENT_CTRL)
        request.controls.extend(np.asarray(controls, np.float64).ravel())
    return request


def states_of(model: Any, count: int, seed: int = 0) -> FloatArray:
    """Initial states that differ a little."""
    rng = np.random.default_rng(seed)
    data = mujoco.MjData(model)
    size = mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    states = np.empty((count, size))
    for row in states:
        mujoco.mj_resetData(model, data)
        data.qvel[:] = 0.1 * rng.standard_normal(model.nv)
        mujoco.mj_getState(model, data, row, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    return states


def rows(values: Sequence[float], worlds: int, steps: int) -> FloatArray:
    """An array of the answer as [worlds, steps, size]."""
    array = np.array(values)
    return array.reshape(worlds, steps, -1) if array.size else array.reshape(worlds, steps, 0)


ARM = """<mujoco><option timestep="0.005"/><worldbody><geom type="plane" size="2 2 .1"/>
<body pos="0 0 .5"><joint name="a" type="hinge" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 .4 0 0" size=".04"/>
<body pos=".4 0 0"><joint name="b" type="hinge" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/></body></body></worldbody>
<actuator><motor joint="a" gear="2"/><position name="p" joint="b" kp="5"/></actuator>
<sensor><jointpos joint="a"/><actuatorfrc actuator="p"/></sensor></mujoco>"""

CLUTTER = (
    '<mujoco><worldbody><geom type="plane" size="2 2 .1"/>'
    + "".join(
        f'<body pos="{0.03 * (i % 3)} {0.02 * (i % 2)} {0.06 + 0.11 * i}"><freejoint/>'
        f'<geom type="box" size=".05 .04 .05"/></body>'
        for i in range(6)
    )
    + "</worldbody><sensor><clock/></sensor></mujoco>"
)

HELD = """<mujoco><worldbody><geom type="plane" size="2 2 .1"/>
<body name="hand" mocap="true" pos="0 0 .3"/>
<body name="held" pos="0 0 .3"><freejoint/><geom type="box" size=".04 .04 .04"/></body>
</worldbody><equality><weld body1="hand" body2="held"/></equality></mujoco>"""

MUSCLE = """<mujoco><worldbody><body><joint name="j" type="hinge" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 .4 0 0" size=".04"/></body></worldbody><actuator>
<general joint="j" dyntype="filterexact" dynprm=".05" gainprm="3"/>
<muscle joint="j" lengthrange="0 1"/></actuator></mujoco>"""

CLOTH = """<mujoco><worldbody><geom type="plane" size="2 2 .1"/>
<geom type="sphere" size=".1" pos="0 0 .1"/><flexcomp name="cloth" type="grid" count="5 5 1"
spacing=".06 .06 .06" pos="0 0 .25" mass=".1" radius=".01"><edge equality="true"/></flexcomp>
</worldbody></mujoco>"""

MODELS = {"arm": ARM, "clutter": CLUTTER, "held": HELD, "activations": MUSCLE, "cloth": CLOTH}
