#!/usr/bin/env bash
# Peak memory of the server during one call, by kind of problem: MB of message, MB in addition to an
# idle server, that per byte of message, and the same as admission counts it. Prints; the test
# itself (tests/e2e/hostile/memory_test.cc) fails where a call takes more than is counted.
#
#   tests/e2e/memory.sh [BUILD_DIRECTORY]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bin=${1:-build/release}/bin
printf '| %-28s | %8s | %8s | %8s | %8s |\n' problem wire/MB peak/MB per_byte counted
SAP_FULL_PROOF=1 "$bin/hostile_test" --gtest_filter='MemoryTest.ACall*' | grep '^|'
