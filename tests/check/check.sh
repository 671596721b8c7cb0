#!/usr/bin/env bash
# Runs the checks of docs/reproducibility.md in turn and prints one line for each. A check that passed
# at this commit is skipped, so a second call resumes an interrupted one.
#   check.sh [NAME ...]
set -uo pipefail
checks=(test newcomer lint asan tsan valgrind torture fuzz mutants portable clang aarch64 soak scale
  cluster package docs)
fuzz() { for target in tests/fuzz/corpus/*; do ./dev fuzz "${target##*/}" 300 || return; done; }

fail() { echo "check: $*" >&2; exit 64; }

[ $# -gt 0 ] || set -- "${checks[@]}"
for name in "$@"; do
  [[ " ${checks[*]} " == *" $name "* ]] || fail "'$name' is not a check; choose from ${checks[*]}"
done
changes=$(git status --porcelain)
[ -z "$changes" ] || fail "commit or remove your changes first; a check tests a commit
$changes"
commit=$(git rev-parse HEAD)
mkdir -p build/check
failed=0

# stop STATUS: ends all processes of the running check, then this script
stop() {
  local group tenths
  group=$(jobs -p)
  if [ "$group" ]; then
    kill -TERM -- "-$group" 2>/dev/null
    for ((tenths = 0; tenths < 300; ++tenths)); do
      kill -0 -- "-$group" 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL -- "-$group" 2>/dev/null
  fi
  echo "check: $name interrupted"
  exit "$1"
}
trap 'stop 129' HUP
trap 'stop 130' INT
trap 'stop 143' TERM

for name in "$@"; do
  if [ "$(cat "build/check/$name.passed" 2>/dev/null)" = "$commit" ]; then
    echo "check: $name passed before at this commit"
    continue
  fi
  begin=$SECONDS result=failed
  echo "check: $name; output in build/check/$name.log"
  set -m  # a group of processes that can be ended together
  if [ "$name" = fuzz ]; then fuzz; else ./dev "$name"; fi </dev/null >"build/check/$name.log" 2>&1 &
  set +m
  wait $! && result=passed
  if [ $result = passed ]; then echo "$commit" >"build/check/$name.passed"; else failed=1; fi
  echo "check: $name $result in $(((SECONDS - begin + 30) / 60)) minutes"
done
exit $failed
