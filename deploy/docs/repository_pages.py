"""Hook of mkdocs: the pages of the site are the Markdown files of the repository, where they are.

Links between them are relative, so that they hold on the site and in a browser of the repository.
Other files that a page links to are copied into the site; a link to a folder becomes one to its
README if it has one, and a link to a file of the schema or a notebook one to its page.
"""

from __future__ import annotations

import ast
import posixpath
import re
import subprocess
from pathlib import Path

import math_page
import notebook_page
import schema_reference
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "client/python/src/sap_islands"
NOTEBOOK = "client/python/examples/first_steps.ipynb"
PAGES_OF = (".proto", ".ipynb")  # files that have a generated page in their place
_LINK = re.compile(r"\[([^\[\]]*)\]\((?!\w+:|#)([^)\s#]+)(#[^)\s]*)?\)")

# The reference of the Python package: pages with their titles, the module whose docstring is at the
# head, and the names on them. Every public name of sap_islands is on one of them.
REFERENCE = {
    "solving": (
        "Client, sessions and solutions",
        "sap_islands",
        "connect Client Session Options CoulombFriction InteriorPoint NewtonMethod Priority Rest "
        "RestingIslands WakeReason BodyMoves LongSteps RestCounts "
        "Solution Islands Island IslandStatus Timings StepOutcome ServerInfo EmbeddedServer Tls "
        "SapError Aborted Cancelled DeadlineExceeded FailedPrecondition Internal InvalidArgument "
        "PermissionDenied ResourceExhausted Unauthenticated Unavailable Unimplemented",
    ),
    "problems": (
        "Problems",
        "sap_islands.problem",
        "Problem Trees RigidBodies Contacts BodyContacts ConstraintRows ContactLaw HuntCrossley "
        "Regularization RegularizationRule WORLD concatenate "
        "Joints Frame advance Advanced rotations",
    ),
    "gradients": (
        "Gradients",
        "sap_islands.derivatives",
        "DifferentiateRequest Cotangent Tangent Gradient Derivatives AdjointStatus",
    ),
    "files": (
        "Files",
        "sap_islands.recording",
        "load_problem save_problem Recorded RecordingWriter read_recording",
    ),
}
ADAPTERS = ("mujoco", "drake", "newton", "referee", "fem")
MODULES = ("torch", "jax", "aio", "ray")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the Markdown files of the repository, what they link to, and the generated pages."""
    generated = _generated_pages()
    documents = [path for path in _tracked("*.md") if (ROOT / path).is_file()]
    linked = {
        target
        for path in documents
        for target in _targets(path, (ROOT / path).read_text())
        if (ROOT / target).is_file() and not target.endswith((".md", ".ipynb"))
    }
    for path in (*documents, *sorted(linked)):
        files.append(_file(config, path, abs_src_path=str(ROOT / path)))
    for path, text in generated.items():
        files.append(_file(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replaces equations, and links to folders and proto files."""
    folder = posixpath.dirname(page.file.src_uri)

    def replace(match: re.Match[str]) -> str:
        text, link, anchor = match[1], match[2], match[3] or ""
        target = posixpath.normpath(posixpath.join(folder, link))
        name, extension = posixpath.splitext(target)
        if extension in PAGES_OF and files.get_file_from_path(f"{name}.md") is not None:
            return f"[{text}]({posixpath.splitext(link)[0]}.md{anchor})"
        if (ROOT / target).is_dir():
            index = posixpath.join(link, "README.md")
            return f"[{text}]({index}{anchor})" if (ROOT / target / "README.md").exists() else text
        return match[0]

    return math_page.with_equations(_LINK.sub(replace, markdown))


def _file(config: MkDocsConfig, path: str, **source: str) -> File:
    # Files whose names begin with a dot are left out unless they are included explicitly.
    return File.generated(config, path, inclusion=InclusionLevel.INCLUDED, **source)


def _tracked(pattern: str) -> list[str]:
    command = ["git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run([*command, pattern], check=True, capture_output=True, text=True)
    return listing.stdout.splitlines()


def _targets(path: str, text: str) -> list[str]:
    folder = posixpath.dirname(path)
    return [posixpath.normpath(posixpath.join(folder, link)) for _, link, _ in _LINK.findall(text)]


def _generated_pages() -> dict[str, str]:
    pages = schema_reference.pages(ROOT / "proto", "sap/v1")
    generated = {f"proto/{name}": text for name, text in pages.items()}
    generated[NOTEBOOK.replace(".ipynb", ".md")] = notebook_page.page(ROOT / NOTEBOOK)
    for name, text in _reference().items():
        generated[f"client/python/reference/{name}.md"] = text
    return generated


def _reference() -> dict[str, str]:
    """The pages of the Python reference.

    Raises:
        PluginError: A public name is on no page, or a page has a name that is not public.
    """
    public = _public_names("__init__.py")
    listed = " ".join(names for _, _, names in REFERENCE.values()).split()
    if sorted(listed) != sorted(public):
        missing = set(public).symmetric_difference(listed)
        raise PluginError(f"REFERENCE and sap_islands.__all__ differ: {', '.join(sorted(missing))}")
    pages = {"index": _index()}
    for page, (title, module, names) in REFERENCE.items():
        head = f"::: {module}\n    options: {{members: false, show_root_heading: false}}"
        entries = [f"::: sap_islands.{name}" for name in names.split()]
        pages[page] = "\n\n".join([f"# {title}", head, *entries])
    entries = [f"::: sap_islands.{name}" for name in MODULES]
    for name in reversed(ADAPTERS):
        members = ", ".join(_public_names(f"{name}/__init__.py"))
        entries.insert(0, f"::: sap_islands.{name}\n    options: {{members: [{members}]}}")
    pages["adapters"] = "\n\n".join(["# Adapters, tensors and asyncio", *entries])
    return pages


def _index() -> str:
    """All public names of sap_islands in alphabetical order, with the page of each."""
    places = {
        name: (page, title)
        for page, (title, _, names) in REFERENCE.items()
        for name in names.split()
    }
    rows = ["| `sap_islands` | page |", "|---|---|"]
    for name in sorted(places, key=str.lower):
        page, title = places[name]
        rows.append(f"| [{name}]({page}.md#sap_islands.{name}) | {title} |")
    return "# All names\n\n" + "\n".join(rows)


def _public_names(module: str) -> list[str]:
    tree = ast.parse((ROOT / PACKAGE / module).read_text())
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
            return list(ast.literal_eval(statement.value))
    raise PluginError(f"{PACKAGE}/{module} has no __all__")
