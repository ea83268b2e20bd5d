"""The example of a language, built with stock tools, prints what the page says.

test_examples.py LANGUAGE SERVER     of client/examples; path of sap-server
"""

import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = ROOT / "client/examples/README.md"


class ExampleTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        done = subprocess.run(
            [ROOT / "client/examples/run.sh", language],
            env=os.environ | {"SAP_SERVER": server, "LC_ALL": "C.UTF-8"},
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        cls.printed = done.stdout

    def test_the_ball_rolls_with_five_sevenths_of_the_push(self):
        speed, turning, force = map(
            float, re.findall(r"(\S+) (?:m/s|rad/s|N)\b", self.printed)
        )
        self.assertAlmostEqual(speed, 0.1 * 5 / 7, delta=5e-4)
        self.assertAlmostEqual(0.1 * turning, speed, delta=5e-4)
        # Its weight, less by the damping of a contact in the first step.
        self.assertAlmostEqual(force, 9.81, delta=0.5)

    def test_it_prints_what_the_page_shows(self):
        (shown,) = re.findall(r"^```text\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
        self.assertEqual(self.printed, shown)


if __name__ == "__main__":
    language, server = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
