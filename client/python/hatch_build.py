"""Compiles the messages of proto/sap/v1 into sap_islands.v1 whenever the package is built."""

import re
import shutil
import tempfile
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

GENERATED = "sap_islands/v1"
DOCSTRING = '"""The messages of the wire, as protoc makes them from proto/sap/v1."""\n'


def find_protos(root: Path) -> Path:
    """The directory with sap/v1: in a source distribution beside this file, in a clone above."""
    for directory in (root / "proto", root.parents[1] / "proto"):
        if (directory / "sap" / "v1" / "problem.proto").is_file():
            return directory
    raise FileNotFoundError(f"no proto/sap/v1 in {root}, nor in the clone around it")


def compile_protos(protos: Path, output: Path) -> None:
    """Writes modules and type stubs of all messages to `output`, a package."""
    import grpc_tools
    from grpc_tools import protoc

    bundled = Path(grpc_tools.__file__).parent / "_proto"
    sources = sorted(path.name for path in (protos / "sap" / "v1").glob("*.proto"))
    with tempfile.TemporaryDirectory() as scratch:
        arguments = ["protoc", f"-I{protos}", f"-I{bundled}"]
        arguments += [f"--python_out={scratch}", f"--pyi_out={scratch}"]
        arguments += [f"sap/v1/{name}" for name in sources]
        if protoc.main(arguments) != 0:
            raise RuntimeError("protoc failed; see above")
        output.mkdir(parents=True, exist_ok=True)
        (output / "__init__.py").write_text(DOCSTRING)
        for path in sorted((Path(scratch) / "sap" / "v1").iterdir()):
            # protoc takes the package sap.v1 for a Python one at the top level.
            text = re.sub(
                r"\bfrom sap\.v1 import\b", "from sap_islands.v1 import", path.read_text()
            )
            (output / path.name).write_text(text)


class ProtoBuildHook(BuildHookInterface):
    """Adds the compiled messages, and where the clone is, to a wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version, build_data):
        """Called by hatchling before a wheel is written, or an editable one."""
        root = Path(self.root)
        protos = find_protos(root)
        if version == "editable":
            package = root / "src" / "sap_islands"
            shutil.rmtree(package / "v1", ignore_errors=True)
        else:
            package = Path(tempfile.mkdtemp()) / "sap_islands"
            self.scratch = package.parent
        compile_protos(protos, package / "v1")
        if protos.parent != root:
            # connect("embedded:") looks here for a server that has been built.
            (package / "_origin.txt").write_text(f"{protos.parent.resolve()}\n")
        if version != "editable":
            for path in package.rglob("*"):
                if path.is_file():
                    target = f"sap_islands/{path.relative_to(package)}"
                    build_data["force_include"][str(path)] = target

    def finalize(self, version, build_data, artifact_path):
        """Called when the wheel is written."""
        if version != "editable":
            shutil.rmtree(self.scratch, ignore_errors=True)
