#!/usr/bin/env bash
# Prepares a release. The tag vVERSION makes it: .github/workflows/release.yml builds and publishes.
#
#   deploy/release.sh check [TAG]    fails unless the tree can be released (as TAG): one version in
#                                    all files, its section in the changelog, nothing uncommitted
#   deploy/release.sh notes          prints the section of the changelog
#   deploy/release.sh --dry-run      builds into build/release-files what this machine can, and
#                                    prints what would be published; publishes nothing
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
output=build/release-files
version=$(sed -n 's/^project(.* VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
faults=0

fault() {
  echo "release.sh: $*" >&2
  faults=$((faults + 1))
}

# section NAME: what the changelog says below "## [NAME]".
section() {
  awk -v head="## [$1]" 'index($0, "## [") == 1 { inside = index($0, head) == 1; next } inside' \
    CHANGELOG.md
}

check() {
  local tag=${1:-v$version}
  [[ $tag == "v$version" ]] || fault "the tag is $tag, CMakeLists.txt has version $version"
  local found
  found=$(sed -n 's/^version = "\(.*\)"/\1/p' client/python/pyproject.toml)
  [[ $found == "$version" ]] ||
    fault "client/python/pyproject.toml has version $found, not $version"
  while read -r found; do
    [[ $found == "$version" ]] || fault "deploy/kubernetes has images of $found, not $version"
  done < <(sed -n 's/^ *newTag: //p' deploy/kubernetes/*/kustomization.yaml)
  grep -q "^## \[$version\] - [0-9-]*$" CHANGELOG.md ||
    fault "CHANGELOG.md has no section '## [$version] - DATE'"
  [[ -z $(section Unreleased | tr -d '[:space:]') ]] ||
    fault "CHANGELOG.md has entries under [Unreleased], which no version has"
  [[ -z $(git status --porcelain) ]] || fault "the tree has changes that are not committed"
  if git rev-parse --quiet --verify "refs/tags/v$version^{commit}" > /dev/null &&
    [[ $(git rev-parse "v$version^{commit}") != $(git rev-parse HEAD) ]]; then
    fault "v$version is another commit: give CMakeLists.txt the next version"
  fi
  ((faults == 0))
}

# build NAME COMMAND...: the output goes to a log, which is shown if the command fails.
build() {
  echo "== $1"
  "${@:2}" > "$output/$1.log" 2>&1 || {
    tail -n 40 "$output/$1.log" >&2
    echo "release.sh: $1 failed; the complete output is in $output/$1.log" >&2
    exit 1
  }
}

dry_run() {
  check || echo "release.sh: $faults faults, for which a release would stop here" >&2
  rm -rf "$output"
  mkdir -p "$output/files"
  build documentation deploy/docs.sh build
  build wheel deploy/wheel.sh
  build packages deploy/deb.sh
  cp build/wheel/*.whl build/wheel/*.tar.gz build/deb/*.deb "$output/files"
  cp tests/data/sap_v1.descriptors.binpb "$output/files"
  git archive --prefix="sap-islands-$version/" --output="$output/files/source-$version.tar.gz" HEAD
  tar --create --gzip --file "$output/files/documentation-$version.tar.gz" \
    --directory build/docs site
  (cd "$output/files" && sha256sum -- * > SHA256SUMS)
  section "$version" > "$output/notes.md"
  echo "v$version of $(git rev-parse --short HEAD) would publish"
  (cd "$output/files" && ls -l --human-readable) | awk 'NR > 1 { printf "  %6s  %s\n", $5, $NF }'
  cat << END
and, built where the workflow runs, not here:
  wheel and packages for arm64
  images sap-islands and sap-islands-proxy for amd64 and arm64, with a list of their packages (SBOM)
Wheels and source distribution go to the index of Python packages, the site to the pages of the
host, images to the registry of the variable IMAGE_REGISTRY, the rest to the release on the host
with $(wc -l < "$output/notes.md") lines of notes ($output/notes.md).
END
}

case ${1:-} in
  check) check "${@:2}" && echo "v$version can be released" ;;
  notes) section "$version" ;;
  --dry-run) dry_run ;;
  *)
    echo "release.sh: give check, notes or --dry-run; see the head of deploy/release.sh" >&2
    exit 2
    ;;
esac
