#!/usr/bin/env bash
# Builds the Debian packages into build/deb and checks them with lintian.
#
#   deploy/deb.sh [CMAKE-ARGUMENT...]      -DSAP_PORTABLE=ON for processors without AVX2
#   deploy/deb.sh arm64                    cross-compiled for arm64, into build/deb-arm64
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=package
output=build/deb
groups=(build packaging)
if [[ ${1:-} == arm64 ]]; then
  shift
  preset=package-arm64
  output=build/deb-arm64
  groups+=(arm64)
  export DEB_HOST_ARCH=arm64  # tells dpkg-shlibdeps, which cpack calls
fi
deploy/install_packages.sh "${groups[@]}"
if command -v ccache > /dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi
mkdir -p build
cmake --preset "$preset" "$@" > "build/$preset.log" 2>&1 ||
  { cat "build/$preset.log" >&2; exit 1; }
cmake --build --preset "$preset" --target all
rm -rf "$output"
cpack --config "build/$preset/CPackConfig.cmake" -B "$PWD/$output"
rm -rf "$output/_CPack_Packages"
lintian --fail-on error,warning "$output"/*.deb
ls -l "$output"/*.deb
