#!/usr/bin/env bash
# Builds the fuzzers with clang and lets each run for a while, starting from its corpus. What they
# find is left in build/fuzz/findings; mend it, and keep the input in tests/fuzz/corpora. Needs
# clang and its runtime (deploy/install_packages.sh fuzz).
#
#   tests/fuzz/run.sh [SECONDS_EACH [TARGET...]]      default: 600, all
#   tests/fuzz/run.sh keep [TARGET...]                adds to tests/fuzz/corpora the fewest of the
#                                                     inputs come upon that take new branches
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
seconds=${1:-600}
shift || true
targets=("$@")
((${#targets[@]} > 0)) || targets=(Solve Differentiate Session Batch Messages Json Flags Tokens)
build=build/fuzz
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=0 \
  -DCMAKE_CXX_COMPILER=clang++-14 \
  -DCMAKE_CXX_FLAGS="-fsanitize=fuzzer-no-link -Wno-unknown-warning-option" \
  -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g1" -DSAP_SANITIZE=address,undefined \
  -DSAP_BUILD_FUZZERS=ON > /dev/null
cmake --build "$build" --target "${targets[@]/#/fuzz_}"
for target in "${targets[@]}"; do
  name=${target,,}
  mkdir -p "$build/corpora/$name" "$build/findings"
  corpora=("$build/corpora/$name")
  [[ ! -d tests/fuzz/corpora/$name ]] || corpora+=("tests/fuzz/corpora/$name")
  if [[ $seconds == keep ]]; then
    mkdir -p "tests/fuzz/corpora/$name"
    "$build/bin/fuzz_$target" -set_cover_merge=1 -use_counters=0 -max_len=4096 \
      "tests/fuzz/corpora/$name" "$build/corpora/$name" > "$build/$name.log" 2>&1 ||
      { tail -40 "$build/$name.log" >&2; exit 1; }
    echo "$name: $(find "tests/fuzz/corpora/$name" -type f | wc -l) inputs kept"
    continue
  fi
  echo "== $name for $seconds s"
  "$build/bin/fuzz_$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -artifact_prefix="$build/findings/$name-" -print_final_stats=1 \
    "${corpora[@]}" > "$build/$name.log" 2>&1 ||
    { tail -40 "$build/$name.log" >&2; echo "fuzz: a finding in $build/findings" >&2; exit 1; }
  grep --text -E "stat::number_of_executed_units|stat::new_units" "$build/$name.log"
done
