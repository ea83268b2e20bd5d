#!/usr/bin/env bash
# Judges simulators of MuJoCo's models: makes the corpus, one step of every engine from each of its
# states, and the table of deploy/docs/is_my_simulator_right.md.
#
#   tests/bench/referee/run.sh [ENGINE...]
#
# ENGINE: mujoco, mujoco_warp, newton, dart, pybullet; without: all. Installs them in
# build/referee/venv and needs the C library of the release build. The corpus, the runs and their
# reports stay in build/referee.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
folder=tests/bench/referee
here=build/referee
mkdir -p "$here"
export SAP_LIBRARY=${SAP_LIBRARY:-$PWD/build/release/lib/libsap_islands.so}
[[ -e $SAP_LIBRARY ]] || {
  echo "run.sh: there is no $SAP_LIBRARY; build the target sap_islands" >&2
  exit 1
}
if ! cmp --silent "$folder/requirements.txt" "$here/venv/requirements.txt"; then
  rm -rf "$here/venv"
  python3 -m venv "$here/venv"
  "$here/venv/bin/pip" install --quiet --disable-pip-version-check \
    --requirement "$folder/requirements.txt"
  cp "$folder/requirements.txt" "$here/venv/"
fi
"$here/venv/bin/pip" install --quiet --disable-pip-version-check ./client/python
python=$here/venv/bin/python
[[ -e $here/corpus/states.json ]] || "$python" "$folder/corpus.py" "$here/corpus"
engines=("$@")
((${#engines[@]} > 0)) || engines=(mujoco mujoco_warp newton dart pybullet)
for engine in "${engines[@]}"; do
  echo "== $engine" >&2
  "$python" "$folder/with_$engine.py" "$here/corpus" "$here/runs" > "$here/$engine.log"
done
"$python" "$folder/scoreboard.py" "$here/corpus" "$here/runs"
