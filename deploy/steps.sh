# Functions that quickstart.sh, fleet.sh and client/python/view.sh share. Sourced at the top of the
# repository, with $log, the file that the output of commands goes to.
script=$(basename "$0")
step="starting"
# Without errtrace the trap would be silent about what fails in a function.
set -o errtrace
trap 'echo "$script: failed while $step" >&2' ERR
mkdir -p build
: > "$log"

begin() {
  step=$1
  echo "== $step"
}

# Output goes to the log; its last lines are shown if the command fails.
logged() {
  "$@" >> "$log" 2>&1 || {
    tail -n 40 "$log" >&2
    echo "$script: $1 failed; the complete output is in $log" >&2
    return 1
  }
}

# install_and_build TARGET...
install_and_build() {
  begin "installing packages"
  deploy/install_packages.sh build tests
  # Uses a compiler cache if one is installed.
  if command -v ccache > /dev/null; then
    export CMAKE_CXX_COMPILER_LAUNCHER=ccache
  fi
  begin "configuring (log: $log)"
  logged cmake --preset release
  begin "building $* (a few minutes the first time)"
  logged cmake --build --preset release --target "$@"
}

# make_environment DIRECTORY EXTRA[,EXTRA...]: the Python client with these extras, in an
# environment that is made again when its sources have changed, for example after a pull, or PYTHON.
make_environment() {
  local environment=$1 python=${PYTHON:-python3} key
  key=$(find client/python/src/sap_islands client/python/pyproject.toml -type f \
    -not -path '*/__pycache__/*' | LC_ALL=C sort | xargs cat |
    cat <("$python" -VV) - | sha256sum | cut -c1-24)
  if [[ $(cat "$environment/key" 2> /dev/null || true) == "$key" ]]; then return; fi
  "$python" -m venv --clear "$environment" || {
    echo "$script: cannot make an environment; is python3-venv installed?" >&2
    return 1
  }
  logged "$environment/bin/pip" install --quiet --disable-pip-version-check \
    "$PWD/client/python[$2]"
  echo "$key" > "$environment/key"
}
