#!/usr/bin/env bash
# Runs the checks that are too long for `./dev test`, and writes one row per check to docs/checks.md.
# A check is skipped if its row says that it passed and no file that it tests has changed since.
#   check.sh [NAME ...]
set -uo pipefail
table=docs/checks.md

# name | command | what it shows
list() {
  cat <<'EOT'
test | ./dev test | every test of the suite
newcomer | ./dev newcomer | both commands of the README work in a bare Debian 12
lint | ./dev lint | format, clang-tidy, one definition per type
asan | ./dev asan | no address error, undefined behavior or leak in any test
tsan | ./dev tsan | no data race in the tests of threads
valgrind | ./dev valgrind | no memory error in two steps of each attention variant
torture | ./dev torture | killed runs and failing calls lose no bits; damaged checkpoints are rejected
fuzz | for t in tests/fuzz/corpus/*; do ./dev fuzz "${t##*/}" 300; done | no input crashes a reader, five minutes each
mutants | ./dev mutants | injected bugs are caught
portable | ./dev portable | the same bits with other vector widths
clang | ./dev clang | the same bits with Clang
aarch64 | ./dev aarch64 | the same bits on 64-bit ARM, emulated
soak | ./dev soak | memory and open files stay constant
scale | ./dev scale | large sweeps, logs, token files and checkpoints
cluster | ./dev cluster | a sweep on two Slurm nodes survives the loss of one
package | ./dev package | the Debian package works in a bare Debian 12
docs | ./dev docs | the public headers are documented without a warning
EOT
}

# extent NAME LOG: how much was checked, as the log says
extent() {
  case $1 in
    test | asan | tsan) sed -nE 's/.*tests failed out of ([0-9]+)/\1 tests/p' "$2" ;;
    torture | portable | clang | aarch64) awk '/PASSED/ {n += $4} END {print n " tests"}' "$2" ;;
    fuzz) awk '/executed_units/ {n += $2; t++} END {printf "%.1f M inputs, %d readers", n / 1e6, t}' "$2" ;;
    mutants) sed -nE 's/^Commit .*: (.*) mutants killed\./\1 mutants/p' "$2" ;;
    valgrind) echo "$(grep -c 'no error$' "$2") variants" ;;
    soak) sed -nE 's/^([0-9]+ steps): .*/\1/p' "$2" ;;
    scale) sed -nE 's/^([0-9]+ (runs|steps)) .*/\1/p' "$2" | paste -sd, | sed 's/,/, /g' ;;
    cluster) sed -nE 's/^([0-9]+ of 60) have .*/\1 runs/p' "$2" ;;
    lint) echo "$(git ls-files '*.cpp' '*.h' | wc -l) files" ;;
    newcomer) sed -nE 's/^newcomer: (.*): ([0-9.]+ minutes).*/\1 \2/p' "$2" | paste -sd, | sed 's/,/, /g' ;;
    *) echo ;;
  esac
}

# Whether the table has a check as passed, and no tested file has changed since its commit.
is_current() {
  local row commit
  row=$(grep -F "| \`./dev $1\` |" "$table" 2>/dev/null) || return 1
  commit=$(cut -d'|' -f6 <<<"$row" | tr -d ' `')
  [[ $row == *"| passed |" ]] || return 1
  git diff --quiet "$commit" HEAD -- . ':!*.md' ':!docs' ':!results' ':!bench/results'
}

write_table() {
  {
    cat <<'EOT'
# Checks

This page is for readers who want to know which long checks ran, when, and on which version. `./dev check` writes it.

| command | shows | extent | minutes | commit | date | result |
|---|---|---|---|---|---|---|
EOT
    list | while IFS='|' read -r name _; do grep -F "| \`./dev ${name% }\` |" "$1"; done
  } >"$table.new"
  mv "$table.new" "$table"
}

fail() { echo "check: $*" >&2; exit 64; }

for name in "$@"; do
  list | grep -q "^$name |" ||
    fail "'$name' is not a check; choose from $(list | cut -d' ' -f1 | paste -sd' ')"
done
git diff --quiet HEAD -- . ":!$table" ||
  fail "commit your changes first; a row names its commit"
mkdir -p build/check
failed=0
while IFS='|' read -r name command shows <&3; do
  name=${name% } command=${command# } command=${command% } shows=${shows# }
  [ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
  if is_current "$name"; then
    echo "check: $name passed before, and nothing has changed"
    continue
  fi
  echo "check: $name; output in build/check/$name.log"
  begin=$SECONDS result=passed
  bash -euo pipefail -c "$command" >"build/check/$name.log" 2>&1 || { result=failed failed=1; }
  minutes=$(((SECONDS - begin + 30) / 60))
  row="| \`./dev $name\` | $shows | $(extent "$name" "build/check/$name.log") | $minutes "
  row+="| \`$(git rev-parse --short HEAD)\` | $(date -I) | $result |"
  { grep -vF "| \`./dev $name\` |" "$table" 2>/dev/null; echo "$row"; } >build/check/rows
  write_table build/check/rows
  echo "check: $name $result in $minutes minutes"
done 3< <(list)
exit $failed
