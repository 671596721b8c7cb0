#!/usr/bin/env bash
# Runs the checks that are too long for `./dev test`, and writes one row per check to docs/checks.md.
# A check is skipped if its row says that it passed and no file that it tests has changed since.
# Copies the rows to the tables of promises in README.md and docs/reproducibility.md. Different checks
# may run at the same time if they use different folders of build.
#   check.sh [NAME ...]
#   check.sh --promises    only writes the tables of promises
set -uo pipefail
table=docs/checks.md

# name | command | what it shows
list() {
  cat <<'EOT'
test | ./dev test | every test of the suite
newcomer | ./dev newcomer | both commands of the README work in a bare Debian 12
lint | ./dev lint | format, clang-tidy, one definition per type
asan | ./dev asan | no address error, undefined behavior or leak in any test of one process
tsan | ./dev tsan | no data race in the tests of threads
valgrind | ./dev valgrind | no memory error in two steps of each attention variant
torture | ./dev torture | killed runs and failing calls lose no bits; damaged checkpoints are rejected
fuzz | for t in tests/fuzz/corpus/*; do ./dev fuzz "${t##*/}" 300; done | no input crashes a reader (`./dev fuzz TARGET 300` for each)
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
    test | asan | tsan) awk '/tests failed out of/ {all = $NF} / [(]Skipped[)]$/ {n++}
      END {if (all) printf "%d tests%s", all, n ? ", " n " skipped" : ""}' "$2" ;;
    torture) awk '/^faults: [a-zA-Z]+ at [0-9]+ calls/ {at += $4} /^faults: sweep: .* at [0-9]+ of/ {at += $5}
      /kills at random/ {kills = $2} /flips of one bit/ {flips = $2} /lengths below/ {lengths = $2}
      END {printf "%d calls that fail or kill, %d random kills, %d flipped bits, %d lengths", at, kills, flips, lengths}' "$2" ;;
    portable | clang | aarch64) awk '/PASSED/ {n += $4} END {print n " tests"}' "$2" ;;
    fuzz) awk '/executed_units/ {n += $2; t++; if (least == "" || $2 < least) least = $2}
      END {if (t) printf "%.1f M inputs, %d readers, at least %d each", n / 1e6, t, least}' "$2" ;;
    mutants) sed -nE 's/^Commit .*: (.*) mutants killed\./\1 mutants/p' "$2" ;;
    valgrind) echo "$(grep -c 'no error$' "$2") variants" ;;
    soak) sed -nE 's/^([0-9]+ steps): .*/\1/p' "$2" ;;
    scale) sed -nE 's/^([0-9]+ (runs|steps)) .*/\1/p; s/^([^ ]+( [^ ]+)*)  .* MISSED$/missed: \1/p' "$2" |
      awk '{printf "%s%s", (NR > 1 ? ", " : ""), $0}' ;;
    cluster) sed -nE 's/^([0-9]+ of 60) have .*/\1 runs/p' "$2" ;;
    lint) echo "$(git ls-files '*.cpp' '*.h' | wc -l) files" ;;
    newcomer) sed -nE 's/^newcomer: (.*): ([0-9.]+ minutes).*/\1 \2/p' "$2" | paste -sd, | sed 's/,/, /g' ;;
    package) sed -nE 's/^test_deb: (.*) passed$/\1/p' "$2" ;;
    docs) echo "$(grep -oE '[^ =]+[.]h\>' "$2" | sort -u | wc -l) headers" ;;
  esac
}

# differs IGNORED COMMIT PATH...: whether a file there is not as in the commit, or git does not know it.
# Lines that match IGNORED may differ.
differs() {
  local found
  found=$(git diff --no-renames -I "$1" "$2" -- "${@:3}" &&
    git ls-files --others --exclude-standard -- "${@:3}") || return 0
  [ -n "$found" ]
}

# is_unchanged NAME COMMIT: whether no file that the check tests has changed since. Lines of comment in
# C++ count only if the check reads them. The suite reads the configurations of the studies, and in
# `test` the pages and results count, too, except what this script writes. `newcomer` reads README.md
# without its tables. Checks without the suite use only what is named here of tests/.
is_unchanged() {
  local tested=(. ':!*.md' ':!docs' ':!results' ':!bench/results') own=()
  local ignored='^[|].*[|] (passed|failed|not run)[^|]*[|]$'
  case $1 in
    test | newcomer | lint | docs) ;;
    *) ignored+='|^ *//' ;;
  esac
  case $1 in
    test) tested=(. ':!docs/checks.md' ':!tests/mutants/table.md') ;;
    mutants)
      tested=(CMakeLists.txt CMakePresets.json cmake core autograd layers optim train/stats
        train/app/gradcheck train/run train/study/compare train/system tests ':!tests/faults'
        ':!tests/fuzz' ':!*.md')
      ;;
    asan | newcomer) ;;
    lint | tsan | clang) tested+=(':!configs/studies') ;;
    *) tested+=(':!configs/studies' ':!bench' ':!tests') ;;
  esac
  case $1 in
    torture) own=(tests/faults tests/support 'tests/train/app/program.*' tests/train/run/loop/tiny.h) ;;
    portable | aarch64) own=(tests/portable tests/support) ;;
    fuzz) own=(tests/fuzz tests/support tests/train/study/compare/synthetic_run.h) ;;
    scale) own=(tests/scale bench/checkpoint.sh) ;;
    valgrind | soak | cluster) own=("tests/$1") ;;
  esac
  [ "$1" != newcomer ] || ! differs '^[|]' "$2" README.md || return 1
  [ ${#own[@]} -eq 0 ] || ! differs "$ignored" "$2" "${own[@]}" ':!*.md' || return 1
  ! differs "$ignored" "$2" "${tested[@]}"
}

# Whether the table has a check as passed, and no tested file has changed since its commit.
is_current() {
  local row
  row=$(grep -F "| \`./dev $1\` |" "$table" 2>/dev/null) || return 1
  [[ $row == *"| passed |" ]] || return 1
  is_unchanged "$1" "$(cut -d'|' -f6 <<<"$row" | tr -d ' `')"
}

fail() { echo "check: $*" >&2; exit 64; }

# replace FILE: with stdin, at once and only if all of it could be written
replace() {
  local new=build/check/${1##*/}.new
  cat >"$new" && mv "$new" "$1" && return
  rm -f "$new"
  echo "check: $1 cannot be written and is as before; free disk space, then run the check again and" \
    "\`./dev check --promises\`" >&2
  exit 74
}

# write_table ROWS
write_table() {
  {
    cat <<'EOT'
# Checks

This page is for readers who want to know which long checks ran, when, and on which version. `./dev check` writes it.

| command | shows | extent | minutes | commit | date | result |
|---|---|---|---|---|---|---|
EOT
    list | while read -r line; do
      grep -F "| \`./dev ${line%% *}\` |" <<<"$1" ||
        echo "| \`./dev ${line%% *}\` | ${line##* | } | | | | | not run |"
    done
  } | replace "$table" || exit
}

# The promises of README.md: promise | command that shows it | the check that includes it
promises() {
  cat <<'EOT'
gradients equal finite differences, tolerance 1e-10 | `difftape gradcheck` | test
values and gradients equal PyTorch's, tolerance 1e-12 | `./dev test -R Golden` | test
the same bits for any number of threads and processes | `./dev test -R 'VerifyEvery\|Together'` | test
killed runs resume to the same bits; damaged files are rejected | `./dev torture` | torture
tests catch injected bugs in gradients and statistics | `./dev mutants` | mutants
EOT
}

# last_run NAME: what the table says of a check
last_run() {
  grep -F "| \`./dev $1\` |" "$table" |
    awk -F ' *[|] *' '{print $8 ($7 == "" ? "" : " " $7) ($6 == "" ? "" : " (" $6 ")") ($4 == "" ? "" : ", " $4)}'
}

# write_rows FILE: puts the rows of stdin below the header "| promise ... | last run |"
write_rows() {
  local page
  [ -f "$1" ] || { cat >/dev/null; return; }
  page=$(awk 'NR == FNR {rows = rows $0 "\n"; next}
    skip && /^[|]/ {next}
    {skip = 0; print}
    /^[|] promise .* last run [|]$/ {getline; print; printf "%s", rows; skip = 1}' - "$1") || exit
  replace "$1" <<<"$page"
}

write_promises() {
  promises | while read -r line; do
    echo "| ${line% | *} | $(last_run "${line##* }") |"
  done | write_rows README.md || exit
  list | while read -r line; do
    echo "| ${line##* | } | \`./dev ${line%% *}\` | $(last_run "${line%% *}") |"
  done | write_rows docs/reproducibility.md
}

# write_pages [ROW]: puts the row of a check in the place of its last one, in all tables, while no
# other check does
write_pages() (
  flock 8 || exit
  row=${1:-} name=${row#*./dev }
  rows=$({ grep -vF "| \`./dev ${name%%\`*}\` |" "$table" 2>/dev/null; echo "$row"; })
  write_table "$rows" && write_promises
) 8>build/check/lock

mkdir -p build/check

if [ "${1:-}" = --promises ]; then
  write_pages
  exit
fi

for name in "$@"; do
  list | cut -d' ' -f1 | grep -qxF -- "$name" ||
    fail "'$name' is not a check; choose from $(list | cut -d' ' -f1 | paste -sd' ')"
done
# The checks write these pages themselves. The build finds sources that git does not know, too.
changes=$(git status --porcelain -- . ":!$table" ':!README.md' ':!docs/reproducibility.md' \
  ':!tests/mutants/table.md')
[ -z "$changes" ] || fail "commit or remove your changes first; a row names its commit
$changes"
failed=0 running= stopped=

# stop STATUS: tells the check that runs to end; the loop below then ends with this status.
stop() {
  stopped=$1
  [ -z "$running" ] || kill -TERM -- "-$running" 2>/dev/null
}
trap 'stop 129' HUP
trap 'stop 130' INT
trap 'stop 143' TERM
while IFS='|' read -r name command shows <&3; do
  name=${name% } command=${command# } command=${command% } shows=${shows# }
  [ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
  if is_current "$name"; then
    echo "check: $name passed before, and nothing has changed"
    continue
  fi
  begin=$SECONDS result=passed commit=$(git rev-parse --short HEAD)
  is_unchanged "$name" "$commit" || fail "commit or remove your changes first, which $name tests"
  exec 9>"build/check/$name.lock"
  if ! flock -n 9; then
    echo "check: $name runs already; wait for its end" >&2
    failed=64
    continue
  fi
  echo "check: $name; output in build/check/$name.log"
  set -m  # a group of processes that can be ended together
  bash -euo pipefail -c "$command" </dev/null >"build/check/$name.log" 2>&1 9>&- &
  running=$!
  set +m
  [ -z "$stopped" ] || stop "$stopped"  # the signal came before it ran
  wait "$running" || result=failed
  if [ "$stopped" ]; then
    for ((tenths = 0; tenths < 300; ++tenths)); do
      kill -0 -- "-$running" 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL -- "-$running" 2>/dev/null
    echo "check: $name interrupted; its row is as before"
    exit "$stopped"
  fi
  running= minutes=$(((SECONDS - begin + 30) / 60))
  [ "$result" = passed ] || failed=1
  if ! is_unchanged "$name" "$commit"; then
    echo "check: $name $result, but what it tests was changed meanwhile; its row is as before"
    failed=1
    continue
  fi
  row="| \`./dev $name\` | $shows | $(extent "$name" "build/check/$name.log") | $minutes "
  row+="| \`$commit\` | $(date -I) | $result |"
  write_pages "$row" || exit
  echo "check: $name $result in $minutes minutes"
  [ -z "$stopped" ] || exit "$stopped"
done 3< <(list)
exit $failed
