"""What a reader of the tree reads as sentences: paragraphs of documents and of comments."""

import ast
import re

_SLASHES = (".h", ".cc", ".c", ".proto", ".inc", ".rs")
_HASHES = (".py", ".sh", ".cmake", ".txt", ".yaml", ".yml", ".cfg", ".service", "Dockerfile", "run")
# Code before a comment at the end of a line: no marker of a comment outside of its strings.
_STRING = r"""(?<=\d)'(?=\d)|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'"""
_MARKERS = {_SLASHES: "//", _HASHES: "#"}
_NEW = re.compile(r"\s*(?:[-*] |\d+\. |\||#)")  # an item of a list, a row of a table, a heading


def paragraphs(path, text):
    """Yields (line, text) for every paragraph of a document, or of the comments of a source."""
    if path.endswith(".md"):
        yield from _joined(_document(text))
        return
    for endings, marker in _MARKERS.items():
        if path.endswith(endings):
            yield from _joined(_comments(text, marker))
    if path.endswith(".py"):
        yield from _joined(_docstrings(text))


def _joined(lines):
    """Joins (number, text, whether a paragraph begins there); an empty text ends a paragraph."""
    first, parts = 0, []
    for number, text, begins in [*lines, (0, "", True)]:
        if parts and (begins or not text.strip()):
            yield first, " ".join(parts)
            parts = []
        if text.strip():
            first = first if parts else number
            parts.append(text.strip())


def _document(text):
    code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            code = not code
        # A quotation keeps its words.
        outside = "" if code or line.lstrip().startswith(("```", "<!--", ">")) else line
        yield number, re.sub(r"^\s*(?:[-*>]|\d+\.) ", "", outside), bool(_NEW.match(line))


def _comments(text, marker):
    comment = re.compile(rf"^((?:{_STRING}|(?!{marker}|[\"']).)*){marker}+(?!!)(?: (.*)|)$")
    column = None  # of the comment on the line before, which one at the same place goes on with
    for number, line in enumerate(text.splitlines(), 1):
        match = comment.match(line)
        if match is None:
            yield number, "", True
            column = None
            continue
        yield number, match[2] or "", bool(match[1].strip()) or len(match[1]) != column
        column = len(match[1])


def _docstrings(text):
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False):
            lines = ast.get_docstring(node, clean=False).splitlines()
            for offset, line in enumerate(lines):
                yield node.body[0].lineno + offset, line, offset == 0
