#!/usr/bin/env bash
# Shows a simulation in the browser from a fresh clone: installs missing system packages, builds the
# solver, makes an environment with the Python client under build/view, and runs the view command.
# Safe to repeat.
#
#   client/python/view.sh [SCENE] [ARGUMENT...]     arguments: see python -m sap_islands view --help
#
# PYTHON: the interpreter to use (3.10 or later). SAP_LIBRARY: a built libsap_islands.so to use.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"
environment=$root/build/view
mkdir -p build

if [[ -z ${SAP_LIBRARY:-} && ! -e build/release/lib/libsap_islands.so ]]; then
  deploy/install_packages.sh build tests
  cmake --preset release > build/view.log 2>&1 || { cat build/view.log >&2; exit 1; }
  cmake --build --preset release --target sap_islands
fi
# The environment is made anew when the sources have changed, for example after a pull.
key=$(find client/python/src/sap_islands client/python/pyproject.toml proto/sap -type f \
  -not -path '*/v1/*.py*' -not -path '*/__pycache__/*' | LC_ALL=C sort | xargs cat | sha256sum |
  cut -c1-24)
if [[ $(cat "$environment/key" 2> /dev/null || true) != "$key" ]]; then
  "${PYTHON:-python3}" -m venv "$environment" || {
    echo "view.sh: cannot make an environment; is python3-venv installed?" >&2
    exit 1
  }
  "$environment/bin/pip" install --quiet --disable-pip-version-check \
    "$root/client/python[mujoco,view]"
  echo "$key" > "$environment/key"
fi
if (($# == 0)); then
  set -- clutter
fi
exec "$environment/bin/sap-islands" view "$@"
