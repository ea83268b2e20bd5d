"""The wheel of deploy/wheel.sh works in a system without compiler, clone and Debian's libraries."""

import os
import pathlib
import subprocess
import tempfile
import unittest
import zipfile

from clean_root import run_in_clean_root
from consumer import ROOT, VERSION

# In the process by the wheel's library, and by the wheel's server.
STEP = """
import importlib.util
import sap_islands as sap
assert not any(map(importlib.util.find_spec, ("grpc", "google")))
problem = sap.load_problem("/given/nasty_wedged_mu5.json")
for address in "embedded:", "embedded:process":
    with sap.connect(address) as client:
        print(client.solve(problem).solved, client.info().instruction_set)
"""

# pip reads PIP_... where a network needs more than its defaults.
INSTALL = """
! command -v c++ cc gcc cmake protoc > /dev/null
begin=$(date +%s)
python3 -m venv /venv
/venv/bin/pip install --quiet /given/sap_islands-*.whl
/venv/bin/python /given/step.py
echo "$(($(date +%s) - begin)) s from an empty environment to the first solved step" > /given/time
"""

PROGRAMS = """
export PATH=/venv/bin:$PATH
sap-server --version
sap-client solve /given/nasty_wedged_mu5.json > /dev/null && echo solved
sap-client simulate clutter --time 0.1 > /dev/null && echo simulated
SAP_INSTRUCTION_SET=x86-64 python /given/step.py
SAP_INSTRUCTION_SET=pentium sap-client --version 2>&1 || echo refused
cat /given/time
"""


class WheelTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        subprocess.run([ROOT / "deploy/wheel.sh"], check=True, stdout=subprocess.DEVNULL)
        (cls.wheel,) = (ROOT / "build/wheel").glob("*.whl")

    def test_it_is_for_any_python_and_small(self):
        self.assertRegex(self.wheel.name, r"-py3-none-manylinux_2_3\d_x86_64\.whl$")
        self.assertLess(self.wheel.stat().st_size, 40e6)

    def test_it_steps_worlds_and_has_no_mujoco(self):
        names = zipfile.ZipFile(self.wheel).namelist()
        self.assertEqual(len([name for name in names if name.endswith("/sap-worlds")]), 2)
        self.assertEqual([name for name in names if "libmujoco" in name], [])

    def test_one_command_installs_what_solves(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        step = pathlib.Path(directory.name) / "step.py"
        step.write_text(STEP)
        settings = "".join(f"export {name}='{value}'\n" for name, value in os.environ.items()
                           if name.startswith("PIP_"))
        said = run_in_clean_root(
            settings + INSTALL + PROGRAMS,
            [self.wheel, step, ROOT / "tests/data/nasty_wedged_mu5.json"],
            ["python3", "python3-venv"])
        *lines, time = [line for line in said.splitlines() if not line.startswith("WARNING")]
        print(time)
        self.assertEqual(lines, [
            "True x86-64-v3", "True x86-64-v3", VERSION, "solved", "simulated",
            "True x86-64", "True x86-64",
            "sap-client: $SAP_INSTRUCTION_SET is pentium; builds: x86-64-v3, x86-64",
            "refused"])


if __name__ == "__main__":
    unittest.main()
