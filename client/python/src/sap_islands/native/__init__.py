"""Programs and libraries that a wheel of deploy/wheel.sh carries, one build per instruction set.

`x86-64-v3/` needs AVX2; `x86-64/` runs on any processor of x86-64, more slowly, and its answers
differ in the last bits; `any/` has what computes no answers. A wheel for arm64 has `armv8-a/` in
place of both. $SAP_INSTRUCTION_SET names one to use instead of the best that the processor has,
for example for equal bits on several machines. Packages that are installed from a clone have none
of them.

This module imports nothing of the package, so that the commands `sap-server` and `sap-client`
start fast.
"""

from __future__ import annotations

import functools
import os
import sys
import warnings
from pathlib import Path

# As in the psABI of x86-64; `abm` is how Linux calls LZCNT.
_V3_FLAGS = frozenset({"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"})
_BUILDS = {"x86_64": ("x86-64-v3", "x86-64"), "aarch64": ("armv8-a",)}
_DIRECTORY = Path(__file__).parent


def find(name: str) -> Path | None:
    """The file `name` of the build that fits this processor; None if this package carries none.

    Raises:
        RuntimeError: $SAP_INSTRUCTION_SET names no build, or one that this processor cannot run.
    """
    if not any((_DIRECTORY / build).is_dir() for build in _builds()):
        return None
    paths = (_DIRECTORY / folder / name for folder in (instruction_set(), "any"))
    return next((path for path in paths if path.is_file()), None)


@functools.cache
def instruction_set() -> str:
    """The build to use, the first of those for this machine that it can run.

    Warns once if AVX2 is missing.

    Raises:
        RuntimeError: As `find`.
    """
    builds = _builds()
    missing = sorted(_V3_FLAGS - _processor_flags()) if "x86-64-v3" in builds else []
    chosen = os.environ.get("SAP_INSTRUCTION_SET")
    if chosen and chosen not in builds:
        raise RuntimeError(f"$SAP_INSTRUCTION_SET is {chosen}; builds: {', '.join(builds)}")
    if chosen == "x86-64-v3" and missing:
        raise RuntimeError(
            f"$SAP_INSTRUCTION_SET is x86-64-v3, but this processor has no {', '.join(missing)}"
        )
    if chosen:
        return chosen
    if missing:
        warnings.warn(
            "sap-islands: this processor has no AVX2 (x86-64-v3 lacks "
            f"{', '.join(missing)}). The portable build is used: it is slower, and its answers "
            "differ in the last bits. SAP_INSTRUCTION_SET=x86-64 silences this warning.",
            RuntimeWarning,
            stacklevel=2,
        )
        return "x86-64"
    return builds[0]


def run(name: str) -> None:
    """Becomes the program `name` with the arguments of this process.

    Raises:
        SystemExit: This package carries none, or none that this processor can run.
    """
    try:
        program = find(name)
    except RuntimeError as error:
        sys.exit(f"{name}: {error}")
    if program is None:
        sys.exit(f"{name}: this package was installed without it; see deploy/wheel.sh")
    os.execv(program, [name, *sys.argv[1:]])


def _builds() -> tuple[str, ...]:
    """Names of the builds for this machine, the best one first."""
    return _BUILDS.get(_machine(), ())


def _machine() -> str:
    return os.uname().machine


def _processor_flags() -> frozenset[str]:
    try:
        with open("/proc/cpuinfo") as file:
            lines = [line for line in file if line.startswith("flags")]
    except OSError:
        return frozenset()
    return frozenset(lines[0].partition(":")[2].split()) if lines else frozenset()
