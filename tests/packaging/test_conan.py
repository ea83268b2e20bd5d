"""The recipe of deploy/conan builds a package that a project finds, links and runs."""

import os
import pathlib
import shutil
import tempfile
import unittest

from consumer import ROOT, VERSION, run

CONAN = "conan==2.9.3"


class ConanTest(unittest.TestCase):
    def test_a_project_that_requires_the_package_builds_and_solves(self):
        with tempfile.TemporaryDirectory() as scratch:
            directory = pathlib.Path(scratch)
            run("python3", "-m", "venv", directory / "venv")
            run(directory / "venv/bin/pip", "install", "--quiet", CONAN)
            conan = directory / "venv/bin/conan"
            environment = {**os.environ, "CONAN_HOME": str(directory / "home")}
            run(conan, "profile", "detect", env=environment)
            said = run(conan, "create", ROOT / "deploy/conan",
                       f"--test-folder={self.consumer(directory)}",
                       "--conf=tools.cmake.cmaketoolchain:generator=Ninja", env=environment)
            for line in ("RUN: ./gear\nfast 0.100 rad/s", "RUN: ./shafts\nfast 0.100 rad/s"):
                self.assertIn(line, said)
            listed = run(conan, "list", "sap-islands", env=environment)
            self.assertIn(f"sap-islands/{VERSION}", listed)

    @staticmethod
    def consumer(directory):
        """A copy of the project, which Conan builds where it is."""
        shutil.copytree(ROOT / "tests/packaging", directory / "packaging")
        return directory / "packaging/installed"


if __name__ == "__main__":
    unittest.main()
