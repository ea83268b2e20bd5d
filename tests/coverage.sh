#!/usr/bin/env bash
# Which branches of the input validation (of problems, options, flags, addresses and tokens) the
# tests do not take. Builds the tests of these files with clang's coverage, runs them, and prints
# every outcome of a condition that never came about; fails if there is one. Needs clang
# (deploy/install_packages.sh fuzz).
#
#   tests/coverage.sh
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=build/coverage
tests=(codec_test solver_problem_test solver_cholesky_test server_config_test
  server_auth_test flag_checks_test)
validation=(proto/codec/problem_decoder.cc
  solver/problem/{contact_problem,input_checker,read_trees,read_contacts,rigid_bodies}.cc
  solver/cholesky/dense_cholesky.h server/server_config.cc
  server/listen_address.cc proto/flags/flag_checks.h server/auth/bearer_tokens.cc)

cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER=clang++-14 \
  -DCMAKE_CXX_FLAGS="-fprofile-instr-generate -fcoverage-mapping -Wno-unknown-warning-option" \
  > /dev/null
cmake --build "$build" --target "${tests[@]}"
rm -f "$build"/*.profraw
objects=()
for test in "${tests[@]}"; do
  LLVM_PROFILE_FILE=$build/$test.profraw "$build/bin/$test" > "$build/$test.log" 2>&1 ||
    { cat "$build/$test.log" >&2; exit 1; }
  objects+=(--object "$build/bin/$test")
done
llvm-profdata-14 merge --output "$build/validation.profdata" "$build"/*.profraw
llvm-cov-14 export "${objects[@]:1}" --instr-profile "$build/validation.profdata" \
  "${validation[@]}" > "$build/validation.json"
python3 - "$build/validation.json" <<'PYTHON'
import collections, json, os, sys

# One branch of a template counts once, whichever of its instances took it.
taken = collections.defaultdict(lambda: [0, 0])
with open(sys.argv[1]) as file:
    for source_file in json.load(file)["data"][0]["files"]:
        for line, column, _, _, true, false, *_ in source_file["branches"]:
            counts = taken[os.path.relpath(source_file["filename"]), line, column]
            counts[0] += true
            counts[1] += false
missed = 0
for (path, line, column), counts in sorted(taken.items()):
    for outcome, count in zip(("true", "false"), counts):
        if count == 0:
            missed += 1
            source = open(path).read().splitlines()[line - 1].strip()
            print(f"{path}:{line}:{column} is never {outcome}: {source}")
print(f"coverage: {2 * len(taken) - missed} of {2 * len(taken)} outcomes")
sys.exit(missed > 0)
PYTHON
