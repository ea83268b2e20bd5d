#!/usr/bin/env bash
# Shows a simulation in the browser from a fresh clone: installs missing system packages, builds the
# solver, makes an environment with the Python client under build/view, and runs the view command.
# Safe to repeat.
#
#   client/python/view.sh [SCENE] [ARGUMENT...]     arguments: see python -m sap_islands view --help
#
# PYTHON: the interpreter to use (3.10 or later). SAP_LIBRARY: a built libsap_islands.so to use.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
environment=$PWD/build/view
log=build/view.log
source deploy/steps.sh

if [[ -z ${SAP_LIBRARY:-} && ! -e build/release/lib/libsap_islands.so ]]; then
  install_and_build sap_islands
fi
make_environment "$environment" mujoco,view
if (($# == 0)); then
  set -- clutter
fi
exec "$environment/bin/sap-islands" view "$@"
