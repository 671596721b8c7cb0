#!/usr/bin/env bash
# Breaks the backward code as mutants.txt says, one mutant at a time, in a copy of the sources; the
# tests in double precision must fail for each.
#   run.sh [--list] [NUMBER | REGEX]...     every mutant, or those that match
#   run.sh --check                          only whether each fits the sources
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
list=tests/mutants/mutants.txt log=build/mutants/log.txt
copy=build/mutants/src build=build/mutants/build
cpu_limit=900  # seconds of tests; a mutant that takes more is killed, and the table says so

fail() { echo "mutants: $*" >&2; exit 1; }

files=("") whats=("") olds=("") news=("")  # mutants count from 1
read_list() {
  local line file=
  while IFS= read -r line; do
    case $line in
      '## '*) file=${line#'## '} ;;
      '# '*) files+=("$file") whats+=("${line#'# '}") olds+=("") news+=("") ;;
      '- '*) olds[-1]+=${olds[-1]:+$'\n'}${line#'- '} ;;
      '+ '*) news[-1]+=${news[-1]:+$'\n'}${line#'+ '} ;;
      '') ;;
      *) fail "$list: not a line of a mutant: $line" ;;
    esac
  done <"$list"
}

is_selected() {  # NUMBER PATTERN...
  local pattern line="$1 ${files[$1]}: ${whats[$1]}"
  for pattern in "${@:2}"; do
    [[ $pattern =~ ^[0-9]+$ ]] && pattern="^$pattern "
    [[ ! $line =~ $pattern ]] || return 0
  done
  [ $# -eq 1 ]
}

occurs_once() {  # TEXT IN
  local before=${2%%"$1"*}  # prefixes are far slower to remove
  [[ $1 && $2 == *"$1"* && ${2:${#before}+${#1}} != *"$1"* ]]
}

check_list() {  # reports every mutant that does not fit its file
  local i file='' text='' unfit=0
  for ((i = 1; i < ${#files[@]}; ++i)); do
    if [ "$file" != "${files[$i]}" ]; then
      file=${files[$i]} text=''
      [ ! -f "$file" ] || text=$(<"$file")
    fi
    occurs_once "${olds[$i]}" "$text" && continue
    echo "mutants: mutant $i (${whats[$i]}): need this once in $file: ${olds[$i]}" >&2
    unfit=$((unfit + 1))
  done
  [ "$unfit" -eq 0 ] || fail "$unfit of $((${#files[@]} - 1)) do not fit the sources"
}

mutated() {  # NUMBER TEXT: the text with the mutant in it
  local before=${2%%"${olds[$1]}"*}
  printf '%s\n' "$before${news[$1]}${2:${#before}+${#olds[$1]}}"
}

copy_sources() {  # only what differs, so that a build compiles no more than that
  mkdir -p "$copy"
  git ls-files | while IFS= read -r file; do
    [ ! -f "$file" ] || cmp -s "$file" "$copy/$file" || cp --parents "$file" "$copy"
  done
  (cd "$copy" && find . -type f -printf '%P\n') | { grep -vxFf <(git ls-files) || true; } |
    while IFS= read -r file; do rm "$copy/$file"; done
}

build_tests() {  # MESSAGE
  cmake --build "$build" --target difftape_tests_f64 difftape_tests_proofs_f64 >"$log" 2>&1 ||
    { cat "$log" >&2; fail "$1"; }
}

run_tests() (
  ulimit -S -t "$cpu_limit"
  export OMP_NUM_THREADS=1 GOMP_SPINCOUNT=10000
  for program in f64 proofs_f64; do  # the first, which is shorter, finds most
    "$build/bin/difftape_tests_$program" --gtest_fail_fast --gtest_color=no >"$log" 2>&1 ||
      exit
  done
)

killer() {  # STATUS: the test that failed, or that ran when the program ended
  sed -n '/^\[  FAILED  \] /{s///;s/[ ,].*//p;q}' "$log" | grep . && return
  echo "$(sed -n 's/^\[ RUN      \] //p' "$log" | tail -n 1): $(kill -l "$1")"
}

run_mutant() {  # NUMBER: prints its row of the table, fails if it survives
  local original by="**survived**" status=0 begin=$SECONDS at=$copy/${files[$1]}
  original=$(<"$at")
  mutated "$1" "$original" >"$at"
  build_tests "mutant $1 (${whats[$1]}) does not compile"
  run_tests || { status=$?; by=$(killer "$status"); }
  printf '%s\n' "$original" >"$at"
  echo "| $1 | ${files[$1]} | ${whats[$1]} | $by | $((SECONDS - begin)) |"
  [ "$status" -ne 0 ]
}

read_list
check_list
[ "${1:-}" != --check ] || { echo "$((${#files[@]} - 1)) mutants fit the sources"; exit 0; }
[ "${1:-}" = --list ] && show=echo && shift || show=:
selected=() survivors=()
for ((i = 1; i < ${#files[@]}; ++i)); do
  is_selected "$i" "$@" && selected+=("$i") && $show "$i ${files[$i]}: ${whats[$i]}"
done
[ ${#selected[@]} -gt 0 ] || fail "no mutant matches $*"
[ "$show" = : ] || exit 0

copy_sources
[ -f "$build/build.ninja" ] || cmake -S "$copy" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DDIFFTAPE_WERROR=OFF >/dev/null  # a mutant may leave a variable unused
build_tests "the sources do not compile"
run_tests || { cat "$log" >&2; fail "the tests fail without a mutant"; }
printf '%s\n' '| | file | what is wrong | killed by | s |' '|---|---|---|---|---|'
for i in "${selected[@]}"; do run_mutant "$i" || survivors+=("$i"); done
killed="$((${#selected[@]} - ${#survivors[@]})) of ${#selected[@]} mutants killed"
printf '\n%s\n' "Commit $(git describe --always --dirty --exclude='*'): $killed, $SECONDS seconds."
[ ${#survivors[@]} -eq 0 ] || fail "survived: ${survivors[*]}"
