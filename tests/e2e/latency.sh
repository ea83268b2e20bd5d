#!/usr/bin/env bash
# Time that the service adds to a solve, and its load when it is idle. Prints figures; judges
# nothing, since times depend on the machine.
#
#   tests/e2e/latency.sh [BUILD_DIRECTORY [SECTION...]]
#
#   overhead  steps and unary calls of 20 contacts, in pairs with a bare echo and with this process
#   prompt    the same where low latency is asked for
#   batch     batches of 64, one at a time and four: problems per second against this process
#   gaps      steps after pauses of 1 ms to 1 s; with SAP_LONG=1 also of 60 s
#   budget    how much later than its time budget a solve ends, and how many return an iterate
#   idle      start to SERVING; processor time and memory of a server that nobody calls
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
bin=${1:-build/release}/bin
shift || true
sections=("$@")
((${#sections[@]} > 0)) || sections=(overhead prompt batch gaps budget idle)
small=tests/data/clutter_bin_8_t2p00.json
work=$(mktemp -d)
pids=()
finish() {
  for pid in "${pids[@]}"; do kill "$pid" 2> /dev/null || true; done
  rm -rf "$work"
}
trap finish EXIT

# start NAME COMMAND...: waits until it listens on unix:$work/NAME; ends with its log if it ends.
start() {
  local name=$1
  shift
  "$@" --listen "unix:$work/$name" > "$work/$name.out" 2> "$work/$name.log" &
  pids+=("$!")
  until grep -qs listening "$work/$name.out"; do
    kill -0 "$!" 2> /dev/null || { cat "$work/$name.log" >&2; exit 1; }
    sleep 0.01
  done
}

bench() { "$bin/sap-client" bench "$@"; }

overhead() {
  local mode
  for mode in session unary; do
    echo "== $mode"
    bench "$small" --mode "$mode" --server "unix:$work/server" --compare-echo "unix:$work/echo" \
      --pairs 30 --duration 20
  done
  echo "== session; the echo is as busy as a solve, so that both wait alike for the machine"
  bench "$small" --server "unix:$work/server" --compare-echo "unix:$work/busy" --pairs 30 \
    --duration 20 | head -3
}

prompt() {
  local mode
  for mode in session unary; do
    echo "== $mode of low latency; for the echo, too, the client polls"
    bench "$small" --mode "$mode" --low-latency --server "unix:$work/server" \
      --compare-echo "unix:$work/echo" --pairs 30 --duration 20
  done
}

batch() {
  local workers
  for workers in 1 4; do
    echo "== batches of 64, workers: $workers"
    bench "$small" tests/data/clutter_bin_40_t1p00.json.gz --mode batch --batch-size 64 \
      --workers "$workers" --server "unix:$work/server" --compare-echo "unix:$work/echo" \
      --pairs 30 --duration 45
  done
}

gaps() {
  local rate latency
  for rate in 1000 100 10 1; do
    echo "== $rate steps per second; the same of low latency"
    for latency in "" --low-latency; do
      bench "$small" --server "unix:$work/server" --rate "$rate" --warmup 1 --duration 20 \
        ${latency:+"$latency"} | head -2
    done
  done
  [[ -n ${SAP_LONG:-} ]] || return 0
  echo "== a step per minute"
  bench "$small" --server "unix:$work/server" --rate 0.016667 --duration 200 | head -2
}

# Latest end after the budget, in microseconds, by percentile.
budget() {
  local file ms
  printf '%-26s %9s %9s %9s %9s %9s\n' problem budget/ms solves late50/us late99/us failed
  for file in heaps_300x3_t1p50 pile_1000_t12p00; do
    for ms in 0.3 0.5 1 2 5 10 20 40; do
      rm -f "$work/csv"
      bench "tests/data/$file.json.gz" --mode unary --server embedded: --duration 2 \
        --time-budget "$(awk -v m="$ms" 'BEGIN {print m / 1000}')" --csv "$work/csv" > /dev/null
      awk -F, -v f="$file" -v b="$ms" 'NR == 2 {printf "%-26s %9s %9d %9.0f %9.0f %9d\n", f, b, $5,
        $8 * 1e6 - b * 1e3, $10 * 1e6 - b * 1e3, $7}' "$work/csv"
    done
  done
}

idle() {
  local i begin pid ticks
  for i in 1 2 3 4 5; do
    begin=$(date +%s%N)
    start "start$i" "$bin/sap-server"
    "$bin/sap-client" health --server "unix:$work/start$i" > /dev/null
    echo "start to SERVING, with the client that asks: $((($(date +%s%N) - begin) / 1000000)) ms"
  done
  pid=${pids[-1]}
  sleep 2
  ticks=$(awk '{print $14 + $15}' "/proc/$pid/stat")
  sleep 30
  ticks=$(($(awk '{print $14 + $15}' "/proc/$pid/stat") - ticks))
  echo "idle: $(awk -v t="$ticks" -v hz="$(getconf CLK_TCK)" 'BEGIN {print 100 * t / hz / 30}') %" \
    "of a processor, $(awk '/VmRSS/ {print $2 / 1024}' "/proc/$pid/status") MB"
}

start server "$bin/sap-server"
start echo "$bin/sap-client" echo
start busy "$bin/sap-client" echo --busy-us 48
for section in "${sections[@]}"; do "$section"; done
