#!/usr/bin/env bash
# Cost of attacks for the server and another client: a table with a line for each attack, with the
# memory and the log that the server needed for it, and latencies of the client alone and during the
# attack, which is of C++ unless the filter says otherwise. Prints; judges nothing, since times
# depend on the machine. The tests judge the rest.
#
#   tests/e2e/hostile.sh [BUILD_DIRECTORY [GTEST_FILTER]]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bin=${1:-build/release}/bin
filter=${2:-*Cpp}

columns=(alone/ms beside/ms ratio)
printf '| %-45s | %9s %11s | %-26s | %-26s | %-26s |\n' "" memory log p50 p99 slowest
printf '| %-45s | %21s' attack ""
for _ in 1 2 3; do printf ' | %8s %9s %7s' "${columns[@]}"; done
printf ' |\n'
SAP_FULL_PROOF=1 "$bin/hostile_test" --gtest_filter="$filter" | grep '^|'
