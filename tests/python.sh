#!/usr/bin/env bash
# Tests the Python client: makes an environment under build/python with pinned packages, installs
# the package into it, and runs pytest. With --ci or --full also ruff, mypy, and unless there are
# arguments for pytest the tests of the files of deploy and of the paper's cases. Needs sap-server
# and sap-client in build/release/bin, or in one folder where $SAP_SERVER is, for the files of
# deploy also e2e_test, fleet_test and hostile_test there, and libsap_islands.so and
# libsap_islands_client.so in build/release/lib, or where $SAP_LIBRARY is. Safe to repeat; the
# environment is made again only when the pins change.
#
#   tests/python.sh [--ci | --full] [--prepare] [PYTEST-ARGUMENT...]
#
#   --ci       ring 2 of the tests (tests/rings.txt) in place of ring 1
#   --full     ring 3, for which more packages are installed
#   --prepare  only the environment, ruff and mypy, which need nothing that is built
#
# PYTHON names the interpreter to use (3.10 or later). SAP_PROBLEMS_DIR and
# SAP_PROBLEMS_GRADIENTS_DIR are as for tests/run.sh.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
package=client/python
environment=$PWD/build/python
core=$package/requirements-test.txt
ci=$package/requirements-ci.txt
torch=$package/requirements-torch.txt
ring=1
prepare=false
case ${1:-} in
  --ci) ring=2 && shift ;;
  --full) ring=3 && shift ;;
esac
if [[ ${1:-} == --prepare ]]; then prepare=true; fi

fail() {
  echo "python.sh: $*" >&2
  exit 1
}

install() {
  "$environment/bin/pip" install --quiet --disable-pip-version-check "${@:2}" --requirement "$1" ||
    fail "pip could not install what $1 pins"
}

python=${PYTHON:-python3}
key_of() {
  "$python" -VV | cat - "$@" | sha256sum | cut -c1-24
}
core_key=$(key_of "$core")
ci_key=$(key_of "$core" "$ci" "$torch")
key=$(cat "$environment/key" 2> /dev/null || true)
if [[ $key != "$core_key" && $key != "$ci_key" ]]; then
  echo "Making $environment"
  rm -rf "$environment"
  "$python" -m venv "$environment" ||
    fail "cannot make an environment; is python3-venv installed (deploy/install_packages.sh tests)?"
  install "$core"
  key=$core_key
  echo "$key" > "$environment/key"
fi
if ((ring > 1)) && [[ $key != "$ci_key" ]]; then
  install "$ci"
  install "$torch" --no-deps
  echo "$ci_key" > "$environment/key"
fi
if ((ring > 2)); then
  deploy/install_packages.sh browser
  install "$package/requirements-full.txt" --no-deps
fi
"$environment/bin/pip" install --quiet --disable-pip-version-check --no-build-isolation --no-deps \
  --editable "$package" || fail "pip could not install $package"

run() {
  "$environment/bin/python" -m "$@"
}

if ((ring > 1)); then
  folders=("$package" tests/rings.py tests/client/python tests/deploy tests/paper deploy/docs
    deploy/fleet)
  run ruff check --quiet "${folders[@]}" || fail "ruff found faults (see above)"
  run ruff format --quiet --check "${folders[@]}" ||
    fail "ruff would write some files differently; mend with: ruff format"
  run mypy --config-file "$package/pyproject.toml" "$package/src/sap_islands" \
    "$package/examples/record_mujoco_warp.py" "$package/examples/record_rollout.py" \
    deploy/docs/schema_reference.py deploy/docs/notebook_page.py tests/rings.py \
    tests/client/python --cache-dir "$environment/mypy" || fail "mypy found faults (see above)"
  # Apart, since their modules have names that occur above.
  for directory in tests/deploy deploy/fleet tests/paper; do
    MYPYPATH=tests run mypy --config-file "$package/pyproject.toml" "$directory" \
      --cache-dir "$environment/mypy" || fail "mypy found faults (see above)"
  done
fi
if $prepare; then exit; fi

server=${SAP_SERVER:-$PWD/build/release/bin/sap-server}
library=${SAP_LIBRARY:-$PWD/build/release/lib/libsap_islands.so}
for program in "$server" "$(dirname "$server")/sap-client" "$library" \
  "$(dirname "$library")/libsap_islands_client.so"; do
  [[ -e $program ]] || fail "there is no $program; build it: cmake --preset release &&" \
    "cmake --build --preset release --target called_by_python_tests_of_ring1"
done
export SAP_SERVER=$server SAP_LIBRARY=$library

# run_tests FOLDER [PYTEST-ARGUMENT...]
run_tests() {
  run pytest --quiet -o cache_dir="$environment/pytest" --ring "$ring" "$@"
}
run_tests tests/client/python "$@"
if ((ring > 1 && $# == 0)); then
  deploy/install_packages.sh operations
  run_tests tests/deploy
  run_tests tests/paper
fi
