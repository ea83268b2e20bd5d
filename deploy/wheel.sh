#!/usr/bin/env bash
# Builds the Python wheel and the source distribution into build/wheel. The wheel carries
# sap-server, sap-client and the C library, built for processors with AVX2 and for any, and the C
# library with servers, which computes no answers there, for any; with the libraries that they need:
# users need no compiler, no packages and no clone. Safe to repeat.
#
#   deploy/wheel.sh
#
# PYTHON: the interpreter to build with (3.10 or later); the wheel is for all of them.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
output=$PWD/build/wheel
environment=$output/environment
native=$output/native
requirements=client/python/requirements-wheel.txt
files=(bin/sap-server bin/sap-client lib/libsap_islands.so lib/libsap_islands_mujoco.so)

deploy/install_packages.sh build tests
if command -v ccache > /dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi

# build PRESET INSTRUCTION_SET TARGET...
build() {
  echo "== building preset $1"
  cmake --preset "$1" > "$output/$1.log" 2>&1 || { cat "$output/$1.log" >&2; return 1; }
  cmake --build --preset "$1" --target sap-server sap-client sap_islands "${@:3}" \
    >> "$output/$1.log" 2>&1 || { tail -n 40 "$output/$1.log" >&2; return 1; }
  mkdir -p "$native/$2"
  local file
  for file in "${files[@]}"; do
    strip -o "$native/$2/${file#*/}" "build/$1/$file"
  done
}

# Licenses of the Debian libraries that auditwheel copies into the wheel, by package. It copies
# neither glibc nor the runtime of GCC.
copy_licenses() {
  mkdir -p "$native/licenses"
  local package
  ldd "$native"/*/*sap* | sed -n 's|.*=> \(/[^ ]*\).*|\1|p' | sort -u | xargs realpath |
    sed 's|^/usr||' | xargs -I{} sh -c 'dpkg -S "*{}" | cut -d: -f1' | sort -u |
    grep -vx -e libc6 -e libgcc-s1 -e libstdc++6 |
    while read -r package; do
      cp "/usr/share/doc/$package/copyright" "$native/licenses/$package"
    done
}

mkdir -p "$output"
rm -rf "$native" "$output"/*.whl "$output"/*.tar.gz
build release x86-64-v3
build portable x86-64 sap_islands_client
mkdir -p "$native/any"
strip -o "$native/any/libsap_islands_client.so" build/portable/lib/libsap_islands_client.so
copy_licenses

echo "== building the wheel"
if ! cmp -s "$requirements" "$environment/requirements.txt"; then
  rm -rf "$environment"
  "${PYTHON:-python3}" -m venv "$environment"
  "$environment/bin/pip" install --quiet --disable-pip-version-check --requirement "$requirements"
  cp "$requirements" "$environment/requirements.txt"
fi
PATH=$environment/bin:$PATH
(
  cd client/python
  hatchling build --target sdist --directory "$output" > /dev/null
  SAP_ISLANDS_NATIVE=$native hatchling build --target wheel --directory "$output/plain" > /dev/null
)
auditwheel repair --only-plat --wheel-dir "$output" "$output"/plain/*.whl \
  > "$output/repair.log" 2>&1 || { cat "$output/repair.log" >&2; exit 1; }
rm -rf "$output/plain"
rm "$output"/*.log
ls -l "$output"/*.whl "$output"/*.tar.gz
