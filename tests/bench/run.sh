#!/usr/bin/env bash
# Times the solver against its peers on the same work: Drake, MuJoCo, Clarabel and CHOLMOD.
#
#   tests/bench/run.sh [--mujoco VERSION] [--full] [--threads N] [--problems DIR] [CASE...]
#   tests/bench/run.sh --before REVISION [--threads N] [--rounds N] [--problems DIR] [--busy]
#                      [--predicted] [NAME...]
#
# Installs the peers in an environment of its own (build/bench/venv), builds the benchmarks
# (build/bench), and prints the tables; they are also in build/bench/results. CASE as at the head of
# bench.py: drake, mujoco/bin/160, scaling, ... Run it on a machine that does nothing else.
# Another version of MuJoCo than that of requirements.txt has an environment and results of its own.
#
# With --before it times the solver of a git revision, which it builds in build/bench-before, and
# that of the tree as it is, in turn (before_after.py), and needs no peers; --before HEAD shows what
# an uncommitted change does or, without one, the noise of the machine.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."

fail() {
  echo "run.sh: $*" >&2
  exit 1
}

# build_benchmarks TREE TARGET...
build_benchmarks() {
  local build=$1/build/bench
  echo "== building the benchmarks in ${build#./}"
  mkdir -p "$build"
  if command -v ccache > /dev/null; then
    export CMAKE_CXX_COMPILER_LAUNCHER=ccache
  fi
  cmake -S "$1" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DSAP_BUILD_BENCHMARKS=ON \
    > "$build/configure.log" || fail "cmake cannot configure $1; see $build/configure.log"
  cmake --build "$build" --target "${@:2}" || fail "$1 does not build"
}

print_machine() {
  grep --max-count=1 'model name' /proc/cpuinfo || true
  echo "cores: $(nproc); load before: $(cut -d' ' -f1-3 /proc/loadavg); $(date -u +%F)"
}

# measure_by_this_program TREE COMMIT: builds solve_benchmark of this tree with the solver of that
# one, so that both are measured alike, if that solver has what it calls.
measure_by_this_program() {
  local ours=tests/bench/solve_benchmark.cc theirs=$1/tests/bench/solve_benchmark.cc
  local build=(cmake --build "$1/build/bench" --target solve_benchmark)
  if cmp --silent "$ours" "$theirs"; then return; fi
  cp "$ours" "$theirs"
  if ! "${build[@]}" > "$1/solve_benchmark.log" 2>&1; then
    echo "before: by its own solve_benchmark, since that of the tree does not build with it" \
      "($1/solve_benchmark.log)"
    git show "$2:$ours" > "$theirs"
    "${build[@]}"
  fi
}

# compare_with REVISION ARGUMENT...
compare_with() {
  local revision=$1 commit tree compare programs
  commit=$(git rev-parse --verify --quiet "$revision^{commit}") ||
    fail "there is no revision '$revision'"
  git cat-file -e "$commit:tests/bench/solve_benchmark.cc" 2> /dev/null ||
    fail "revision '$revision' has no tests/bench/solve_benchmark.cc"
  tree=build/bench-before/${commit:0:12}
  compare=(python3 -B tests/bench/before_after.py --trees "$tree" . --out build/bench/before_after)
  "${compare[@]}" --check "${@:2}"
  deploy/install_packages.sh build tests bench
  if [[ ! -d $tree ]]; then
    rm -rf "$tree.new"
    mkdir -p "$tree.new"
    git archive "$commit" | tar --extract --directory "$tree.new"
    ln -s "$PWD/.deps" "$tree.new/.deps"
    mv "$tree.new" "$tree"
  fi
  # Paths relative to the build make sources that both trees have the same for the cache.
  export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
  programs=(solve_benchmark)
  # Revisions before 2026-11-23 have no predictions.
  [[ ! -e $tree/tests/bench/task_graph_benchmark.cc ]] || programs+=(task_graph_benchmark)
  build_benchmarks "$tree" "${programs[@]}"
  measure_by_this_program "$tree" "$commit"
  build_benchmarks . solve_benchmark task_graph_benchmark
  print_machine
  git log -1 --format='before: %h %s' "$commit"
  git log -1 --format="after: %h %s$(git diff --quiet HEAD || echo ', and changes')"
  "${compare[@]}" "${@:2}"
}

if [[ ${1:-} == --before ]]; then
  (($# > 1)) || fail "--before needs a revision"
  compare_with "${@:2}"
  exit
fi

deploy/install_packages.sh build tests bench
mkdir -p build/bench

venv=build/bench/venv results=build/bench/results other=()
if [[ ${1:-} == --mujoco ]]; then
  other=("mujoco==$2")
  venv+=-mujoco-$2 results+=-mujoco-$2
  shift 2
fi
pip=("$venv/bin/pip" install --quiet --disable-pip-version-check)
required=(tests/bench/requirements.txt tests/bench/requirements-models.txt)
if ! cat "${required[@]}" | cmp --silent - "$venv/requirements.txt"; then
  echo "== installing the peers into $venv"
  rm -rf "$venv"
  python3 -m venv "$venv"
  "${pip[@]}" --requirement tests/bench/requirements.txt
  "${pip[@]}" --no-deps --requirement tests/bench/requirements-models.txt
  if ((${#other[@]} > 0)); then
    # Before the other one comes: 4.0 has its files in a package of its own, and what removed 3.17
    # afterwards would take them along.
    "$venv/bin/pip" uninstall --quiet --yes mujoco
    "${pip[@]}" "${other[@]}"
  fi
  cat "${required[@]}" > "$venv/requirements.txt"
fi
# Makes problems of Drake's plants.
"${pip[@]}" ./client/python

build_benchmarks . sap_bench_solver drake_timer sap_islands sap_islands_client \
  sap_islands_mujoco sap-server sap-client activity_benchmark block_cholesky_benchmark \
  coupled_benchmark gradient_benchmark sequence_benchmark sharing_benchmark solve_benchmark \
  step_stages stop_benchmark task_graph_benchmark

print_machine
# The adapter for MuJoCo needs the library.
SAP_LIBRARY=$PWD/build/bench/lib/libsap_islands.so \
  "$venv/bin/python" tests/bench/bench.py --build build/bench \
  --out "$results" "$@"
"$venv/bin/python" tests/bench/plots.py "$results" "$results"
