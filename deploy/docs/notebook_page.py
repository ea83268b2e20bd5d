"""A notebook with its stored outputs as a page of Markdown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def page(path: Path) -> str:
    """The cells in their order; a code cell is followed by its outputs."""
    cells = json.loads(path.read_text())["cells"]
    return "\n\n".join(part for cell in cells for part in _parts(cell)) + "\n"


def _parts(cell: dict[str, Any]) -> list[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return [source]
    return [f"```python\n{source}\n```", *map(_output, cell["outputs"])]


def _output(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return f"```text\n{''.join(output['text']).rstrip()}\n```"
    data = output["data"]
    if "image/png" in data:
        return f"![](data:image/png;base64,{data['image/png'].strip()})"
    return f"```text\n{''.join(data['text/plain'])}\n```"
