#!/usr/bin/env bash
# Builds the fuzzers with clang and lets each run for a while, starting from its corpus. What they
# find is left in build/fuzz/findings; mend it, and add the input to the archive of its target in
# tests/fuzz/corpora. Needs clang and its runtime (deploy/install_packages.sh fuzz).
#
#   tests/fuzz/run.sh [SECONDS_EACH [TARGET...]]      default: 600, all
#   tests/fuzz/run.sh keep [TARGET...]                adds to tests/fuzz/corpora the fewest of the
#                                                     inputs come upon that take new branches
#   tests/fuzz/run.sh add TARGET FILE...              adds the files
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=build/fuzz

# unpack NAME: the stored corpus, into build/fuzz/stored/NAME, in place of what is there.
unpack() {
  rm -rf "$build/stored/$1"
  mkdir -p "$build/stored/$1"
  [[ ! -e tests/fuzz/corpora/$1.tar ]] ||
    tar --extract --file "tests/fuzz/corpora/$1.tar" --directory "$build/stored/$1"
}

# pack NAME: stores build/fuzz/stored/NAME. The bytes depend on names and contents alone.
pack() {
  find "$build/stored/$1" -type f -printf '%P\n' | LC_ALL=C sort |
    tar --create --file "tests/fuzz/corpora/$1.tar" --directory "$build/stored/$1" \
      --format=ustar --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=644 \
      --verbatim-files-from --files-from=-
}

if [[ ${1:-} == add ]]; then
  (($# > 2)) || { echo "run.sh: add needs a target and files" >&2; exit 2; }
  name=${2,,}
  unpack "$name"
  for file in "${@:3}"; do
    cp "$file" "$build/stored/$name/$(sha1sum < "$file" | cut -d' ' -f1)"
  done
  pack "$name"
  exit
fi

seconds=${1:-600}
shift || true
targets=("$@")
((${#targets[@]} > 0)) ||
  targets=(Solve Differentiate Session Batch Messages Json Flags Tokens Worlds)
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
  unpack "$name"
  if [[ $seconds == keep ]]; then
    "$build/bin/fuzz_$target" -set_cover_merge=1 -use_counters=0 -max_len=4096 \
      "$build/stored/$name" "$build/corpora/$name" > "$build/$name.log" 2>&1 ||
      { tail -40 "$build/$name.log" >&2; exit 1; }
    pack "$name"
    echo "$name: $(find "$build/stored/$name" -type f | wc -l) inputs kept"
    continue
  fi
  echo "== $name for $seconds s"
  "$build/bin/fuzz_$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -artifact_prefix="$build/findings/$name-" -print_final_stats=1 \
    "$build/corpora/$name" "$build/stored/$name" > "$build/$name.log" 2>&1 ||
    { tail -40 "$build/$name.log" >&2; echo "fuzz: a finding in $build/findings" >&2; exit 1; }
  grep --text -E "stat::number_of_executed_units|stat::new_units" "$build/$name.log"
done
