"""Scripts of deploy/ where they cannot do their work, and completion in a shell."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from sap_islands.binaries import find_server

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


def test_the_site_of_a_source_archive_asks_for_a_clone(tmp_path: Path) -> None:
    script = tmp_path / "deploy" / "docs.sh"
    script.parent.mkdir()
    shutil.copy(DEPLOY / "docs.sh", script)
    done = subprocess.run([script], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith("docs.sh: ")
    assert "needs a clone" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["sap-server", "--max-rows"], ["--max-rows"]),
        (["sap-client", "so"], ["solve"]),
        (["sap-client", "bench", "--work"], ["--workers"]),
        (["sap-client", "solve", "tests/"], []),  # files, which bash adds
    ],
)
def test_bash_completes_commands_and_flags(words: list[str], found: list[str]) -> None:
    script = (
        f"source {DEPLOY}/completion/sap-islands.bash; "
        f"COMP_WORDS=({shlex.join(words)}); COMP_CWORD={len(words) - 1}; _sap_islands; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    path = f"{Path(find_server()).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script],
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == ""
    assert done.stdout.split() == found
