"""Sizes that fit a reader: lines, functions, files."""

import ast

from cpp_text import functions
from finding import Finding

MAX_COLUMNS = 100
MAX_FUNCTION_LINES = 70
MAX_FILE_LINES = 600

MEASURED = (".h", ".cc", ".py", ".sh", ".proto", "CMakeLists.txt", ".cmake", ".ci/run")


def check(tree):
    """All findings about sizes in the tree, a dict of path to text."""
    for path, text in tree.items():
        if not path.endswith(MEASURED):
            continue
        lines = text.splitlines()
        if len(lines) > MAX_FILE_LINES:
            yield Finding(path, len(lines), "file size", f"{len(lines)} lines; {MAX_FILE_LINES}")
        for number, line in enumerate(lines, 1):
            if len(line) > MAX_COLUMNS:
                yield Finding(path, number, "line length", f"{len(line)} columns; {MAX_COLUMNS}")
        for number, length, name in _functions(path, text):
            if length > MAX_FUNCTION_LINES:
                yield Finding(path, number, "function size",
                              f"{length} lines; {MAX_FUNCTION_LINES}: {name[:60]}")


def _functions(path, text):
    if path.endswith((".h", ".cc")):
        yield from functions(text)
    elif path.endswith(".py"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield node.lineno, node.end_lineno - node.lineno + 1, node.name
