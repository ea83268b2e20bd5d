#!/usr/bin/env bash
# Which branches of the doors their tests do not take: the checks of problems, options, flags,
# addresses and tokens. Builds these tests with clang's coverage, runs them, and prints every
# outcome of a condition that never came about; fails if there is one. Needs clang
# (deploy/install_packages.sh fuzz).
#
#   tests/coverage.sh
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=build/coverage
tests=(server_messages_test solver_problem_test solver_cholesky_test server_config_test
  server_auth_test)
doors=(server/engine/problem_decoder.cc
  solver/problem/{contact_problem,input_checker,read_trees,read_contacts,rigid_bodies}.cc
  solver/cholesky/dense_cholesky.h server/server_config.cc
  server/listen_address.cc server/auth/bearer_tokens.cc)

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
llvm-profdata-14 merge --output "$build/doors.profdata" "$build"/*.profraw
llvm-cov-14 export "${objects[@]:1}" --instr-profile "$build/doors.profdata" "${doors[@]}" \
  > "$build/doors.json"
python3 - "$build/doors.json" <<'PYTHON'
import collections, json, os, sys

# One branch of a template counts once, whichever of its instances took it.
taken = collections.defaultdict(lambda: [0, 0])
with open(sys.argv[1]) as file:
    for door in json.load(file)["data"][0]["files"]:
        for line, column, _, _, true, false, *_ in door["branches"]:
            counts = taken[os.path.relpath(door["filename"]), line, column]
            counts[0] += true
            counts[1] += false
missed = 0
for (door, line, column), counts in sorted(taken.items()):
    for outcome, count in zip(("true", "false"), counts):
        if count == 0:
            missed += 1
            source = open(door).read().splitlines()[line - 1].strip()
            print(f"{door}:{line}:{column} is never {outcome}: {source}")
print(f"coverage: {2 * len(taken) - missed} of {2 * len(taken)} outcomes")
sys.exit(missed > 0)
PYTHON
