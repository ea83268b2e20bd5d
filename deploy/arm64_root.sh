#!/usr/bin/env bash
# Makes .deps/arm64, the libraries of Debian for arm64 that the preset arm64 compiles against:
# packages are unpacked and nothing of them is run, so that it needs no emulation. Next to those of
# this machine they cannot be installed, since libmetis-dev is not for several architectures.
#
#   deploy/arm64_root.sh PACKAGE...
#
# Does nothing where that was done for these packages.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target=$root/.deps/arm64
stamp=$target/DEBIAN/packages
wanted="$* libc6-dev"
if [[ -f $stamp && $(<"$stamp") == "$wanted" ]]; then
  exit 0
fi

echo "Unpacking libraries for arm64 into ${target#"$root"/}"
rm -rf "$target"
mkdir -p "$target"
# The dependencies of packages on their libraries, all in one file: dpkg-shlibdeps reads it where a
# library is in no installed package, but below a directory that has a DEBIAN. shellcheck
# disable=SC2016
control='mkdir "$1/DEBIAN"
for package in "$1"/var/cache/apt/archives/*.deb; do
  for file in shlibs symbols; do
    dpkg-deb --info "$package" "$file" >> "$1/DEBIAN/$file" 2> /dev/null || true
  done
done'
mmdebstrap --quiet --variant=extract --architectures=arm64 --include="${wanted// /,}" \
  --extract-hook="$control" bookworm "$target"

# Links lead into the root, wherever it is.
find "$target" -type l -lname '/*' -printf '%p\t%l\n' |
  while IFS=$'\t' read -r link to; do ln -snfr "$target$to" "$link"; done
# The CMake package of libccd names a library by a path without the root.
sed -i 's|/usr/lib/aarch64-linux-gnu/libm.so|m|g' \
  "$target"/usr/lib/aarch64-linux-gnu/ccd/*.cmake
# Generators of this machine, which are of the same version, generate the code.
ln -snf /usr/bin/protoc /usr/bin/grpc_*_plugin "$target/usr/bin"
"$root/deploy/pic_objects.py" "$target"
echo "$wanted" > "$stamp"
