#!/usr/bin/env bash
# Builds the Python wheel and the source distribution into build/wheel. The wheel carries
# sap-server, sap-worlds, sap-client and the C library, built for processors with AVX2 and for any,
# and the C library with servers, which computes no answers there, for any; with the libraries that
# they need: users need no compiler, no packages and no clone. arm64 needs one build alone. Safe to
# repeat.
#
#   deploy/wheel.sh              for this machine
#   deploy/wheel.sh arm64        cross-compiled for arm64, into build/wheel-arm64
#
# PYTHON: the interpreter to build with (3.10 or later); the wheel is for all of them.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
environment=$PWD/build/wheel/environment
if [[ ${1:-} == arm64 ]]; then
  output=$PWD/build/wheel-arm64
  root=$PWD/.deps/arm64
  tools=aarch64-linux-gnu-
  libraries=(--ldpaths "$root/lib/aarch64-linux-gnu:$root/usr/lib/aarch64-linux-gnu")
  export SAP_ISLANDS_MACHINE=aarch64
  deploy/install_packages.sh build tests arm64
else
  output=$PWD/build/wheel
  root=
  tools=
  libraries=()
  deploy/install_packages.sh build tests
fi
native=$output/native
requirements=client/python/requirements-wheel.txt
files=(bin/sap-server bin/sap-worlds bin/sap-client
  lib/libsap_islands.so lib/libsap_islands_mujoco.so)

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
    "${tools}strip" -o "$native/$2/${file#*/}" "build/$1/$file"
  done
}

# Lists the libraries that a file is linked with, as the dynamic linker finds them.
linked() {
  if [[ -n $root ]]; then
    qemu-aarch64 -L "$root" "$root/lib/ld-linux-aarch64.so.1" --list "$1"
  else
    ldd "$1"
  fi
}

# Licenses of the Debian libraries that auditwheel copies into the wheel, by package. It copies
# neither glibc nor the runtime of GCC. Packages of this machine have the files of those for arm64.
copy_licenses() {
  mkdir -p "$native/licenses"
  local file package
  for file in "$native"/*/*sap*; do linked "$file"; done |
    sed -n "/ld-linux/d; s|.*=> \\(/[^ ]*\\).*|$root\\1|p" | sort -u | xargs realpath |
    sed "s|^$root||; s|^/usr||; s|aarch64|$(uname -m)|" |
    xargs -I{} sh -c 'dpkg -S "*{}" | cut -d: -f1' | sort -u |
    grep -vx -e libc6 -e libgcc-s1 -e libstdc++6 |
    while read -r package; do
      cp "$root/usr/share/doc/$package/copyright" "$native/licenses/$package"
    done
}

mkdir -p "$output"
rm -rf "$native" "$output"/*.whl "$output"/*.tar.gz
if [[ -n $root ]]; then
  any=arm64
  build arm64 armv8-a sap_islands_client
else
  any=portable
  build release x86-64-v3
  build portable x86-64 sap_islands_client
fi
mkdir -p "$native/any"
"${tools}strip" -o "$native/any/libsap_islands_client.so" "build/$any/lib/libsap_islands_client.so"
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
auditwheel repair "${libraries[@]}" --only-plat --wheel-dir "$output" "$output"/plain/*.whl \
  > "$output/repair.log" 2>&1 || { cat "$output/repair.log" >&2; exit 1; }
rm -rf "$output/plain"
rm "$output"/*.log
ls -l "$output"/*.whl "$output"/*.tar.gz
