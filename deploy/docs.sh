#!/usr/bin/env bash
# Builds the documentation site: the Markdown of the repository, the reference of the Python package
# from its docstrings, and that of the schema from its comments. Makes an environment with pinned
# packages under build/docs/environment. Safe to repeat.
#
#   deploy/docs.sh [build]            writes build/docs/site; broken links and references are errors
#   deploy/docs.sh serve [ADDRESS]    serves it at ADDRESS (127.0.0.1:8000); pages follow changes
#   deploy/docs.sh picture            draws client/cpp/simulation/clutter.webp again, the
#                                     moving picture, with build/release/bin/sap-client
#
# PYTHON names the interpreter to use (3.10 or later).
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
environment=$PWD/build/docs/environment
requirements=client/python/requirements-docs.txt

fail() {
  echo "docs.sh: $*" >&2
  exit 1
}

git ls-files --error-unmatch deploy/docs.sh > /dev/null 2>&1 ||
  fail "the site is made of the files that git knows: it needs a clone, not an archive"

python=${PYTHON:-python3}
key=$("$python" -VV | cat - "$requirements" | sha256sum | cut -c1-24)
if [[ $(cat "$environment/key" 2> /dev/null || true) != "$key" ]]; then
  rm -rf "$environment"
  "$python" -m venv "$environment" ||
    fail "cannot make an environment; is python3-venv installed (deploy/install_packages.sh tests)?"
  "$environment/bin/pip" install --quiet --disable-pip-version-check \
    --requirement "$requirements" || fail "pip could not install what $requirements pins"
  echo "$key" > "$environment/key"
fi

# The theme prints an advertisement of its successor otherwise.
export NO_MKDOCS_2_WARNING=1 PYTHONDONTWRITEBYTECODE=1
mkdocs() {
  PATH=$environment/bin:$PATH "$environment/bin/mkdocs" "$@" --config-file deploy/docs/mkdocs.yml
}
case ${1:-build} in
  build)
    mkdocs build --strict || fail "the site has faults (see above)"
    echo "docs: build/docs/site/index.html"
    ;;
  serve) mkdocs serve --dev-addr "${2:-127.0.0.1:8000}" ;;
  picture)
    client=build/release/bin/sap-client
    [[ -x $client ]] || fail "there is no $client; deploy/quickstart.sh builds it"
    "$environment/bin/python" deploy/docs/moving_picture.py "$client" \
      client/cpp/simulation/clutter.webp
    ;;
  *) fail "unknown command '$1'; commands are: build, serve, picture" ;;
esac
