#!/usr/bin/env bash
# A server under more work than it can do: goodput and latencies at 1.5, 2, 5 and 10 times its peak,
# and in a storm of retries, with the server on one core and the load on another. Prints a table;
# judges nothing, since times depend on the machine. "within 1ms" is the share of refusals that the
# server sent within a millisecond of the arrival of their call, by its metrics.
#
#   tests/e2e/overload.sh [BUILD_DIRECTORY [SECONDS_PER_LINE [PROBLEM]]]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bin=${1:-build/release}/bin
seconds=${2:-10}
problem=${3:-tests/data/heaps_300x3_t1p50.json.gz}
work=$(mktemp -d)
cores=$(nproc)
pids=()
finish() {
  for pid in "${pids[@]}"; do kill "$pid" 2> /dev/null || true; done
  rm -rf "$work"
}
trap finish EXIT

# As one island the default problem takes 5 ms and more.
options=(--islands off)
metrics=127.0.0.1:$((20000 + RANDOM % 20000))

taskset --cpu-list 0 "$bin/sap-server" --listen "unix:$work/socket" --threads 1 --io-threads 1 \
  --inline-below-us 0 --queue-timeout-s 0.2 --solver-nice 19 --log-level error \
  --metrics-listen "$metrics" > "$work/out" &
server=$!
pids+=("$server")
until grep -qs listening "$work/out"; do
  kill -0 "$server" 2> /dev/null || exit 1
  sleep 0.05
done

# refusals: how many there were, and how many of them took at most a millisecond.
refusals() {
  curl --silent "http://$metrics/metrics" | awk '
    /^sap_refusal_seconds_count/ {all = $2}
    /^sap_refusal_seconds_bucket\{le="0.001"\}/ {quick = $2}
    END {print all + 0, quick + 0}'
}

# load NAME FLAG...: runs the generator, and adds a line to the table.
load() {
  local name=$1 csv before after memory
  shift
  csv=$(mktemp -u "$work/csv.XXXXXX")
  before=$(refusals)
  taskset --cpu-list $((cores - 1)) "$bin/sap-client" bench "$problem" --mode unary \
    --server "unix:$work/socket" --duration "$seconds" --warmup 1 --csv "$csv" "${options[@]}" \
    "$@" > /dev/null || true
  after=$(refusals)
  memory=$(awk '/VmRSS/ {print $2 / 1024}' "/proc/$server/status")
  awk -F, -v name="$name" -v memory="$memory" -v refusals="$before $after" 'NR == 2 {
    split(refusals, r, " ")
    quick = r[3] > r[1] ? sprintf("%.2f %%", 100 * (r[4] - r[2]) / (r[3] - r[1])) : "-"
    printf "%-14s %9.1f %9.1f %9.1f %9.2f %9.2f %9.2f %9.2f %10s %8.0f\n", name, $5 / $4, $6 / $4,
      $7 / $4, $8 * 1e3, $10 * 1e3, $13 * 1e3, $14 * 1e3, quick, memory }' "$csv"
}

printf '%-14s %9s %9s %9s %9s %9s %9s %9s %10s %8s\n' load answered refused failed p50/ms p99/ms \
  refp50/ms refp99/ms "within 1ms" MB
load peak --workers 4 | tee "$work/peak"
peak=$(awk '{print $2}' "$work/peak")
for factor in 1.5 2 5 10; do
  load "${factor}x" --workers 64 --rate "$(awk -v p="$peak" -v f="$factor" 'BEGIN {print p * f}')"
done
load "retry storm" --workers 64 --retry-at-once
load "high alone" --workers 1 --priority high
load "2x normal" --workers 64 --rate "$(awk -v p="$peak" 'BEGIN {print p * 2}')" > /dev/null &
pids+=("$!")
sleep 1
load "high, 2x" --workers 1 --priority high
wait "${pids[-1]}"
load "peak again" --workers 4
