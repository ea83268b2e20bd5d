#!/usr/bin/env bash
# Installs missing packages, builds the server and the client, solves the problems of tests/data
# with an embedded server, and simulates forty objects in a bin and draws the result. Can be
# repeated: later runs skip what is already done.
#
#   deploy/quickstart.sh
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
log=build/quickstart.log
source deploy/steps.sh

install_and_build sap-server sap-client sap_islands sap_islands_client

begin "solving the problems of tests/data with sap-client and its embedded server"
build/release/bin/sap-client solve tests/data/*.json*

begin "simulating forty objects in a bin, every step solved by an embedded server"
build/release/bin/sap-client simulate clutter --bodies 40 --walls --time 2 \
  --picture build/clutter.svg
echo "Picture, one color per island: $PWD/build/clutter.svg"

begin "done"
echo "Next: build/release/bin/sap-client solve FILE, or build/release/bin/sap-server --help"
