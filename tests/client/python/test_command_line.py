"""The program sap-islands, as far as no command is special: usage, versions, pipes, libraries."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest
import sap_islands as sap
from sap_islands.__main__ import main

from conftest import ROOT
from support.program import run_program

PROBLEMS = ROOT / "tests" / "data"
PROGRAM = [sys.executable, "-m", "sap_islands"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["solve", "x", "--treads", "3"], "argument: --treads\n"),
        (["solve", "x", "--tolerence=3"], "argument: --tolerence=3; did you mean --tolerance?\n"),
        (["simulate", "clutter", "--boddies", "3"], "--boddies; did you mean --bodies?\n"),
    ],
)
def test_an_unknown_flag_is_answered_by_the_usage_of_its_command(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith(f"usage: sap-islands {arguments[0]} ")
    assert error.endswith(said)


def test_program_and_package_tell_their_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    version = importlib.metadata.version("sap-islands")
    assert capsys.readouterr().out == version + "\n"
    assert sap.__version__ == version


def test_a_reader_that_leaves_ends_the_program_in_silence() -> None:
    # Much longer than a pipe holds.
    command = [*PROGRAM, "solve", str(PROBLEMS / "clutter_bin_40_t1p00.json.gz")]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert program.stdout is not None
    program.stdout.close()
    _, error = program.communicate(timeout=300)
    assert error == b""
    assert program.returncode == 141


def test_a_hyphen_is_standard_input() -> None:
    path = PROBLEMS / "clutter_bin_8_t2p00.json"
    from_file = subprocess.run([*PROGRAM, "solve", str(path)], capture_output=True, check=True)
    from_pipe = subprocess.run(
        [*PROGRAM, "solve", "-"], input=path.read_bytes(), capture_output=True, check=True
    )
    assert from_pipe.stdout.splitlines()[:10] == from_file.stdout.splitlines()[:10]


def test_another_library_is_named(tmp_path: Path) -> None:
    program = (
        "import sap_islands as sap\n"
        "try:\n"
        "    sap.connect('embedded:').info()\n"
        "except sap.Unavailable as error:\n"
        "    print(error)\n"
    )
    source = tmp_path / "other.c"
    for text, said in [
        ("int f(void) { return 0; }", "is another library than that of this package"),
        ("int sap_abi_version(void) { return 7; }", "has interface 7; 0 is needed"),
        (
            "int sap_abi_version(void) { return 0; }",
            "is older than this package: it has no function sap_connect",
        ),
    ]:
        source.write_text(text)
        library = tmp_path / "libother.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
        environment = {**os.environ, "SAP_LIBRARY": str(library)}
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.stdout == f"{library} {said}\n", done.stderr
        library.unlink()


def test_modules_for_other_packages_need_no_import_of_their_own() -> None:
    done = run_program("import sap_islands as sap; print(sap.fem.step, sap.aio.connect)")
    assert done.returncode == 0, done.stderr
    done = run_program("import sap_islands as sap; sap.nothing")
    assert "module 'sap_islands' has no attribute 'nothing'" in done.stderr
