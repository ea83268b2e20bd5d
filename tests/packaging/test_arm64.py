"""Wheel and Debian packages for arm64, cross-built, under emulation (qemu-user).

  tests/packaging/test_arm64.py

No part of ctest: without ccache it compiles for a quarter of an hour. Runs each in a root that has
what it asks for and nothing else. Packages are unpacked there, not installed: their scripts would
need a handler of binfmt_misc, as would programs that start others.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from clean_root import unpack_clean_root
from consumer import ROOT, VERSION, run

PROBLEM = ROOT / "tests/data/nasty_wedged_mu5.json"
AARCH64 = 183  # e_machine of its files

STEP = """
import importlib.util
import sys
import sap_islands as sap
assert not any(map(importlib.util.find_spec, ("grpc", "google")))
problem = sap.load_problem(sys.argv[1])
with sap.connect("embedded:") as client:
    print(client.solve(problem).solved, client.info().instruction_set)
"""


def foreign_files(directory):
    """The files of another machine, by the heads of ELF files; and the number of those of arm64."""
    machines = {}
    for path in pathlib.Path(directory).rglob("*"):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                head = file.read(20)
            if head[:4] == b"\x7fELF":
                machines[path] = int.from_bytes(head[18:20], "little")
    foreign = [path for path, machine in machines.items() if machine != AARCH64]
    return foreign, len(machines) - len(foreign)


class EmulatedTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name) / "root"

    def emulated(self, program, *arguments, **variables):
        """What a program of the root prints."""
        settings = [word for item in variables.items() for word in ("-E", "=".join(item))]
        return run("qemu-aarch64", "-L", self.root, *settings, program, *arguments)


class WheelTest(EmulatedTest):
    @classmethod
    def setUpClass(cls):
        subprocess.run([ROOT / "deploy/wheel.sh", "arm64"], check=True, stdout=subprocess.DEVNULL)
        (cls.wheel,) = (ROOT / "build/wheel-arm64").glob("*.whl")

    def test_it_is_installed_for_arm64_and_solves_without_libraries_of_debian(self):
        self.assertRegex(self.wheel.name, r"-py3-none-manylinux_2_3\d_aarch64\.whl$")
        unpack_clean_root(self.root, "arm64", ["python3", "libstdc++6"])
        (python,) = (self.root / "usr/bin").glob("python3.[0-9]*")
        site = self.root / "site"
        platforms = [f"--platform=manylinux_2_{minor}_aarch64" for minor in range(17, 37)]
        run(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
            "--root-user-action=ignore", "--only-binary=:all:", "--implementation=cp",
            f"--python-version={python.name.removeprefix('python')}", *platforms,
            f"--target={site}", self.wheel)
        foreign, own = foreign_files(site)
        self.assertEqual(foreign, [])
        self.assertGreater(own, 5)  # the programs, the libraries and theirs
        said = self.emulated(python, "-c", STEP, PROBLEM, PYTHONPATH=str(site))
        self.assertEqual(said, "True armv8-a\n")
        programs = site / "sap_islands/native/armv8-a"
        self.assertEqual(self.emulated(programs / "sap-server", "--version"), VERSION + "\n")
        self.emulated(programs / "sap-client", "simulate", "clutter", "--time", "0.1")


class PackageTest(EmulatedTest):
    @classmethod
    def setUpClass(cls):
        # Fails where lintian finds an error or a warning.
        subprocess.run([ROOT / "deploy/deb.sh", "arm64"], check=True, stdout=subprocess.DEVNULL)
        cls.files = sorted((ROOT / "build/deb-arm64").glob("*.deb"))
        cls.names = [file.name.split("_")[0] for file in cls.files]

    def unpack_with_dependencies(self, *names):
        """Makes the root of some of the packages and of what they depend on."""
        packages = set()
        files = [self.files[self.names.index(name)] for name in names]
        for file in files:
            self.assertEqual(run("dpkg-deb", "-f", file, "Architecture"), "arm64\n")
            packages |= set(re.findall(r"([a-z0-9.+-]+)(?: \(.*?\))?(?:, |\n)",
                                       run("dpkg-deb", "-f", file, "Depends")))
        unpack_clean_root(self.root, "arm64", packages - set(self.names))
        for file in files:
            run("dpkg-deb", "-x", file, self.root)

    def test_they_are_of_arm64_alone(self):
        self.assertEqual(len(self.files), 4)  # without those of DART
        for file in self.files:
            run("dpkg-deb", "-x", file, self.root)
        foreign, own = foreign_files(self.root)
        self.assertEqual(foreign, [])
        self.assertGreaterEqual(own, 4)

    def test_the_programs_find_all_that_they_need_in_their_dependencies(self):
        self.unpack_with_dependencies("sap-islands")
        self.assertEqual(self.emulated(self.root / "usr/bin/sap-server", "--version"),
                         VERSION + "\n")
        said = self.emulated(self.root / "usr/bin/sap-client", "solve", PROBLEM)
        self.assertIn('"velocity"', said)

    def test_a_program_in_c_is_linked_with_the_library_and_solves(self):
        self.unpack_with_dependencies("libsap-islands0", "libsap-islands-client0")
        headers = self.files[self.names.index("libsap-islands-dev")]
        run("dpkg-deb", "-x", headers, self.root)
        libraries = self.root / "usr/lib/aarch64-linux-gnu"
        for library in ("sap_islands", "sap_islands_client"):
            program = self.root / library
            run("aarch64-linux-gnu-gcc", ROOT / "tests/packaging/shafts.c",
                f"-I{self.root}/usr/include", f"-L{libraries}", f"-Wl,-rpath-link,{libraries}",
                f"-l{library}", "-lm", "-o", program)
            self.assertEqual(self.emulated(program), "fast 0.100 rad/s\n")


if __name__ == "__main__":
    unittest.main()
