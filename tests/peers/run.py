#!/usr/bin/env python3
"""Runs tests of MuJoCo and dm_control, as their wheels have them, plainly and with this solver.

  tests/peers/run.py [SUITE...]

Not a part of tests/run.sh: it takes a quarter of an hour. Needs build/python (tests/python.sh) and
libsap_islands.so and libsap_islands_mujoco.so in build/release/lib, or where $SAP_LIBRARY is. Each
suite has an environment of its own under build/peers, made once, with the pinned packages.

With the libraries of MuJoCo also the tests of the workers that step worlds for sap-server, where
worker_test is built.

Prints for each suite how many tests there are, how many pass plainly and with every step solved
here (`sap-islands run --when always`), how many steps that were, and each test that ends otherwise,
with the explanation below. The exit code is 1 if one has none.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import typing
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = ROOT / "build/python/bin/python"
REPLACED = (str(PYTHON), "-m", "sap_islands", "run", "--when", "always", "--report")
TIMEOUT_S = 1800
SOME_FAILED = 1  # exit code of pytest

TOOLS = ("pytest==9.2.0", "absl-py==2.5.1", "etils==1.15.0", "fsspec==2026.9.0", "glfw==2.11.0",
         "importlib_resources==7.1.0", "iniconfig==2.3.1", "mock==5.2.0", "numpy==2.2.6",
         "packaging==26.4", "pluggy==1.7.0", "pygments==2.21.0", "PyOpenGL==3.1.10",
         "scipy==1.17.1", "typing_extensions==4.16.0", "zipp==4.1.2")
# All but those that draw.
MUJOCO = ("batch", "bindings", "gil", "memory_leak", "minimize", "msh2obj", "rollout", "specs",
          "thread_safety", "vfs")
DM_CONTROL = ("mujoco/engine", "mujoco/index", "mujoco/thread_safety", "mujoco/wrapper/core",
              "mujoco/wrapper/mjbindings", "suite/loader", "suite/lqr", "suite/suite",
              "composer/environment", "composer/entity", "composer/observation/updater",
              "mjcf/physics", "rl/control", "utils/inverse_kinematics", "locomotion/walkers/ant",
              "locomotion/walkers/jumping_ball", "entities/props/primitive")


class Suite(typing.NamedTuple):
    """Tests of a package, and what it takes to run them."""

    name: str
    packages: tuple[str, ...]  # or the name of a file of requirements
    folder: str  # in site-packages
    tests: tuple[str, ...]  # names of the files, without _test.py
    explained: dict[str, str] = {}  # part of the name of a test: why it ends otherwise


SUITES = (
    Suite("mujoco-4.0.0", ("mujoco==4.0.0", "mujoco-core==4.0.0"), "mujoco", MUJOCO),
    Suite("mujoco-3.17.0", ("mujoco==3.17.0",), "mujoco", MUJOCO),
    Suite("dm_control-1.0.50", ("-r", "client/python/requirements-dm_control.txt"), "dm_control",
          DM_CONTROL,
          {"testContactForce": "it wants 78.48 N to 7 places; a solve to opt.tolerance, 1e-8, "
                               "leaves 4e-7 N here and 2e-8 N in MuJoCo"}),
)


def environment_of(suite):
    """The Python of its environment, which is made if there is none with these packages."""
    folder = ROOT / "build/peers" / suite.name
    python, made = folder / "bin/python", folder / "made"
    packages = " ".join((*TOOLS, *suite.packages))
    if not made.exists() or made.read_text() != packages:
        subprocess.run([PYTHON, "-m", "venv", "--clear", folder], check=True)
        install = [python, "-m", "pip", "install", "--quiet", "--no-deps"]
        for some in (TOOLS, suite.packages):
            subprocess.run([*install, *some], check=True, cwd=ROOT)
        made.write_text(packages)
    return python


def run(suite, python, prefix, folder):
    """Outcomes of the tests by their names."""
    package = next((python.parents[1] / "lib").glob("python*/site-packages")) / suite.folder
    files = [package / f"{test}_test.py" for test in suite.tests]
    report = folder / "tests.xml"
    pytest = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml", report]
    present = [file for file in files if file.exists()]  # versions differ in what they have
    environment = {**os.environ, "MUJOCO_GL": "disable", "PYTHONDONTWRITEBYTECODE": "1"}
    ended = subprocess.run([*prefix, *pytest, *present], cwd=folder, env=environment,
                           timeout=TIMEOUT_S, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           text=True, check=False)
    if ended.returncode not in (0, SOME_FAILED):
        sys.exit(f"run.py: the tests of {suite.name} did not run:\n{ended.stdout[-2000:]}")
    outcomes = {}
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        kinds = {child.tag for child in case} & {"failure", "error", "skipped"}
        name = f"{case.get('classname')}.{case.get('name')}"
        outcomes[name] = next(iter(kinds), "passed")
    return outcomes


def compare(suite):
    """Runs a suite both ways and prints what differs; how much of it is unexplained."""
    python = environment_of(suite)
    with tempfile.TemporaryDirectory() as folder:
        plain = run(suite, python, (), pathlib.Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        counts = pathlib.Path(folder) / "report.json"
        replaced = run(suite, python, (*REPLACED, str(counts), "--"), pathlib.Path(folder))
        solved = json.loads(counts.read_text())["solved"]
    passed = [sum(each == "passed" for each in found.values()) for found in (plain, replaced)]
    print(f"{suite.name}: {len(plain)} tests, {passed[0]} pass plainly, {passed[1]} replaced, "
          f"{solved} steps solved here", flush=True)
    unexplained = 0
    for name in sorted({*plain, *replaced}):
        before, after = plain.get(name, "absent"), replaced.get(name, "absent")
        if before == after:
            continue
        why = next((text for part, text in suite.explained.items() if part in name), None)
        unexplained += why is None
        print(f"  {name}: {before}, replaced {after}: {why or 'UNEXPLAINED'}", flush=True)
    return unexplained


def step_worlds(suite, python):
    """1 if the workers of sap-server fail with the library of MuJoCo of the suite."""
    test = ROOT / "build/release/bin/worker_test"
    if suite.folder != "mujoco" or not test.exists():
        return 0
    packages = next((python.parents[1] / "lib").glob("python*/site-packages"))
    library = next((packages / "mujoco").glob("libmujoco.so*"))
    environment = {**os.environ, "SAP_MUJOCO_LIBRARY": str(library)}
    ended = subprocess.run([test], env=environment, timeout=TIMEOUT_S, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True, check=False)
    failed = int(ended.returncode != 0)
    print(f"{suite.name}: workers {'FAIL' if failed else 'pass'}", flush=True)
    if failed:
        print(ended.stdout[-2000:], flush=True)
    return failed


def main():
    wanted = sys.argv[1:]
    unknown = set(wanted) - {suite.name for suite in SUITES}
    if unknown:
        sys.exit(f"run.py: no suite {', '.join(sorted(unknown))}; there are "
                 f"{', '.join(suite.name for suite in SUITES)}")
    chosen = [suite for suite in SUITES if not wanted or suite.name in wanted]
    failed = [compare(suite) + step_worlds(suite, environment_of(suite)) for suite in chosen]
    sys.exit(1 if sum(failed) else 0)


if __name__ == "__main__":
    main()
