#!/usr/bin/env python3
"""The style of the tree, executable: prints file, line and rule of whatever breaks it.

  tests/tidy/tidy.py            checks every file that git knows, or would add; exit 1 on findings
  tests/tidy/tidy.py --write    first writes the maps of folders into the documents

The rules are in layers.py and python_layers.py (who includes or imports whom), sizes.py (lines,
functions, files), words.py (banned calls, leftovers, paths of one machine, sentences to rewrite)
and folders.py (maps of folders).
"""

import pathlib
import subprocess
import sys

import folders
import layers
import python_layers
import sizes
import words
from finding import Finding

ROOT = pathlib.Path(__file__).resolve().parents[2]

TOP_LEVEL = {
    ".ci", ".clang-format", ".clang-tidy", ".dockerignore", ".github", ".gitignore", "CHANGELOG.md",
    "CMakeLists.txt", "CMakePresets.json", "LICENSE", "README.md", "client", "deploy", "proto",
    "server", "solver", "tests",
}


def check_top_level(tree):
    for entry in sorted({path.split("/")[0] for path in tree} - TOP_LEVEL):
        yield Finding(entry, 1, "layout", "has no place at the top level")


def check(tree):
    """All findings in a tree, a dict of path to text."""
    findings = []
    for rule in (check_top_level, layers.check, python_layers.check, sizes.check, words.check,
                 folders.check):
        findings.extend(rule(tree))
    return sorted(findings)


def read_tree():
    listing = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True, capture_output=True).stdout.decode()
    tree = {}
    for path in filter(None, listing.split("\0")):
        file = ROOT / path
        if file.is_file():
            tree[path] = file.read_bytes().decode("utf-8", errors="replace")
    return tree


def write_maps(tree):
    for path, text in tree.items():
        if path.endswith(".md"):
            tree[path] = folders.with_maps(path, text)
            if tree[path] != text:
                (ROOT / path).write_text(tree[path])


def main():
    tree = read_tree()
    if sys.argv[1:] == ["--write"]:
        write_maps(tree)
    findings = check(tree)
    for finding in findings:
        print(finding)
    print(f"tidy: {len(findings)} findings in {len(tree)} files")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
