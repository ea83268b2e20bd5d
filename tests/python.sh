#!/usr/bin/env bash
# Tests the Python client, and the files of deploy unless there are arguments for pytest: makes an
# environment under build/python with pinned packages, installs the package into it, and runs ruff,
# mypy and pytest. Needs sap-server and sap-client in build/release/bin, or in one folder where
# $SAP_SERVER is, for the files of deploy also e2e_test, fleet_test and hostile_test there, and
# libsap_islands.so and libsap_islands_client.so in build/release/lib, or where
# $SAP_LIBRARY is. Safe to repeat; the environment is made again only when the pins change.
#
#   tests/python.sh [--full | --lint] [PYTEST-ARGUMENT...]
#
#   --full    also the tests marked full, which take long and install more packages
#   --lint    only the environment, ruff and mypy, which need nothing that is built
#
# PYTHON names the interpreter to use (3.10 or later). SAP_PROBLEMS_DIR and
# SAP_PROBLEMS_GRADIENTS_DIR are as for tests/run.sh.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
package=client/python
environment=$PWD/build/python
requirements=$package/requirements-test.txt
torch=$package/requirements-torch.txt
full=()
lint=false
case ${1:-} in
  --full) full=(--full) && shift ;;
  --lint) lint=true ;;
esac

fail() {
  echo "python.sh: $*" >&2
  exit 1
}

python=${PYTHON:-python3}
key=$("$python" -VV | cat - "$requirements" "$torch" | sha256sum | cut -c1-24)
if [[ $(cat "$environment/key" 2> /dev/null || true) != "$key" ]]; then
  echo "Making $environment"
  rm -rf "$environment"
  "$python" -m venv "$environment" ||
    fail "cannot make an environment; is python3-venv installed (deploy/install_packages.sh tests)?"
  "$environment/bin/pip" install --quiet --disable-pip-version-check \
    --requirement "$requirements" || fail "pip could not install what $requirements pins"
  "$environment/bin/pip" install --quiet --disable-pip-version-check --no-deps \
    --requirement "$torch" || fail "pip could not install what $torch pins"
  echo "$key" > "$environment/key"
fi
if ((${#full[@]} > 0)); then
  deploy/install_packages.sh browser
  "$environment/bin/pip" install --quiet --disable-pip-version-check --no-deps \
    --requirement "$package/requirements-full.txt" ||
    fail "pip could not install what $package/requirements-full.txt pins"
fi
"$environment/bin/pip" install --quiet --disable-pip-version-check --no-build-isolation --no-deps \
  --editable "$package" || fail "pip could not install $package"

run() {
  "$environment/bin/python" -m "$@"
}

run ruff check --quiet "$package" tests/client/python tests/deploy deploy/docs \
  deploy/fleet ||
  fail "ruff found faults (see above)"
run ruff format --quiet --check "$package" tests/client/python tests/deploy deploy/docs \
  deploy/fleet ||
  fail "ruff would write some files differently; mend with: ruff format"
run mypy --config-file "$package/pyproject.toml" "$package/src/sap_islands" "$package/paper" \
  "$package/examples/record_mujoco_warp.py" "$package/examples/record_rollout.py" \
  deploy/docs/schema_reference.py deploy/docs/notebook_page.py tests/client/python \
  --cache-dir "$environment/mypy" || fail "mypy found faults (see above)"
# Apart, since their modules have names that occur above.
for directory in tests/deploy deploy/fleet; do
  run mypy --config-file "$package/pyproject.toml" "$directory" \
    --cache-dir "$environment/mypy" || fail "mypy found faults (see above)"
done
if $lint; then exit; fi

server=${SAP_SERVER:-$PWD/build/release/bin/sap-server}
library=${SAP_LIBRARY:-$PWD/build/release/lib/libsap_islands.so}
for program in "$server" "$(dirname "$server")/sap-client" "$library" \
  "$(dirname "$library")/libsap_islands_client.so"; do
  [[ -e $program ]] || fail "there is no $program; build it: cmake --preset release &&" \
    "cmake --build --preset release --target sap-server sap-client sap_islands" \
    "sap_islands_client"
done
export SAP_SERVER=$server SAP_LIBRARY=$library

run pytest --quiet -o cache_dir="$environment/pytest" "${full[@]}" tests/client/python "$@"
if (($# == 0)); then
  deploy/install_packages.sh operations
  run pytest --quiet -o cache_dir="$environment/pytest" "${full[@]}" tests/deploy
fi
