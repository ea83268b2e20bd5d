"""Writes released_versions.inc: where MuJoCo's fields are in the released versions.

    build/python/bin/python client/mujoco/make_released_versions.py FOLDER VERSION...

For a new version of MuJoCo, or a new field. Installs each version into a folder of its own in
FOLDER, unless it is there, and asks its introspect. Before a new version is added, see which of
mj_fwdConstraint and mj_fwdAcceleration its own code calls by their exported names:

    objdump -d libmujoco.so | grep -e 'mj_fwdConstraint@plt' -e 'mj_fwdAcceleration@plt'
"""

import os
import subprocess
import sys
from pathlib import Path

PER_LINE = 6
PRINT_ROWS = """
import mujoco
from sap_islands.mujoco.native_calls import load_native_calls
for row in load_native_calls().fields.rows.tolist():
    print(*row)
print(mujoco.mj_version())
"""


def rows_of(folder: Path, version: str) -> tuple[str, list[str]]:
    """The version as mj_version() gives it, and the rows of its table."""
    packages = ["mujoco"] if version.startswith("3.") else ["mujoco", "mujoco-core"]
    target = folder / version
    if not target.is_dir():
        pinned = [f"{package}=={version}" for package in packages]
        install = ["-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target)]
        subprocess.run([sys.executable, *install, *pinned], check=True)
    printed = subprocess.run(
        [sys.executable, "-c", PRINT_ROWS],
        env={**os.environ, "PYTHONPATH": str(target)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.splitlines()
    return printed[-1], [f"{{{', '.join(line.split())}}}" for line in printed[:-1]]


def main() -> None:
    """Writes released_versions.inc."""
    folder = Path(sys.argv[1])
    lines = ["// Made by make_released_versions.py: {in_data, offset, size} of each row."]
    for version in sys.argv[2:]:
        number, rows = rows_of(folder, version)
        lines.append(f"{{{number}, {{")
        for i in range(0, len(rows), PER_LINE):
            lines.append("    " + ", ".join(rows[i : i + PER_LINE]) + ",")
        lines.append("}},")
    text = "\n".join(lines) + "\n"
    (Path(__file__).parent / "released_versions.inc").write_text(text)


if __name__ == "__main__":
    main()
