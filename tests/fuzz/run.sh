#!/usr/bin/env bash
# Builds the fuzzers with clang and lets each run for a while, starting from its corpus. What they
# find is left in build/fuzz/findings; mend it, and keep the input in tests/fuzz/corpora.
#
#   tests/fuzz/run.sh [SECONDS_EACH]      default: 600
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
seconds=${1:-600}
build=build/fuzz
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DCMAKE_CXX_COMPILER=clang++-14 -DCMAKE_CXX_FLAGS="-fsanitize=fuzzer-no-link" \
  -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g1" -DSAP_SANITIZE=address,undefined \
  -DSAP_BUILD_FUZZERS=ON > /dev/null
for target in Solve Session Json Flags Tokens; do
  cmake --build "$build" --target "fuzz_$target"
  name=${target,,}
  mkdir -p "$build/corpora/$name" "$build/findings" "tests/fuzz/corpora/$name"
  echo "== $name for $seconds s"
  "$build/bin/fuzz_$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -artifact_prefix="$build/findings/$name-" -print_final_stats=1 \
    "$build/corpora/$name" "tests/fuzz/corpora/$name" > "$build/$name.log" 2>&1 ||
    { tail -40 "$build/$name.log" >&2; echo "fuzz: a finding in $build/findings" >&2; exit 1; }
  grep -E "stat::number_of_executed_units|stat::new_units" "$build/$name.log"
done
