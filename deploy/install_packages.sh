#!/usr/bin/env bash
# Installs the Debian packages that are missing, and the protos that Debian does not have: the one
# place that names what the project depends on. Asks for nothing, and does nothing where nothing is
# missing.
#
#   deploy/install_packages.sh [GROUP...]      groups: build (default), tests, lint, fuzz, browser,
#                                             bench
#
# Needs root or sudo only where a package is missing.
set -euo pipefail

declare -A packages=(
  # Compilers, the solver's mathematics, the service, the command line, JSON, collision for the
  # simulation, and pip for fetch_googleapis.sh.
  [build]="g++ cmake ninja-build pkg-config
           libeigen3-dev libtbb-dev libmetis-dev libexpected-dev
           libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc libssl-dev
           libcli11-dev nlohmann-json3-dev libspdlog-dev
           prometheus-cpp-dev zlib1g-dev libfcl-dev
           python3 python3-pip"
  # The test framework, the proto parser for the small schemas of tests/proto, environments for the
  # tests of the Python client, and what faults, the proxy and the units are tested with.
  [tests]="libgtest-dev libgmock-dev libprotoc-dev git python3-venv openssl faketime haproxy
           systemd"
  [lint]="clang-format clang-tidy git"
  [fuzz]="clang-14 libclang-rt-14-dev"
  # For the full tests of the viewer.
  [browser]="chromium"
  # The library that the factorization is compared with, the BLAS that it is at its best with on one
  # core, and the timer.
  [bench]="libsuitesparse-dev libopenblas0-serial libbenchmark-dev"
)

fail() {
  echo "install_packages: $*" >&2
  exit 1
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
groups=("${@:-build}")
wanted=()
for group in "${groups[@]}"; do
  [[ -n ${packages[$group]:-} ]] || fail "there is no group '$group'; groups are: ${!packages[*]}"
  read -r -d '' -a names <<< "${packages[$group]}" || true
  wanted+=("${names[@]}")
done

command -v dpkg-query > /dev/null && command -v apt-get > /dev/null ||
  fail "this is no Debian; install the equivalents of: ${wanted[*]}"

missing=()
for name in "${wanted[@]}"; do
  status=$(dpkg-query --show --showformat='${db:Status-Abbrev}' "$name" 2> /dev/null || true)
  [[ $status == ii* ]] || missing+=("$name")
done

if ((${#missing[@]} > 0)); then
  echo "Installing: ${missing[*]}"
  as_root=()
  if ((EUID != 0)); then
    command -v sudo > /dev/null || fail "needs root (or sudo) to install: ${missing[*]}"
    as_root=(sudo)
  fi
  "${as_root[@]}" apt-get update -qq ||
    fail "apt-get could not read the package lists (see above)"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install --yes -qq --no-install-recommends "${missing[@]}" > /dev/null ||
    fail "apt-get could not install them (see above)"
else
  echo "Packages are all there (${groups[*]})."
fi

for group in "${groups[@]}"; do
  if [[ $group == build ]]; then
    "$root/deploy/fetch_googleapis.sh"
  fi
done
