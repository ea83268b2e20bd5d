#!/usr/bin/env python3
"""Runs tests of Newton, as its wheel has them, plainly and with SapSolver for two of its solvers.

  tests/peers/run_newton.py

The tests are those whose names say featherstone or xpbd. Not a part of tests/run.sh: it takes a
quarter of an hour, most of it to compile Newton's kernels. Needs libsap_islands.so in
build/release/lib, or where $SAP_LIBRARY is. The environment is made once, under build/peers.

Prints how many tests pass plainly and replaced, and each that ends otherwise, with the reason: what
SapSolver refused, by its own words, or the explanation below. The exit code is 1 if one has none.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = ("newton==1.8.0", "warp-lang==1.19.0", "numpy==2.4.6", "scipy==1.17.1", "pytest==9.2.0",
            "tqdm==4.70.1", "hatchling==1.33.0", "editables==0.5")
FILES = ("body_force", "body_velocity", "control_force", "conveyor_forces", "joint_controllers",
         "joint_damping", "kinematic_links", "mesh_surface_velocity", "parent_force",
         "physics_verification", "rigid_contact", "rigid_friction_ramp", "runtime_gravity")
TIMEOUT_S = 1800

REFUSAL = re.compile("InvalidArgument: (.* not supported)|ValueError: (.* solver observable.*)")
# Part of the name of a test: why it ends otherwise.
EXPLAINED = {
    "refreshes_joint_inertia_separately": "it looks into attributes of Newton's Featherstone",
}


def make_environment():
    """The Python of the environment, which is made if it is not there."""
    folder = ROOT / "build/peers/newton"
    python = folder / "bin/python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if not (folder / "made").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([*pip, *PACKAGES], check=True)
        (folder / "made").touch()
    package = ("--no-build-isolation", "--no-deps", "--editable", ROOT / "client/python")
    subprocess.run([*pip, *package], check=True)
    return python


def run(python, replaced):
    """Outcomes of the tests by their names, and what those that fail say."""
    tests = next((python.parents[1] / "lib").glob("python*/site-packages")) / "newton/tests"
    library = os.environ.get("SAP_LIBRARY", str(ROOT / "build/release/lib/libsap_islands.so"))
    environment = {**os.environ, "SAP_LIBRARY": library, "PYTHONDONTWRITEBYTECODE": "1",
                   "PYTHONPATH": str(ROOT / "tests/peers"),
                   "SAP_PEERS_REPLACED": str(int(replaced))}
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "tests.xml"
        pytest = [python, "-m", "pytest", "-q", "-p", "newton_plugin", "-p", "no:cacheprovider",
                  "--tb=short", "--junitxml", report]
        log = ROOT / f"build/peers/newton-{'replaced' if replaced else 'plain'}.log"
        with log.open("w") as out:
            subprocess.run([*pytest, *(tests / f"test_{name}.py" for name in FILES)], cwd=folder,
                           env=environment, timeout=TIMEOUT_S, stdout=out, stderr=out, check=False)
        return read_report(report)


def read_report(report):
    """Outcomes and messages of a report of pytest. Of subtests of one name the worst counts."""
    outcomes, messages = {}, {}
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        folders = (case.get("classname") or "").split(".")
        if case.get("name") is None:  # a subtest that has passed
            continue
        file = next((part for part in folders if part.startswith("test_")), "")
        name = f"{file}.{case.get('name')}"
        kinds = {child.tag for child in case} & {"failure", "error", "skipped"}
        if outcomes.get(name, "passed") == "passed":
            outcomes[name] = next(iter(kinds), "passed")
        texts = [child.text or "" for child in case]
        messages[name] = "\n".join([messages.get(name, ""), *texts])
    return outcomes, messages


def reason_for(name, message):
    """Why a test ends otherwise; None if it is not known."""
    refusal = REFUSAL.search(message)
    if refusal:
        return next(filter(None, refusal.groups()))
    return next((text for part, text in EXPLAINED.items() if part in name), None)


def main():
    python = make_environment()
    (plain, _), (replaced, messages) = run(python, False), run(python, True)
    passed = [sum(each == "passed" for each in found.values()) for found in (plain, replaced)]
    print(f"newton-1.8.0: {len(plain)} tests, {passed[0]} pass plainly, {passed[1]} replaced")
    unexplained = 0
    for name in sorted({*plain, *replaced}):
        before, after = plain.get(name, "absent"), replaced.get(name, "absent")
        if before == after:
            continue
        why = reason_for(name, messages.get(name, ""))
        unexplained += why is None
        print(f"  {name}: {before}, replaced {after}: {why or 'UNEXPLAINED'}")
    sys.exit(1 if unexplained else 0)


if __name__ == "__main__":
    main()
