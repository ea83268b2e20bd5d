"""The Debian packages of deploy/deb.sh install in a clean system, serve and compile there."""

import math
import subprocess
import unittest

from clean_root import run_in_clean_root
from consumer import PLAIN, ROOT, STACK

INSTALL = "apt-get install -y -qq --no-install-recommends {} > /dev/null 2>&1\n"

MODES = """
stat -c '%n %U:%G %a' /etc/sap-server /etc/sap-proxy /etc/sap-proxy/haproxy.cfg
dpkg -L sap-islands | grep -e bin/sap-worlds -e libmujoco
id -Gn sap-server; getent passwd sap-server | cut -d: -f6,7
"""

# As the unit's user, with the unit's own token file and sockets.
SERVE = """
echo "alice 0123456789abcdef0123456789abcdef" > /etc/sap-server/tokens
chgrp sap-server /etc/sap-server/tokens; chmod 640 /etc/sap-server/tokens
install -d -o sap-server /run/sap-server
setpriv --reuid sap-server --regid sap-server --init-groups \\
  sap-server --threads 1 --listen unix:/run/sap-server/socket \\
  --token-file /etc/sap-server/tokens > /dev/null 2>&1 &
while ! sap-client health --server unix:/run/sap-server/socket > /dev/null 2>&1; do sleep 0.1; done
echo 0123456789abcdef0123456789abcdef > token
sap-client solve /given/nasty_wedged_mu5.json --server unix:/run/sap-server/socket \\
  --token-file token > /dev/null && echo solved
kill $!; wait
"""

PURGE = """
apt-get purge -y -qq sap-islands > /dev/null 2>&1
ls -A /etc/sap-server; test ! -e /etc/sap-proxy && echo gone
"""

COMPILE = """
c++ /given/gear.cc $(pkg-config --cflags --libs sap_islands_client) -o gear && ./gear
cc /given/shafts.c $(pkg-config --cflags --libs sap_islands) -lm -o shafts && ./shafts
cc /given/shafts.c $(pkg-config --cflags --libs sap_islands_c_client) -lm -o shafts && ./shafts
"""

DART = """
cmake -G Ninja -S /given -B build \\
  -DSTACK=/given/stack.cc -DPLAIN=/given/plain_program.cc > /dev/null
cmake --build build > /dev/null
build/stack
build/plain
LD_PRELOAD=$(dpkg -L libsap-islands-dart0 | grep preload) build/plain 2>&1
"""


class PackageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Fails where lintian finds an error or a warning.
        subprocess.run([ROOT / "deploy/deb.sh"], check=True, stdout=subprocess.DEVNULL)
        files = (ROOT / "build/deb").glob("*.deb")
        cls.packages = {file.name.split("_")[0]: file for file in files}

    def test_the_service_has_its_user_and_modes_and_solves(self):
        script = INSTALL.format("/given/sap-islands_*.deb") + MODES + SERVE + PURGE
        said = run_in_clean_root(
            script, [self.packages["sap-islands"], ROOT / "tests/data/nasty_wedged_mu5.json"])
        self.assertEqual(said.splitlines(), [
            "/etc/sap-server root:sap-server 750", "/etc/sap-proxy root:sap-socket 750",
            "/etc/sap-proxy/haproxy.cfg root:root 644", "/usr/bin/sap-worlds", "sap-server",
            "/nonexistent:/usr/sbin/nologin", "solved",
            "tokens",  # an operator's file outlives the package
            "gone"])

    def test_the_libraries_bring_what_a_program_needs(self):
        said = run_in_clean_root(
            INSTALL.format("/given/*.deb g++ pkg-config") + COMPILE,
            [self.packages["libsap-islands-dev"], self.packages["libsap-islands0"],
             self.packages["libsap-islands-client0"],
             *(ROOT / "tests/packaging" / source for source in ("gear.cc", "shafts.c"))])
        self.assertEqual(said, "fast 0.100 rad/s\n" * 3)

    def test_a_program_of_dart_is_built_with_the_solver_and_another_takes_it_preloaded(self):
        if "libsap-islands-dart-dev" not in self.packages:
            self.skipTest("built without DART (deploy/install_packages.sh dart)")
        said = run_in_clean_root(
            INSTALL.format("/given/*.deb g++ cmake ninja-build") + DART,
            [*(file for name, file in self.packages.items() if name != "sap-islands"),
             ROOT / "tests/packaging/dart/CMakeLists.txt", STACK, PLAIN])
        stack, own, counted, slide = said.splitlines()
        self.assertRegex(stack, r"contacts in 1 island, solved; the top is at 0\.9(49|50)")
        cone = 2**2 / (2 * 0.4 * 9.81)  # how far the plain program's box slides [m]
        self.assertAlmostEqual(float(own), cone / math.sqrt(2), delta=2e-3)  # DART's pyramid
        self.assertAlmostEqual(float(slide), cone, delta=2e-3)
        self.assertRegex(counted, "^sap-islands: [0-9]+ steps of DART solved$")


if __name__ == "__main__":
    unittest.main()
