#!/usr/bin/env bash
# From a fresh clone to moving clutter: installs what is missing, builds the server and the client,
# solves the problems of tests/data through an embedded server, and simulates forty objects in a bin
# with a picture. Safe to repeat; later runs only do what is left to do.
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

# Long output goes to the log; its end is shown if the command fails.
logged() {
  "$@" >> "$log" 2>&1 || {
    tail -n 40 "$log" >&2
    echo "quickstart: $1 failed; all of its output is in $log" >&2
    return 1
  }
}

begin "installing packages"
deploy/install_packages.sh build tests

# A compiler cache is used where there is one; nothing needs it.
if command -v ccache > /dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi
mkdir -p build
: > "$log"

begin "configuring (log: $log)"
logged cmake --preset release

begin "building build/release/bin/sap-server and sap-client (a few minutes the first time)"
logged cmake --build --preset release --target sap-server sap-client

begin "solving the problems of tests/data with sap-client and its embedded server"
build/release/bin/sap-client solve tests/data/*.json*

begin "dropping forty objects in a bin, every step solved by an embedded server"
build/release/bin/sap-client simulate clutter --bodies 40 --walls --time 2 \
  --picture build/clutter.svg
echo "The picture, one color per island: $PWD/build/clutter.svg"

begin "done"
echo "Next: build/release/bin/sap-client solve FILE, or build/release/bin/sap-server --help"
