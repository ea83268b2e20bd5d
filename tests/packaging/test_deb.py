"""The Debian packages of deploy/deb.sh install in a clean system, serve and compile there."""

import subprocess
import unittest

from clean_root import run_in_clean_root
from consumer import ROOT

INSTALL = "apt-get install -y -qq --no-install-recommends {} > /dev/null 2>&1\n"

MODES = """
stat -c '%n %U:%G %a' /etc/sap-server /etc/sap-proxy /etc/sap-proxy/haproxy.cfg
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
            "/etc/sap-proxy/haproxy.cfg root:root 644", "sap-server",
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


if __name__ == "__main__":
    unittest.main()
