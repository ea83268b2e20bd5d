"""Scripts of deploy/ where they cannot do their work."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

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
