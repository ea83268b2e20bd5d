#!/usr/bin/env bash
# Installs what is missing, builds everything and runs the tests. Safe to repeat; stops at the first
# step that fails.
#
#   tests/run.sh [--ci | --full] [--sanitize | --asan | --tsan] [--lint] [--filter REGEX]
#
#   (none)      ring 1: solver, server, clients for C++, C and Python, MuJoCo
#   --ci        ring 2, what every change has to pass: also the other simulators and frameworks,
#               several servers, the paper's cases, linters, packaging and the documentation
#   --full      ring 3: also the tests that take long, those of DART and gz-physics (without it:
#               where they are), the fuzzers for a minute each, and whether the tests take every
#               branch of the input validation
#   --asan      also the tests labelled asan under AddressSanitizer and UndefinedBehaviorSanitizer
#   --tsan      also the tests labelled tsan under ThreadSanitizer
#   --sanitize  both; each has a build of its own
#   --lint      also clang-tidy
#   --filter    only the C++ test suites whose names match
#
# tests/rings.txt says which test is in which ring.
# SAP_PROBLEMS_DIR names a directory of problems to use instead of the few in tests/data,
# SAP_PROBLEMS_CONSTRAINTS_DIR one instead of tests/data/constraints, SAP_PROBLEMS_SOFT_DIR one
# instead of tests/data/soft, SAP_PROBLEMS_STIFF_DIR one instead of tests/data/stiff,
# SAP_PROBLEMS_GRADIENTS_DIR one of derivatives instead of tests/data/gradients.
# E: the trap below speaks for what fails in a function, too.
set -Eeuo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
step="reading the command line"
trap 'echo "run.sh: failed while $step" >&2' ERR

begin() {
  step=$1
  printf '== %s (%d min %02d s)\n' "$step" $((SECONDS / 60)) $((SECONDS % 60))
}

ring=1
sanitizers=()
lint=false
filter=()
while (($# > 0)); do
  case $1 in
    --ci) ring=2 ;;
    --full) ring=3 ;;
    --sanitize) sanitizers=(asan tsan) ;;
    --asan) sanitizers+=(asan) ;;
    --tsan) sanitizers+=(tsan) ;;
    --lint) lint=true ;;
    --filter)
      (($# > 1)) || { echo "run.sh: --filter needs a regular expression" >&2; exit 2; }
      filter=(--tests-regex "$2")
      shift
      ;;
    *)
      echo "run.sh: unknown argument '$1'; see the head of tests/run.sh" >&2
      exit 2
      ;;
  esac
  shift
done

# A compiler cache is used where there is one; nothing needs it.
if command -v ccache > /dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi
jobs=$(nproc)

packages=(build tests)
case $ring in
  1)
    target=ring1
    python_option=()
    selection=(--label-exclude 'ring[23]')
    ;;
  2)
    packages+=(lint operations)
    target=all
    python_option=(--ci)
    selection=(--label-exclude ring3)
    ;;
  3)
    packages+=(lint operations packaging dart gz)
    target=all
    python_option=(--full)
    selection=()
    ;;
esac
if $lint; then packages+=(lint); fi

# build PRESET TARGET
build() {
  begin "building preset $1, target $2"
  cmake --preset "$1" > "build/$1.log" 2>&1 || { cat "build/$1.log" >&2; return 1; }
  cmake --build --preset "$1" --target "$2"
}

# run_tests PRESET ctest-argument...: ctest counts half processors; suites that wait more than they
# compute take one half (tests/CMakeLists.txt).
run_tests() {
  begin "running the tests of preset $1"
  ctest --preset "$1" --parallel $((2 * jobs)) "${selection[@]}" "${@:2}" "${filter[@]}"
}

# start NAME COMMAND...: runs a step, in a process group of its own, while those that follow run.
# finish NAME: waits for it and prints what it printed.
declare -A started=()
start() {
  setsid "${@:2}" > "build/$1.log" 2>&1 < /dev/null &
  started[$1]=$!
}
finish() {
  begin "waiting for $1"
  local status=0
  wait "${started[$1]}" || status=$?
  unset "started[$1]"
  cat "build/$1.log"
  return "$status"
}
trap '((${#started[@]} == 0)) || kill -- "${started[@]/#/-}" 2> /dev/null || true' EXIT

begin "installing packages"
deploy/install_packages.sh "${packages[@]}"
mkdir -p build

if ((ring > 1)); then
  begin "checking the format, the schema and the workflows"
  tests/lint.sh format schema workflows
fi

# The environments of Python and the documentation need nothing that is built.
if ((${#filter[@]} == 0)); then
  start python-environment tests/python.sh "${python_option[@]}" --prepare
  if ((ring > 1)); then start documentation deploy/docs.sh build; fi
  # The Python tests use one processor at a time, so they run while other things are compiled. What
  # they call comes first.
  build release "called_by_python_tests_of_$target"
  finish python-environment
  start python-tests tests/python.sh "${python_option[@]}"
fi
build release "$target"
if ((${#filter[@]} == 0)); then
  if ((ring > 1)); then finish documentation; fi
  finish python-tests
fi
# The tests have the processors to themselves, except for clang-tidy, which takes what they leave:
# they wait, and fleet_test runs alone.
if $lint; then
  # Linux gives each session a share (autogroup) and each process a share of that.
  start clang-tidy bash -c \
    '{ echo 19 > /proc/self/autogroup; } 2> /dev/null || true; exec nice -n 19 tests/lint.sh tidy'
fi
run_tests release
if $lint; then
  finish clang-tidy
fi
for sanitizer in "${sanitizers[@]}"; do
  build "$sanitizer" "${sanitizer}_tests"
done
for sanitizer in "${sanitizers[@]}"; do
  # A filter may leave nothing here; without one, finding no test is an error.
  run_tests "$sanitizer" --label-regex "$sanitizer" ${filter:+--no-tests=ignore}
done

if ((ring > 2 && ${#filter[@]} == 0)); then
  begin "fuzzing"
  deploy/install_packages.sh fuzz
  tests/fuzz/run.sh 60
  begin "counting the branches of the input validation"
  tests/coverage.sh
fi
begin "all passed"
