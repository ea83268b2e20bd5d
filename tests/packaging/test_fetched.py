"""A project that fetches this one keeps its own flags and builds the libraries alone.

  test_fetched.py [FlagsTest | BuildTest]
"""

import subprocess
import unittest

from consumer import ROOT, Consumer, own_flags


class FetchedTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.consumer = Consumer("fetched", f"-DSAP_ISLANDS_SOURCES={ROOT}")
        cls.addClassCleanup(cls.consumer.close)


class FlagsTest(FetchedTest):
    def setUp(self):
        super().setUp()
        self.commands = self.consumer.compile_commands()
        self.program = self.commands[self.consumer.source / "fall.cc"]

    def test_the_flags_of_the_library_are_its_own(self):
        own = self.commands[ROOT / "client/cpp/client.cc"]
        self.assertIn("-Wall", own)
        self.assertNotIn("-Werror", own)  # a compiler that is newer than ours may warn
        self.assertEqual(own_flags(self.program), [])

    def test_the_headers_compile_without_them_to_the_same_layout(self):
        done = subprocess.run([*self.program, "-fsyntax-only"], cwd=self.consumer.build,
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_tests_and_programs_are_no_part_of_its_build(self):
        own = {file.relative_to(ROOT).parts[0] for file in self.commands
               if file.is_relative_to(ROOT) and "proto" not in file.parts}
        self.assertEqual(own, {"client", "solver"})
        self.assertNotIn(ROOT / "server/main.cc", self.commands)
        self.assertNotIn(ROOT / "client/cpp/commands/main.cc", self.commands)


class BuildTest(FetchedTest):
    def test_it_builds_and_solves(self):
        said = self.consumer.build_and_run()
        self.assertEqual((said["gear"], said["shafts"]), ("fast 0.100 rad/s\n",) * 2)


if __name__ == "__main__":
    unittest.main()
