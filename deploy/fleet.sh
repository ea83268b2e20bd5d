#!/usr/bin/env bash
# Three servers and HAProxy on this machine, on free ports of the loopback: simulates clutter
# through them while each server is restarted in turn, first announced (SIGTERM), then killed
# (SIGKILL), and prints the number of steps, of failed calls, and whether all bits equal those of a
# run without restarts. Draws the load of each server and the latency of each step over time.
# Installs and builds what is missing. Whatever it starts has ended when it ends, also after Ctrl-C.
# Safe to repeat.
#
#   deploy/fleet.sh [ARGUMENT...]      arguments: see --help
#
# PYTHON: the interpreter to use (3.10 or later).
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
log=build/fleet.log
source deploy/steps.sh

install_and_build sap-server sap_islands sap_islands_client

begin "making a Python environment in build/fleet"
make_environment "$PWD/build/fleet" mujoco,plot

begin "simulating through three servers"
export SAP_SERVER=$PWD/build/release/bin/sap-server
export SAP_LIBRARY=$PWD/build/release/lib/libsap_islands.so
exec build/fleet/bin/python deploy/fleet --picture build/fleet.svg "$@"
