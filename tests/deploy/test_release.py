"""deploy/release.sh refuses trees that are not ready, and what the host reads names what exists."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github"
CHANGELOG = """# Changelog

## [Unreleased]

## [1.2.0] - 2026-11-28

- News.

## [1.1.0] - 2026-11-23

- Old.
"""
KUSTOMIZATION = "deploy/kubernetes/base/kustomization.yaml"
FILES = {
    "CMakeLists.txt": "project(sap_islands VERSION 1.2.0 LANGUAGES CXX)\n",
    "client/python/pyproject.toml": 'version = "1.2.0"\n',
    KUSTOMIZATION: "images:\n  - name: sap-islands\n    newTag: 1.2.0\n",
    "CHANGELOG.md": CHANGELOG,
}


def git(tree: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=test", "-c", "user.email=test@localhost")
    command = ["git", "-C", str(tree), *identity, *arguments]
    subprocess.run(command, check=True, capture_output=True)


def commit(tree: Path) -> None:
    git(tree, "add", ".")
    git(tree, "commit", "--quiet", "--message", "x")


def release(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(tree / "deploy" / "release.sh"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository that can be released."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    shutil.copy(ROOT / "deploy" / "release.sh", tmp_path / "deploy")
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def test_a_tree_that_is_ready_can_be_released(tree: Path) -> None:
    done = release(tree, "check", "v1.2.0")
    assert (done.returncode, done.stdout) == (0, "v1.2.0 can be released\n"), done.stderr
    # A workflow runs at the tag itself.
    git(tree, "tag", "v1.2.0")
    assert release(tree, "check").returncode == 0


@pytest.mark.parametrize(
    ("name", "before", "after", "fault"),
    [
        ("CMakeLists.txt", "1.2.0", "1.3.0", "the tag is v1.2.0, CMakeLists.txt has version 1.3.0"),
        ("client/python/pyproject.toml", "1.2.0", "1.1.0", "has version 1.1.0, not 1.2.0"),
        (
            "deploy/kubernetes/base/kustomization.yaml",
            "1.2.0",
            "1.1.0",
            "images of 1.1.0, not 1.2.0",
        ),
        ("CHANGELOG.md", "[1.2.0] -", "[1.2.1] -", "has no section '## [1.2.0] - DATE'"),
        ("CHANGELOG.md", "d]\n", "d]\n\n- More.\n", "has entries under [Unreleased]"),
    ],
)
def test_a_tree_that_is_not_ready_is_refused(
    tree: Path, name: str, before: str, after: str, fault: str
) -> None:
    path = tree / name
    path.write_text(path.read_text().replace(before, after, 1))
    commit(tree)
    done = release(tree, "check", "v1.2.0")
    assert done.returncode == 1
    assert fault in done.stderr


def test_changes_that_are_not_committed_are_refused(tree: Path) -> None:
    (tree / "more").touch()
    assert "changes that are not committed" in release(tree, "check").stderr


def test_a_version_is_released_once(tree: Path) -> None:
    git(tree, "tag", "v1.2.0")
    (tree / "more").touch()
    commit(tree)
    assert "v1.2.0 is another commit" in release(tree, "check").stderr


def test_the_notes_are_the_section_of_the_version(tree: Path) -> None:
    assert release(tree, "notes").stdout.strip() == "- News."


def test_a_dry_run_lists_what_it_built_and_what_only_the_workflow_builds(tree: Path) -> None:
    for script, built in {
        "docs.sh": "build/docs/site/index.html",
        "wheel.sh": "build/wheel/sap_islands-1.2.0.whl build/wheel/sap_islands-1.2.0.tar.gz",
        "deb.sh": "build/deb/sap-islands_1.2.0_amd64.deb",
    }.items():
        path = tree / "deploy" / script
        folders = sorted({str(Path(name).parent) for name in built.split()})
        path.write_text(f"#!/bin/sh\nmkdir -p {' '.join(folders)}\ntouch {built}\n")
        path.chmod(0o755)
    (tree / "tests" / "data").mkdir(parents=True)
    (tree / "tests" / "data" / "sap_v1.descriptors.binpb").touch()
    (tree / ".gitignore").write_text("build/\n")
    commit(tree)
    done = release(tree, "--dry-run")
    assert (done.returncode, done.stderr) == (0, "")
    files = tree / "build" / "release-files" / "files"
    names = {path.name for path in files.iterdir()}
    assert names == {
        "documentation-1.2.0.tar.gz",
        "sap-islands_1.2.0_amd64.deb",
        "sap_islands-1.2.0.tar.gz",
        "sap_islands-1.2.0.whl",
        "sap_v1.descriptors.binpb",
        "SHA256SUMS",
        "source-1.2.0.tar.gz",
    }
    assert all(name in done.stdout for name in names)
    assert "wheel and packages for arm64" in done.stdout
    check = ["sha256sum", "--check", "--quiet", "SHA256SUMS"]
    subprocess.run(check, cwd=files, check=True, timeout=60)
    assert not subprocess.run(
        ["git", "-C", str(tree), "tag"], capture_output=True, check=True
    ).stdout


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def test_every_line_of_the_owners_names_a_place() -> None:
    for line in (GITHUB / "CODEOWNERS").read_text().splitlines():
        if line and not line.startswith("#"):
            place, *owners = line.split()
            assert owners, line
            assert place == "*" or (ROOT / place.strip("/")).is_dir(), line


def test_updates_are_looked_for_where_versions_are_pinned() -> None:
    pins = {
        "github-actions": ".github/workflows/ci.yml",
        "docker": "Dockerfile",
        "pip": "requirements*.txt",
        "gomod": "go.mod",
        "maven": "pom.xml",
        "npm": "package.json",
        "cargo": "Cargo.toml",
    }
    for update in load(GITHUB / "dependabot.yml")["updates"]:
        for directory in update.get("directories") or [update["directory"]]:
            pattern = pins[update["package-ecosystem"]]
            assert list((ROOT / directory.strip("/")).glob(pattern)), update


def test_forms_of_issues_have_what_the_host_demands() -> None:
    forms = [path for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config"]
    assert len(forms) == 3
    for form in map(load, forms):
        assert form["name"]
        assert form["description"]
        inputs = [part for part in form["body"] if part["type"] != "markdown"]
        assert all(part["attributes"]["label"] for part in inputs)
        assert len({part["id"] for part in inputs}) == len(inputs)


def scripts_of(workflow: str) -> list[str]:
    jobs = load(GITHUB / "workflows" / workflow)["jobs"].values()
    return [step["run"] for job in jobs for step in job["steps"] if "run" in step]


@pytest.mark.parametrize("workflow", ["ci.yml", "release.yml"])
def test_workflows_call_scripts_that_exist(workflow: str) -> None:
    named = re.findall(r"(?:deploy|tests|\.ci)/[\w./]+", "\n".join(scripts_of(workflow)))
    assert named
    assert [name for name in named if not (ROOT / name).is_file()] == []
