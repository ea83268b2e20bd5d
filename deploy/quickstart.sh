#!/usr/bin/env bash
# Installs missing packages, builds the server and the client, solves the problems of tests/data
# with an embedded server, and simulates forty objects in a bin and draws the result. Can be
# repeated: later runs skip what is already done.
#
#   deploy/quickstart.sh
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
log=build/quickstart.log
step="starting"
trap 'echo "quickstart: failed while $step" >&2' ERR

begin() {
  step=$1
  echo "== $step"
}

# Output goes to the log; its last lines are shown if the command fails.
logged() {
  "$@" >> "$log" 2>&1 || {
    tail -n 40 "$log" >&2
    echo "quickstart: $1 failed; the complete output is in $log" >&2
    return 1
  }
}

begin "installing packages"
deploy/install_packages.sh build tests

# Uses a compiler cache if one is installed.
if command -v ccache > /dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi
mkdir -p build
: > "$log"

begin "configuring (log: $log)"
logged cmake --preset release

begin "building sap-server, sap-client and libsap_islands.so (a few minutes the first time)"
logged cmake --build --preset release --target sap-server sap-client sap_islands

begin "solving the problems of tests/data with sap-client and its embedded server"
build/release/bin/sap-client solve tests/data/*.json*

begin "simulating forty objects in a bin, every step solved by an embedded server"
build/release/bin/sap-client simulate clutter --bodies 40 --walls --time 2 \
  --picture build/clutter.svg
echo "Picture, one color per island: $PWD/build/clutter.svg"

begin "done"
echo "Next: build/release/bin/sap-client solve FILE, or build/release/bin/sap-server --help"
