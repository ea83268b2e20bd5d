"""What the C library shows and needs, and the examples that bind to it.

test_library.py LIBRARY       path of libsap_islands.so
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
HEADER = ROOT / "client/c/sap_islands.h"
ADAPTERS = [ROOT / f"client/c/{name}/adapter.h" for name in ("mujoco", "drake")]
EXAMPLES = ROOT / "client/c/examples"
LIBRARY = pathlib.Path(sys.argv.pop())

# Libraries of the C and C++ runtime, oneTBB and METIS.
NEEDED = {
    "libtbb",
    "libmetis",
    "libstdc++",
    "libm",
    "libgcc_s",
    "libc",
    "ld-linux-x86-64",
    "ld-linux-aarch64",
    "libasan",
    "libubsan",
}


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def run_program(*compiler):
    """The output of the program that the compiler makes, which finds the library next to it."""
    with tempfile.TemporaryDirectory() as directory:
        program = f"{directory}/program"
        subprocess.run([*compiler, "-o", program], check=True)
        environment = {"LD_LIBRARY_PATH": str(LIBRARY.parent)}
        return subprocess.run(
            [program], check=True, capture_output=True, text=True, env=environment
        ).stdout


class LibraryTest(unittest.TestCase):
    def test_exports_the_functions_of_the_headers_and_nothing_else(self):
        exported = {
            line.split()[-1].split("@")[0]
            for line in output("nm", "-D", "--defined-only", str(LIBRARY)).splitlines()
            if " A " not in line
        }
        declared = set(
            re.findall(r"^SAP_API [^(]*?(sap_\w+)\(", HEADER.read_text(), re.MULTILINE)
        )
        self.assertGreater(len(declared), 20)
        for adapter in ADAPTERS:  # for the Python package alone
            declared |= set(
                re.findall(
                    r"^SAP_[A-Z]+_API [^(]*?(sap_\w+)\(",
                    adapter.read_text(),
                    re.MULTILINE,
                )
            )
        self.assertEqual(exported, declared)

    def test_needs_the_runtime_onetbb_and_metis_alone(self):
        dynamic = output("readelf", "-d", str(LIBRARY))
        needed = {
            name.split(".so")[0] for name in re.findall(r"NEEDED.*\[(.*)\]", dynamic)
        }
        self.assertLessEqual(needed, NEEDED)
        # Nothing of theirs was linked in either.
        text = output("nm", "-C", str(LIBRARY))
        for library in ("google::protobuf", "grpc", "absl::"):
            self.assertNotIn(library, text)

    def test_the_name_has_the_number_of_the_interface(self):
        number = re.search(r"#define SAP_ABI_VERSION (\d+)", HEADER.read_text()).group(
            1
        )
        self.assertIn(
            f"[libsap_islands.so.{number}]", output("readelf", "-d", str(LIBRARY))
        )


class ExamplesTest(unittest.TestCase):
    def test_a_ball_rolls_on_in_c99(self):
        printed = run_program(
            "cc",
            "-std=c99",
            "-pedantic",
            "-Wall",
            "-Wextra",
            "-Werror",
            str(EXAMPLES / "falling_ball.c"),
            f"-I{HEADER.parent}",
            f"-L{LIBRARY.parent}",
            "-lsap_islands",
        )
        height, velocity, rolling = map(float, re.findall(r"[\d.]+(?= m)", printed))
        self.assertAlmostEqual(height, 0.1, delta=1e-3)
        # Sliding takes v - mu g t to 5/7 v for a ball of inertia 2/5 m r^2.
        self.assertAlmostEqual(velocity, 0.5 * 5 / 7, delta=1e-3)
        self.assertAlmostEqual(velocity, rolling, delta=1e-3)

    def test_the_floor_carries_a_box_in_rust(self):
        printed = run_program(
            "rustc", str(EXAMPLES / "one_contact.rs"), f"-L{LIBRARY.parent}"
        )
        impulse = float(re.search(r"[\d.]+", printed).group())
        # Less by the regularization of a near-rigid contact, some 4 % in the first step.
        self.assertAlmostEqual(impulse, 2 * 9.81 * 0.01, delta=0.01)


if __name__ == "__main__":
    unittest.main()
