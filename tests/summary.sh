#!/usr/bin/env bash
# Prints the output of failed tests, why tests were skipped, and the numbers of tests.
#   summary.sh LOG   the log of ctest, Testing/Temporary/LastTest.log
set -euo pipefail
[ -f "$1" ] || exit 0
awk '
  function fail(name) {
    failed[++failures] = name
    printf "%s\n", text
  }
  /^[0-9]+\/[0-9]+ Testing: / {shard = $3; text = ""; running = ""; ran = 0; next}
  /^\[ RUN      \] / {running = $4; text = $0; ran = 1; next}
  /^\[       OK \] / {++passed; running = ""; next}
  /^\[  FAILED  \] / && running {text = text "\n" $0; fail(running); running = ""; next}
  /^\[  SKIPPED \] / && running {
    if (!(reason in skipped)) reasons[++n] = reason
    ++skipped[reason]
    if (reason ~ /^other hardware: /) names[reason] = names[reason] "\n    " running
    running = ""
    next
  }
  /^<end of output>/ {
    if (running) {text = text "\n" shard " ended here"; fail(running)}
    running = ""
    next
  }
  /^Test Failed\./ && !ran {fail(shard)}
  /^Test Passed\./ && !ran {++passed}
  expected {reason = $0}
  {expected = /: Skipped$/; text = text "\n" $0}
  END {
    for (i = 1; i <= n; ++i) all += skipped[reasons[i]]
    printf "%d tests passed, %d failed, %d were skipped", passed, failures, all
    printf n ? ", for these reasons:\n" : "\n"
    for (i = 1; i <= n; ++i)
      printf "  %d: %s%s\n", skipped[reasons[i]], reasons[i], names[reasons[i]]
    if (failures) print "failed:"
    for (i = 1; i <= failures; ++i) printf "  %s\n", failed[i]
  }' "$1"
