"""Build hook: the programs and libraries of a wheel, or where to look for them.

$SAP_ISLANDS_NATIVE is a directory with a folder of programs and libraries per instruction set, as
deploy/wheel.sh makes it. With it, a wheel carries them and is one for this platform. Without it, a
wheel is pure, and built in a clone it knows where that is. $SAP_ISLANDS_MACHINE is the machine that
they are for, where that is not this one.
"""

import os
import shutil
import tempfile
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# The package is found, not imported: importing it would import NumPy first.
COMMAND = """#!python
import importlib.util
import runpy
package = importlib.util.find_spec("sap_islands").submodule_search_locations[0]
runpy.run_path(package + "/native/__init__.py")["run"]("{name}")
"""


def add_native(native: Path, scratch: Path, build_data: dict) -> None:
    """Adds what `native` holds, and commands, written to `scratch`, that run what fits.

    Raises:
        FileNotFoundError: `native` holds nothing.
    """
    files = [path for path in sorted(native.rglob("*")) if path.is_file()]
    if not files:
        raise FileNotFoundError(f"$SAP_ISLANDS_NATIVE is {native}, which has no files")
    for path in files:
        target = f"sap_islands/native/{path.relative_to(native)}"
        build_data["force_include"][str(path)] = target
    for name in ("sap-server", "sap-client"):
        (scratch / name).write_text(COMMAND.format(name=name))
        (scratch / name).chmod(0o755)
        build_data["shared_scripts"][str(scratch / name)] = name
    build_data["pure_python"] = False
    machine = os.environ.get("SAP_ISLANDS_MACHINE", os.uname().machine)
    build_data["tag"] = f"py3-none-linux_{machine}"


class NativeBuildHook(BuildHookInterface):
    """Adds programs and libraries to a wheel, or the path of the clone."""

    PLUGIN_NAME = "custom"

    def initialize(self, version, build_data):
        """Called by hatchling before it writes a wheel or an editable wheel."""
        root = Path(self.root)
        native = os.environ.get("SAP_ISLANDS_NATIVE")
        self.scratch = Path(tempfile.mkdtemp())
        if native and version != "editable":
            add_native(Path(native), self.scratch, build_data)
        elif (root.parents[1] / "client" / "python") == root:
            # connect("embedded:") looks for built binaries in this clone.
            editable = version == "editable"
            origin = (root / "src/sap_islands" if editable else self.scratch) / "_origin.txt"
            origin.write_text(f"{root.parents[1].resolve()}\n")
            if not editable:
                build_data["force_include"][str(origin)] = "sap_islands/_origin.txt"

    def finalize(self, version, build_data, artifact_path):
        """Called by hatchling after it has written the wheel."""
        shutil.rmtree(self.scratch, ignore_errors=True)
