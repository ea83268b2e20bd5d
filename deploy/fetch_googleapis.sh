#!/usr/bin/env bash
# Fetches the google.rpc protos (status, error details) into .deps/googleapis, from the PyPI package
# googleapis-common-protos at a fixed version and hash, since Debian has no package of them. Needs
# python3 with pip; uses the network on the first run only.
set -euo pipefail

version=1.66.0
sha256=d7abcd75fabb2e0ec9f74466401f6c119a0b498e27370e9be4c94cb7e382b8ed

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target=$root/.deps/googleapis
stamp=$target/VERSION

if [[ -f $stamp && $(<"$stamp") == "$version" ]]; then
  exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "Fetching googleapis-common-protos $version into ${target#"$root"/}"
echo "googleapis-common-protos==$version --hash=sha256:$sha256" > "$work/requirements.txt"
if ! python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
    --require-hashes --requirement "$work/requirements.txt" --dest "$work"; then
  echo "fetch_googleapis: pip could not download googleapis-common-protos $version (see above)" >&2
  exit 1
fi

rm -rf "$target"
mkdir -p "$target/google/rpc"
python3 - "$work" "$target" <<'PYTHON'
import glob, sys, zipfile
wheel = glob.glob(sys.argv[1] + "/*.whl")[0]
with zipfile.ZipFile(wheel) as archive:
    for name in ("google/rpc/status.proto", "google/rpc/error_details.proto"):
        archive.extract(name, sys.argv[2])
PYTHON
echo "$version" > "$stamp"
