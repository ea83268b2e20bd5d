#!/usr/bin/env bash
# The two linters of Debian's clang 14, buf and actionlint; each fails on anything it finds.
#
#   tests/lint.sh [format] [schema] [workflows] [tidy]      default: all
#
#   format     clang-format on every C++ and proto file; mend with: clang-format -i FILE
#   schema     buf on the schema: its style, and what would break clients that have the stored one
#   workflows  actionlint on .github/workflows
#   tidy       clang-tidy on the libraries and programs, by target; a target is checked again only
#              when one of its sources, a header or .clang-tidy changed
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=build/lint
stamps=$build/stamps

list() {
  git ls-files --cached --others --exclude-standard -- "$@"
}

check_format() {
  list '*.cc' '*.h' '*.proto' | xargs --no-run-if-empty clang-format --dry-run --Werror
  echo "clang-format: $(list '*.cc' '*.h' '*.proto' | wc -l) files are in order"
}

check_schema() {
  deploy/fetch_from_pypi.sh buf
  # buf looks for the names of imports in the folder that it runs in.
  (cd proto && ../.deps/buf/buf lint &&
    ../.deps/buf/buf breaking --against ../tests/data/sap_v1.descriptors.binpb) ||
    { echo "lint: buf found faults in the schema (see above)" >&2; return 1; }
  echo "buf: the schema is in order, and breaks no client"
}

check_workflows() {
  deploy/fetch_from_pypi.sh actionlint
  .deps/actionlint/actionlint || { echo "lint: actionlint found faults (see above)" >&2; return 1; }
  echo "actionlint: the workflows are in order"
}

# The sources that a unit of CMake's includes, or the unit itself if it is a source of the tree.
sources_of() {
  if [[ $1 == */Unity/* ]]; then
    sed -n 's/^#include "\(.*\)"$/\1/p' "$1"
  else
    echo "$1"
  fi
}

# tidy_one KEY UNIT: the stamp remembers what passed, so that an unchanged unit costs nothing.
tidy_one() {
  local key=$1 unit=$2 sources stamp
  mapfile -t sources < <(sources_of "$unit")
  stamp=$stamps/$(printf '%s %s' "$key" "$(cat "${sources[@]}" | sha256sum)" |
    sha256sum | cut -c1-24)
  [[ ! -e $stamp ]] || return 0
  printf 'clang-tidy %s\n' "${sources[@]#"$PWD/"}"
  clang-tidy -p "$build" --quiet --extra-arg=-Wno-unknown-warning-option "$unit" \
    2> >(grep -v 'warnings generated' >&2) || return 1
  touch "$stamp"
}

# Parsing the headers of gRPC and Eigen and matching every check against them takes most of the
# time. So the sources of one target are checked as one translation unit, which CMake's unity build
# writes; that is a sixth of the work for the same findings.
check_tidy() {
  cmake --preset lint > build/lint.log 2>&1 || { cat build/lint.log >&2; return 1; }
  cmake --build --preset lint > build/lint.log 2>&1 || { cat build/lint.log >&2; return 1; }
  # Options that clang does not know.
  sed -i 's/ -mmem[a-z]*-strategy=[^ "]*//g' "$build/compile_commands.json"
  mkdir -p "$stamps"
  local key units
  key=$(list '*.h' '*.proto' .clang-tidy | sort | xargs sha256sum | sha256sum)
  # The unit with the most sources first, so that none is left running alone at the end.
  units=$(sed -n 's|^ *"file": "\(.*\)".*|\1|p' "$build/compile_commands.json" |
    grep -v '/proto/generated/' |
    while read -r unit; do echo "$(sources_of "$unit" | wc -l) $unit"; done |
    sort --numeric-sort --reverse | cut -d' ' -f2)
  export build stamps
  export -f sources_of tidy_one
  xargs --max-procs="$(nproc)" -I UNIT bash -c 'tidy_one "$@"' - "$key" UNIT <<< "$units" ||
    { echo "lint: clang-tidy found faults (see above)" >&2; return 1; }
  local checked missed
  checked=$(for unit in $units; do sources_of "$unit"; done | sed "s|^$PWD/||" | sort)
  missed=$(list 'solver/*.cc' 'server/*.cc' 'client/cpp/*.cc' | sort |
    comm -23 - <(echo "$checked"))
  [[ -z $missed ]] || { echo "lint: no target has $missed" >&2; return 1; }
  echo "clang-tidy: $(wc -l <<< "$checked") files are in order"
}

checks=("$@")
(($# > 0)) || checks=(format schema workflows tidy)
for check in "${checks[@]}"; do
  case $check in
    format) check_format ;;
    schema) check_schema ;;
    workflows) check_workflows ;;
    tidy) check_tidy ;;
    *)
      echo "lint: unknown check '$check'; checks are: format, schema, workflows, tidy" >&2
      exit 2
      ;;
  esac
done
