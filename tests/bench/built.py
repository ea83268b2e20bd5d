"""The programs of a build."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Built:
    build: Path

    def program(self, name: str, *arguments: str, prefix: Sequence[str] = ()) -> str:
        """What a program prints; subprocess.CalledProcessError if it fails."""
        command = [*prefix, str(self.build / "bin" / name), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
