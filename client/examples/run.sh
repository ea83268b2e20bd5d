#!/usr/bin/env bash
# Builds the example of a language in build/examples/LANGUAGE, with the stock tools of the language
# and stubs generated from proto/, and runs it. The first run needs the network.
#
#   client/examples/run.sh LANGUAGE [HOST:PORT]     languages: go, java, node, python, rust
#
# HOST:PORT is a server without TLS. Without it a server is started: $SAP_SERVER, or
# build/release/bin/sap-server.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
language=${1:-}
address=${2:-}

fail() {
  echo "run.sh: $*" >&2
  exit 1
}

# needs PROGRAM WHAT
needs() {
  command -v "$1" > /dev/null || fail "the example in $language needs $1 ($2)"
}

build_go() {
  needs go "Go 1.26"
  needs protoc "Debian: protobuf-compiler"
  GOBIN=$PWD/bin go install google.golang.org/protobuf/cmd/protoc-gen-go \
    google.golang.org/grpc/cmd/protoc-gen-go-grpc
  PATH=$PWD/bin:$PATH protoc -I "$root/proto" --go_out=. --go-grpc_out=. \
    "$root"/proto/sap/v1/{problem,solution,gradient,solver_service}.proto
  go build -o ball .
}
run_go() { ./ball "$address"; }

build_java() {
  needs mvn "Debian: maven"
  mvn --batch-mode --quiet compile
}
run_java() { java -cp "target/classes:$(< target/classpath)" Ball "$address"; }

build_node() {
  needs npm "Node.js 20"
  npm install --silent --no-audit --no-fund --no-package-lock
}
run_node() { node ball.js "$address" "$root/proto"; }

build_python() {
  needs python3 "Debian: python3-venv"
  python3 -m venv environment
  environment/bin/pip install --quiet --disable-pip-version-check --requirement requirements.txt
  environment/bin/python -m grpc_tools.protoc -I "$root/proto" --python_out=. \
    --grpc_python_out=. "$root"/proto/sap/v1/{problem,solution,gradient,solver_service}.proto
}
run_python() { environment/bin/python ball.py "$address"; }

build_rust() {
  needs cargo "Rust 1.88"
  needs protoc "Debian: protobuf-compiler"
  cargo build --quiet
}
run_rust() { target/debug/ball "$address"; }

[[ -d $root/client/examples/$language && -n $language ]] ||
  fail "there is no example in '$language'; see the head of client/examples/run.sh"
place=$root/build/examples/$language
mkdir -p "$place"
cp --recursive "$root/client/examples/$language/." "$place"
cd "$place"
"build_$language" >&2

if [[ -z $address ]]; then
  server=${SAP_SERVER:-$root/build/release/bin/sap-server}
  [[ -x $server ]] || fail "there is no $server; deploy/quickstart.sh builds it"
  coproc "$server" --listen 127.0.0.1:0 2> /dev/null
  trap 'kill "$COPROC_PID"' EXIT
  read -r line <&"${COPROC[0]}" || fail "$server did not start"
  address=${line##* }
fi
"run_$language"
