"""Which build of a wheel runs on which processor, and what is said where one does not fit."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from sap_islands import native
from sap_islands.binaries import find_server
from sap_islands.errors import Unavailable

HASWELL = frozenset({"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "sse4_2"})
NEHALEM = frozenset({"sse4_2"})


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory as a wheel has it, with the processor of the test's choice."""
    for build in ("x86-64", "x86-64-v3"):
        (tmp_path / build).mkdir()
        program = tmp_path / build / "sap-server"
        program.write_text(f"#!/bin/sh\necho {build} $0 $1\n")
        program.chmod(0o755)
    monkeypatch.setattr(native, "_DIRECTORY", tmp_path)
    monkeypatch.setattr(native, "_processor_flags", lambda: HASWELL)
    monkeypatch.setattr(native, "_machine", lambda: "x86_64")
    monkeypatch.delenv("SAP_INSTRUCTION_SET", raising=False)
    native.instruction_set.cache_clear()
    yield tmp_path
    native.instruction_set.cache_clear()


def test_a_processor_with_avx2_gets_the_build_for_it(wheel: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert native.find("sap-server") == wheel / "x86-64-v3" / "sap-server"


def test_another_processor_gets_the_portable_build_and_a_warning(
    wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "_processor_flags", lambda: NEHALEM)
    with pytest.warns(RuntimeWarning, match="no AVX2 .* portable build is used"):
        assert native.find("sap-server") == wheel / "x86-64" / "sap-server"


def test_the_environment_chooses(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAP_INSTRUCTION_SET", "x86-64")
    assert native.find("sap-server") == wheel / "x86-64" / "sap-server"


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ("pentium", "is pentium; builds: x86-64-v3, x86-64"),
        ("x86-64-v3", "processor has no abm, avx,"),
    ],
)
@pytest.mark.usefixtures("wheel")
def test_a_build_that_cannot_run_is_refused(
    chosen: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "_processor_flags", lambda: NEHALEM)
    monkeypatch.setenv("SAP_INSTRUCTION_SET", chosen)
    monkeypatch.delenv("SAP_SERVER", raising=False)
    monkeypatch.setattr("sap_islands.binaries._in_clone", lambda _: None)
    with pytest.raises(RuntimeError, match=said):
        native.find("sap-server")
    with pytest.raises(Unavailable, match=said):
        find_server()
    with pytest.raises(SystemExit, match=f"sap-server: .*{said}"):
        native.run("sap-server")


def test_arm64_has_one_build_and_asks_for_no_flags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "armv8-a").mkdir()
    program = tmp_path / "armv8-a" / "sap-server"
    program.touch()
    monkeypatch.setattr(native, "_DIRECTORY", tmp_path)
    monkeypatch.setattr(native, "_machine", lambda: "aarch64")
    monkeypatch.setattr(native, "_processor_flags", frozenset)
    monkeypatch.delenv("SAP_INSTRUCTION_SET", raising=False)
    native.instruction_set.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert native.find("sap-server") == program
    native.instruction_set.cache_clear()
    monkeypatch.setenv("SAP_INSTRUCTION_SET", "x86-64")
    with pytest.raises(RuntimeError, match="is x86-64; builds: armv8-a"):
        native.find("sap-server")


@pytest.mark.usefixtures("wheel")
def test_a_wheel_for_another_machine_has_no_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_machine", lambda: "riscv64")
    assert native.find("sap-server") is None


def test_an_embedded_server_is_that_of_the_wheel(
    wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SAP_SERVER", raising=False)
    monkeypatch.setattr("sap_islands.binaries._in_clone", lambda _: None)
    assert find_server() == str(wheel / "x86-64-v3" / "sap-server")


def test_a_package_without_builds_has_none() -> None:
    assert native.find("sap-server") is None
    with pytest.raises(SystemExit, match="installed without it"):
        native.run("sap-server")


@pytest.mark.usefixtures("wheel")
def test_a_command_passes_its_arguments_on(wheel: Path) -> None:
    source = Path(native.__file__).read_text()
    (wheel / "__init__.py").write_text(source)
    program = (
        "import runpy, sys; sys.argv = ['sap-server', '--version']\n"
        f"runpy.run_path({str(wheel / '__init__.py')!r})['run']('sap-server')"
    )
    said = subprocess.run(
        [sys.executable, "-c", program],
        env={"SAP_INSTRUCTION_SET": "x86-64"},
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert said.stdout == f"x86-64 {wheel}/x86-64/sap-server --version\n"
