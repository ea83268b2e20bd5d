"""Where the server and the C libraries are."""

from __future__ import annotations

import os
import shutil
import sysconfig
from ctypes.util import find_library
from importlib import resources
from pathlib import Path

from sap_islands import native
from sap_islands.errors import Unavailable

_LIBRARY = "libsap_islands.so"
_CLIENT_LIBRARY = "libsap_islands_client.so"
_REPLACEMENTS = {
    "mujoco": "libsap_islands_mujoco.so",
    "dart": "libsap_islands_dart_preload.so",
}


def find_server() -> str:
    """Path of the sap-server binary.

    Looked up in this order: $SAP_SERVER, the release build of the clone that this package was
    installed from, this package itself if it is a wheel with programs, PATH.

    Raises:
        Unavailable: There is none, or $SAP_SERVER is not an executable file, or
            $SAP_INSTRUCTION_SET names a build that this processor cannot run.
    """
    chosen = os.environ.get("SAP_SERVER")
    if chosen:
        if not os.access(chosen, os.X_OK):
            raise Unavailable(f"$SAP_SERVER is {chosen}, which is not an executable file")
        return chosen
    found = _in_clone("bin/sap-server") or _in_package("sap-server") or shutil.which("sap-server")
    if found is None:
        raise Unavailable(
            "sap-server was not found: this package has none, as a wheel of deploy/wheel.sh has; "
            "build it (deploy/quickstart.sh) or set $SAP_SERVER"
        )
    return found


def find_c_library() -> str:
    """Path of the C library that solves in this process.

    Looked up in this order: $SAP_LIBRARY, this package where it was installed with its binaries,
    the release build of the clone that it was installed from, the libraries of the system.

    Raises:
        Unavailable: There is none, $SAP_LIBRARY is not a file, or $SAP_INSTRUCTION_SET names a
            build that this processor cannot run.
    """
    chosen = os.environ.get("SAP_LIBRARY")
    if chosen:
        if not os.path.isfile(chosen):
            raise Unavailable(f"$SAP_LIBRARY is {chosen}, which is not a file")
        return chosen
    found = _in_package(_LIBRARY) or _in_clone(f"lib/{_LIBRARY}") or find_library("sap_islands")
    if found is None:
        raise Unavailable(
            f"{_LIBRARY} was not found: build it (deploy/quickstart.sh) or set $SAP_LIBRARY"
        )
    return found


def find_client_library() -> str:
    """Path of the C library that calls servers, and reads and writes files.

    It is looked up as the other one; with $SAP_LIBRARY it is in the same folder.

    Raises:
        Unavailable: There is none, or $SAP_INSTRUCTION_SET names a build that this processor cannot
            run.
    """
    if os.environ.get("SAP_LIBRARY"):
        found = _next_to_chosen(_CLIENT_LIBRARY)
    else:
        found = (
            _in_package(_CLIENT_LIBRARY)
            or _in_clone(f"lib/{_CLIENT_LIBRARY}")
            or find_library("sap_islands_client")
        )
    if found is None:
        raise Unavailable(
            f"{_CLIENT_LIBRARY}, which calls servers and reads files, was not found: build it "
            "(deploy/quickstart.sh) or set $SAP_LIBRARY to a file in its folder"
        )
    return found


def find_replacement(engine: str) -> str:
    """Path of the library that takes the place of a simulator's solver.

    Looked up in the folder of $SAP_LIBRARY, which is the solver that it loads, then as the C
    library. Where it is installed, it is in a folder of its own.

    Raises:
        Unavailable: There is none.
    """
    name = _REPLACEMENTS[engine]
    found = (
        _next_to_chosen(name) or _in_package(name) or _in_clone(f"lib/{name}") or _installed(name)
    )
    if found is None:
        raise Unavailable(f"{name} was not found: build it (deploy/quickstart.sh)")
    return found


def _next_to_chosen(name: str) -> str | None:
    """A library in the folder of $SAP_LIBRARY."""
    chosen = os.environ.get("SAP_LIBRARY")
    path = Path(chosen).with_name(name) if chosen else None
    return str(path) if path is not None and path.is_file() else None


def _installed(name: str) -> str | None:
    """A library of `cmake --install` or of a Debian package that is loaded by its path."""
    system = f"/usr/lib/{sysconfig.get_config_var('MULTIARCH')}"
    paths = (Path(directory, "sap_islands", name) for directory in ("/usr/local/lib", system))
    return next((str(path) for path in paths if path.is_file()), None)


def _in_package(name: str) -> str | None:
    try:
        found = native.find(name)
    except RuntimeError as error:
        raise Unavailable(str(error)) from error
    return None if found is None else str(found)


def _in_clone(path: str) -> str | None:
    """A file of the release build of the clone that this package was installed from."""
    origin = resources.files("sap_islands").joinpath("_origin.txt")
    if not origin.is_file():
        return None
    built = Path(origin.read_text().strip()) / "build" / "release" / path
    return str(built) if built.is_file() else None
