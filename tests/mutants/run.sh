#!/usr/bin/env bash
# Breaks the sources as mutants.txt says, one mutant at a time; the tests must fail for each. What was
# killed is kept until sources or tests change: a pass goes on where it stopped.
#   run.sh [--fresh] [-j JOBS] [NUMBER | REGEX]...   every mutant, or those that match
#   run.sh --list [NUMBER | REGEX]...                their numbers, files and mistakes
#   run.sh --check                                   only whether each fits the sources
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
list=tests/mutants/mutants.txt
build=build/release work=$PWD/build/mutants
table=$work/table.md    # of the last pass over all mutants
results=$work/killed.txt  # KEY | FILE | WHAT | KILLED BY | SECONDS
cpu_limit=300  # seconds of tests; a mutant that takes more is killed, and the table says so

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

# NUMBER: prints its file with the mutant in it, and fails unless its text occurs once, whatever white
# space stands between the characters.
mutated() {
  OLD=${olds[$1]} NEW=${news[$1]} perl -0777 -pe '
    my $old = join "\\s*", map { quotemeta } $ENV{OLD} =~ /\S/g;
    exit 1 if s/$old/$ENV{NEW}/g != 1' "${files[$1]}"
}

check_list() {  # reports every mutant that does not fit its file
  local i unfit=0
  for ((i = 1; i < ${#files[@]}; ++i)); do
    mutated "$i" >/dev/null 2>&1 && continue
    echo "mutants: mutant $i (${whats[$i]}): need this once in ${files[$i]}: ${olds[$i]}" >&2
    unfit=$((unfit + 1))
  done
  [ "$unfit" -eq 0 ] || fail "$unfit of $((${#files[@]} - 1)) do not fit the sources"
}

key() {  # NUMBER: of the mutant and of all that decides whether it is killed
  printf '%s\n' "$sources" "${files[$1]}" "${whats[$1]}" "${olds[$1]}" "${news[$1]}" |
    sha256sum | cut -c 1-16
}

result() {  # NUMBER: its line of the results, fails if it was not killed
  grep -s "^$(key "$1") " "$results"
}

killers() {  # FILE WHAT, empty for any: the tests that killed such mutants, as a filter of tests
  cat "$table" "$results" 2>/dev/null | awk -F ' [|] ' -v file="$1" -v what="$2" '
    NF >= 5 && (file == "" || $2 == file) && (what == "" || $3 == what) && $4 ~ /[.]/ {
      sub(/: .*/, "", $4)
      if (!seen[$4]++) printf ":%s", $4
    }'
}

# The command of the build that makes OUTPUT.
command_of() { ninja -C "$build" -t commands "$1" | tail -n 1; }

programs_of() {  # NUMBER: the tests that may kill it
  case ${files[$1]} in
    train/study/compare/*) echo f32 ;;
    train/*) echo proofs_f64 ;;
    *) echo f64 proofs_f64 ;;
  esac
}

library_of() {  # NUMBER: the library whose objects contain its file
  case ${files[$1]} in
    train/study/compare/*) echo difftape_f32 ;;
    train/*) echo difftape_numbers_f64 ;;
    *) echo difftape_kernel_f64 ;;
  esac
}

build_mutant() (  # NUMBER PROGRAM FOLDER: the tests, linked with one object before the library
  library=$(library_of "$1") archive=lib${library/_numbers/}.a file=$PWD/${files[$1]}
  object=CMakeFiles/$library.dir/${files[$1]}.o source=$file
  mutated "$1" >"$3/mutant.cpp"
  new=$3/mutant.cpp
  if [ "$library" = difftape_f32 ]; then  # compiles the files of a folder as one
    object=CMakeFiles/$library.dir/Unity/unity_$PWD/$(dirname "${files[$1]}")_cxx.cxx.o
    source=$PWD/$build/${object%.o} new=$3/folder.cpp
    sed "s|\"$file\"|\"$3/mutant.cpp\"|" "$source" >"$new"
    grep -q "$3/mutant.cpp" "$new" || fail "$source does not include $file"
  fi
  compile=$(command_of "$object") link=$(command_of "bin/difftape_tests_$2")
  compile=${compile/"-c $source"/"-c $new"}
  compile=${compile//-Werror/}  # a mutant may leave a variable unused
  cd "$build"
  eval "${compile//"$object"/"$3/mutant.o"}" || exit
  link=${link/$archive/"$3/mutant.o $archive"}
  eval "${link/"-o bin/difftape_tests_$2"/"-o $3/tests"}"
)

tests_of() {  # PROGRAM: a filter of its tests that may kill mutants
  [ "$1" = f32 ] || { echo '*'; return; }
  git ls-files 'tests/train/study/compare/*_test.cpp' | xargs sed -nE 's/^TEST(_F)?\((\w+),.*/\2.*/p' |
    sort -u | paste -sd:
}

run_tests() (  # PROGRAM ALL [FILTER]...: the tests of each filter in turn, then the rest of all
  [ $# -eq 2 ] || ulimit -S -t "$cpu_limit"  # a mutant may loop
  export OMP_NUM_THREADS=1 GOMP_SPINCOUNT=10000
  ran=
  for filter in "${@:3}" "$2"; do
    [ "$filter" ] || continue
    "$1" --gtest_fail_fast --gtest_color=no --gtest_filter="$filter-$ran" || exit
    ran+=:$filter
  done
)

killer() {  # STATUS LOG: the test that failed, or that ran when the program ended
  sed -n '/^\[  FAILED  \] /{s///;s/[ ,].*//p;q}' "$2" | grep . && return
  echo "$(sed -n 's/^\[ RUN      \] //p' "$2" | tail -n 1): $(kill -l "$1")"
}

run_mutant() {  # NUMBER PROGRAM: adds its line to the results if it is killed
  local file=${files[$1]} what=${whats[$1]} at=$work/$1 status=0 begin=$SECONDS line others=
  [ "$2" = f32 ] || others=$(killers '' '')  # the tests of other files
  mkdir -p "$at"
  build_mutant "$1" "$2" "$at" >"$at/log.txt" 2>&1 ||
    { cat "$at/log.txt" >&2; fail "mutant $1 ($what) does not compile"; }
  run_tests "$at/tests" "$(tests_of "$2")" \
    "$(killers "$file" "$what")" "$(killers "$file" '')" "$others" >"$at/log.txt" 2>&1 || status=$?
  if [ "$status" -ne 0 ]; then
    line="$file | $what | $(killer "$status" "$at/log.txt") | $((SECONDS - begin))"
    echo "$(key "$1") | $line" >>"$results"
    echo "| $1 | $line |"
    rm -r "$at"
  fi
}

run_left() {  # PROGRAM: runs every selected mutant that is not killed
  local i left=() begun=0
  for i in "${selected[@]}"; do
    [[ " $(programs_of "$i") " != *" $1 "* ]] || result "$i" >/dev/null || left+=("$i")
  done
  [ ${#left[@]} -gt 0 ] || return 0
  cmake --build "$build" --target "difftape_tests_$1" >"$work/log.txt" ||
    { cat "$work/log.txt" >&2; fail "the sources do not compile"; }
  if ! grep -qs "^$sources passes $1" "$results"; then
    run_tests "$build/bin/difftape_tests_$1" "$(tests_of "$1")" >"$work/log.txt" 2>&1 ||
      { cat "$work/log.txt" >&2; fail "the tests fail without a mutant"; }
    echo "$sources passes $1" >>"$results"
  fi
  for i in "${left[@]}"; do
    [ $((begun++)) -lt "$jobs" ] || wait -n || true
    run_mutant "$i" "$1" &
  done
  wait
}

print_table() {  # fails if a mutant survived
  local i line survivors=() killed
  printf '%s\n' '| | file | what is wrong | killed by | s |' '|---|---|---|---|---|'
  for i in "${selected[@]}"; do
    line=$(result "$i") ||
      { survivors+=("$i"); line="- | ${files[$i]} | ${whats[$i]} | **survived** | "; }
    echo "| $i | ${line#* | } |"
  done
  killed=$((${#selected[@]} - ${#survivors[@]}))
  printf '\n%s\n' "Commit $commit: $killed of ${#selected[@]} mutants killed."
  [ ${#survivors[@]} -eq 0 ]
}

read_list
check_list
show=: jobs=1
while true; do
  case ${1:-} in
    --check) echo "$((${#files[@]} - 1)) mutants fit the sources"; exit 0 ;;
    --list) show=echo ;;
    --fresh) rm -f "$results" ;;
    -j) jobs=$2; shift ;;
    *) break ;;
  esac
  shift
done
selected=()
for ((i = 1; i < ${#files[@]}; ++i)); do
  is_selected "$i" "$@" && selected+=("$i") && $show "$i ${files[$i]}: ${whats[$i]}"
done
[ ${#selected[@]} -gt 0 ] || fail "no mutant matches $*"
[ "$show" = : ] || exit 0

trap 'trap - TERM; kill 0' INT TERM  # jobs in the background ignore an interrupt
mkdir -p "$work"
commit=$(git rev-parse --short HEAD)
git diff --quiet HEAD -- . ':!*.md' || commit+=-dirty
sources=$(git ls-files -co --exclude-standard -- CMakeLists.txt CMakePresets.json cmake core autograd \
  layers optim train/stats train/app/gradcheck train/run train/study/compare train/system tests \
  ':!tests/mutants' ':!tests/faults' ':!tests/fuzz' | xargs cat | sha256sum | cut -c 1-16)
[ -f "$build/build.ninja" ] || cmake --preset release >/dev/null
run_left f64  # finds most and is quick
run_left proofs_f64
run_left f32
if [ $# -gt 0 ]; then
  print_table
else
  print_table >"$table" || fail "some survived: see $table"
  tail -n 1 "$table"
fi
