"""The messages of proto/sap/v1 as protobuf's Python makes them, to compare with.

They are compiled when this is first imported.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path
from typing import Any

import grpc_tools
from grpc_tools import protoc

PROTO = Path(__file__).resolve().parents[4] / "proto"
FILES = sorted(str(path.relative_to(PROTO)) for path in (PROTO / "sap" / "v1").glob("*.proto"))


def _compiled() -> list[Any]:
    bundled = Path(grpc_tools.__file__).parent / "_proto"
    with tempfile.TemporaryDirectory() as directory:
        arguments = ["protoc", f"-I{PROTO}", f"-I{bundled}", f"--python_out={directory}"]
        assert protoc.main([*arguments, *FILES]) == 0
        sys.path.insert(0, directory)
        try:
            return [
                importlib.import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
                for name in FILES
            ]
        finally:
            sys.path.remove(directory)


MODULES = _compiled()
_BY_NAME = {module.DESCRIPTOR.name: module for module in MODULES}
problem_pb2 = _BY_NAME["sap/v1/problem.proto"]
solution_pb2 = _BY_NAME["sap/v1/solution.proto"]
world_service_pb2 = _BY_NAME["sap/v1/world_service.proto"]
