"""A project that links the client keeps its own flags."""

import json
import pathlib
import shlex
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]

PROJECT = f"""
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES CXX)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(SAP_BUILD_TESTS OFF)
add_subdirectory({ROOT} sap_islands EXCLUDE_FROM_ALL)
add_executable(consumer main.cc)
target_link_libraries(consumer PRIVATE sap_client sap_simulation)
"""

# Warnings that would be errors under the flags of this repository.
MAIN = """
#include "client/cpp/client.h"
#include "client/cpp/simulation/simulation.h"

static_assert(alignof(Eigen::Quaterniond) == ALIGNMENT);

int Unused(int parameter) { int unused; return 0; }
int main() { return sap::client::Client::Connect("embedded:").has_value() ? 0 : 1; }
"""


class LinkingTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.source = pathlib.Path(directory.name)
        (self.source / "CMakeLists.txt").write_text(PROJECT)
        (self.source / "main.cc").write_text(MAIN)
        subprocess.run(["cmake", "-G", "Ninja", "-S", self.source, "-B", self.source / "build"],
                       check=True, capture_output=True)
        text = (self.source / "build/compile_commands.json").read_text()
        self.commands = {pathlib.Path(command["file"]): shlex.split(command["command"])
                         for command in json.loads(text)}

    def test_the_flags_of_the_library_are_its_own(self):
        own = self.commands[ROOT / "client/cpp/client.cc"]
        self.assertIn("-Werror", own)
        consumer = self.commands[self.source / "main.cc"]
        self.assertEqual([flag for flag in consumer if flag.startswith(("-W", "-m", "-f"))], [])

    def test_the_headers_compile_without_them_to_the_same_layout(self):
        own = self.commands[ROOT / "client/cpp/client.cc"]
        alignment = 32 if "-march=x86-64-v3" in own else 16
        command = self.commands[self.source / "main.cc"]
        done = subprocess.run([*command, "-fsyntax-only", f"-DALIGNMENT={alignment}"],
                              cwd=self.source / "build", capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
