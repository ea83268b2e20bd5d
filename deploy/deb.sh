#!/usr/bin/env bash
# Builds the Debian packages into build/deb and checks them with lintian.
#
#   deploy/deb.sh [CMAKE-ARGUMENT...]      -DSAP_PORTABLE=ON for processors without AVX2
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
deploy/install_packages.sh build packaging
if command -v ccache > /dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi
mkdir -p build
cmake --preset package "$@" > build/package.log 2>&1 || { cat build/package.log >&2; exit 1; }
cmake --build --preset package --target all manuals
rm -rf build/deb
cpack --config build/package/CPackConfig.cmake -B "$PWD/build/deb"
rm -rf build/deb/_CPack_Packages
lintian --fail-on error,warning build/deb/*.deb
ls -l build/deb/*.deb
