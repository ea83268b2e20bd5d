"""What a C library shows and needs, and the examples that bind to it.

test_library.py LIBRARY SERVER    paths of libsap_islands.so or libsap_islands_client.so, and of
                                  sap-server
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
HEADER = ROOT / "client/c/sap_islands.h"
WORLDS = ROOT / "client/c/sap_islands_worlds.h"
ADAPTERS = [
    ROOT / "client" / name
    for name in (
        "mujoco/python_calls.h",
        "mujoco/sap_mujoco.h",
        "c/drake/python_calls.h",
        "c/declarations.h",
    )
]
EXAMPLES = ROOT / "client/c/examples"
SERVER = pathlib.Path(sys.argv.pop())
LIBRARY = pathlib.Path(sys.argv.pop())
NAME = LIBRARY.name.split(".")[0].removeprefix("lib")

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


def run_program(*compiler, arguments=()):
    """The output of the program that the compiler makes, which finds the library next to it."""
    with tempfile.TemporaryDirectory() as directory:
        program = f"{directory}/program"
        subprocess.run([*compiler, "-o", program], check=True)
        environment = {"LD_LIBRARY_PATH": str(LIBRARY.parent)}
        return subprocess.run(
            [program, *arguments], check=True, capture_output=True, text=True, env=environment
        ).stdout


class Server:
    """A server while the block runs, whose address it is."""

    def __enter__(self):
        command = [SERVER, "--listen", "127.0.0.1:0", "--threads", "1"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        prefix = "listening on "
        lines = (line for line in self.process.stdout if line.startswith(prefix))
        return next(lines).removeprefix(prefix).strip()

    def __exit__(self, *_):
        self.process.terminate()
        self.process.communicate()


class LibraryTest(unittest.TestCase):
    def test_exports_the_functions_of_the_headers_and_nothing_else(self):
        exported = {
            line.split()[-1].split("@")[0]
            for line in output("nm", "-D", "--defined-only", str(LIBRARY)).splitlines()
            if " A " not in line
        }
        declared = {
            name
            for header in (HEADER, WORLDS)
            for name in re.findall(r"^SAP_API [^(]*?(sap_\w+)\(", header.read_text(), re.MULTILINE)
        }
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

    def test_it_draws_no_random_numbers_of_the_process(self):
        # random and srandom are what METIS calls where another part of the program uses it.
        names = output("nm", "-D", "--undefined-only", str(LIBRARY)).split()
        imported = {name.split("@")[0] for name in names}
        sequences = "rand srand initstate setstate drand48 erand48 lrand48 nrand48 mrand48 jrand48"
        sequences += " srand48 seed48 lcong48"
        self.assertEqual(imported & set(sequences.split()), set())

    def test_what_the_other_library_holds_is_hidden(self):
        # A symbol that is unique in the process would be shared with other copies; a variable in
        # static thread-local storage may find no room when the library is loaded late.
        self.assertNotIn("UNIQUE", output("readelf", "--dyn-syms", "--wide", str(LIBRARY)))
        self.assertNotIn("STATIC_TLS", output("readelf", "-d", str(LIBRARY)))

    @unittest.skipIf(NAME != "sap_islands", "the other one holds them")
    def test_it_holds_no_transport(self):
        text = output("nm", "-C", str(LIBRARY))
        for library in ("google::protobuf", "grpc", "absl::"):
            self.assertNotIn(library, text)

    def test_the_name_has_the_number_of_the_interface(self):
        number = re.search(r"#define SAP_ABI_VERSION (\d+)", HEADER.read_text()).group(
            1
        )
        self.assertIn(
            f"[lib{NAME}.so.{number}]", output("readelf", "-d", str(LIBRARY))
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
            f"-l{NAME}",
        )
        height, velocity, rolling = map(float, re.findall(r"[\d.]+(?= m)", printed))
        self.assertAlmostEqual(height, 0.1, delta=1e-3)
        # Sliding takes v - mu g t to 5/7 v for a ball of inertia 2/5 m r^2.
        self.assertAlmostEqual(velocity, 0.5 * 5 / 7, delta=1e-3)
        self.assertAlmostEqual(velocity, rolling, delta=1e-3)

    @unittest.skipIf(NAME == "sap_islands", "it has no transport")
    def test_an_event_loop_steps_at_a_server_in_c99(self):
        with Server() as address:
            printed = run_program(
                "cc",
                "-std=gnu99",
                "-Wall",
                "-Wextra",
                "-Werror",
                str(EXAMPLES / "event_loop.c"),
                f"-I{HEADER.parent}",
                f"-L{LIBRARY.parent}",
                f"-l{NAME}",
                arguments=[address],
            )
        # Free fall: v = g t after each step of 10 ms.
        speeds = [float(speed) for speed in re.findall(r"[\d.]+(?= m/s)", printed)]
        self.assertEqual(len(speeds), 3)
        for step, speed in enumerate(speeds, 1):
            self.assertAlmostEqual(speed, 9.81 * 0.01 * step, delta=1e-9)


if __name__ == "__main__":
    unittest.main()
