"""The notebook of the examples runs from top to bottom and prints what it shows."""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbclient import NotebookClient
from traitlets.config import Config

from conftest import ROOT

NOTEBOOK = ROOT / "client" / "python" / "examples" / "first_steps.ipynb"


def printed(notebook: nbformat.NotebookNode) -> list[str]:
    """The printed text of each cell with code."""
    return [
        "".join(output.text for output in cell.outputs if output.output_type == "stream")
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def test_notebook_prints_what_it_shows(tmp_path: Path) -> None:
    notebook = nbformat.reads(NOTEBOOK.read_text(), as_version=4)
    shown = printed(notebook)
    # Sockets in a directory, in place of ports that others on the machine can reach.
    kernel = {"transport": "ipc", "ip": str(tmp_path / "kernel")}
    NotebookClient(notebook, config=Config(KernelManager=kernel), timeout=600).execute()
    assert printed(notebook) == shown
    assert sum(map(bool, shown)) >= 6
