#!/usr/bin/env bash
# Times the solver against its peers on the same work: Drake, MuJoCo, Clarabel and CHOLMOD.
#
#   tests/bench/run.sh [--mujoco VERSION] [--full] [--threads N] [--problems DIR] [CASE...]
#
# Installs the peers in an environment of its own (build/bench/venv), builds the benchmarks
# (build/bench), and prints the tables; they are also in build/bench/results. CASE as at the head of
# bench.py: drake, mujoco/bin/160, scaling, ... Run it on a machine that does nothing else.
# Another version of MuJoCo than that of requirements.txt has an environment and results of its own.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
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

echo "== building the benchmarks in build/bench"
if command -v ccache > /dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi
cmake -S . -B build/bench -G Ninja -DCMAKE_BUILD_TYPE=Release -DSAP_BUILD_BENCHMARKS=ON \
  > build/bench/configure.log
cmake --build build/bench --target sap_bench_solver drake_timer sap_islands sap_islands_client \
  sap_islands_mujoco sap-server sap-client block_cholesky_benchmark coupled_benchmark \
  gradient_benchmark sequence_benchmark solve_benchmark stop_benchmark task_graph_benchmark

grep --max-count=1 'model name' /proc/cpuinfo || true
echo "cores: $(nproc); load before: $(cut -d' ' -f1-3 /proc/loadavg); $(date -u +%F)"
# The adapter for MuJoCo needs the library.
SAP_LIBRARY=$PWD/build/bench/lib/libsap_islands.so \
  "$venv/bin/python" tests/bench/bench.py --build build/bench \
  --out "$results" "$@"
"$venv/bin/python" tests/bench/plots.py "$results" "$results"
