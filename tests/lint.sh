#!/usr/bin/env bash
# The two linters of Debian's clang 14; both fail on anything they find.
#
#   tests/lint.sh [format] [tidy]      default: both
#
#   format  clang-format on every C++ and proto file; mend with: clang-format -i FILE
#   tidy    clang-tidy on the library sources, needing a build of preset release; a file is checked
#           again only when it, a header or .clang-tidy changed
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=build/release
stamps=build/lint

list() {
  git ls-files --cached --others --exclude-standard -- "$@"
}

check_format() {
  list '*.cc' '*.h' '*.proto' | xargs --no-run-if-empty clang-format --dry-run --Werror
  echo "clang-format: $(list '*.cc' '*.h' '*.proto' | wc -l) files are in order"
}

# tidy_one FILE KEY: the stamp remembers what passed, so that an unchanged file costs nothing.
tidy_one() {
  local file=$1 stamp
  stamp=$stamps/$(printf '%s %s' "$2" "$(sha256sum "$file")" | sha256sum | cut -c1-24)
  [[ ! -e $stamp ]] || return 0
  echo "clang-tidy $file"
  clang-tidy -p "$build" --quiet "$file" 2> >(grep -v 'warnings generated' >&2) || return 1
  touch "$stamp"
}

check_tidy() {
  [[ -f $build/compile_commands.json ]] ||
    { echo "lint: build first: cmake --preset release && cmake --build --preset release" >&2
      return 1; }
  mkdir -p "$stamps"
  local key
  key=$(list '*.h' '*.proto' .clang-tidy | sort | xargs sha256sum | sha256sum)
  export build stamps
  export -f tidy_one
  local sources=('solver/*.cc' 'server/*.cc' 'client/cpp/*.cc')
  list "${sources[@]}" |
    xargs --no-run-if-empty --max-procs="$(nproc)" -I FILE bash -c 'tidy_one "$@"' - FILE "$key" ||
    { echo "lint: clang-tidy found faults (see above)" >&2; return 1; }
  echo "clang-tidy: $(list "${sources[@]}" | wc -l) files are in order"
}

checks=("${@:-format}")
(($# > 0)) || checks=(format tidy)
for check in "${checks[@]}"; do
  case $check in
    format) check_format ;;
    tidy) check_tidy ;;
    *)
      echo "lint: unknown check '$check'; checks are: format, tidy" >&2
      exit 2
      ;;
  esac
done
