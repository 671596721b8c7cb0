#!/usr/bin/env bash
# Prints why tests were skipped, with their number, and names those that need other hardware.
#   skipped.sh LOG   the log of ctest, Testing/Temporary/LastTest.log
set -euo pipefail
[ -f "$1" ] || exit 0
awk '
  /^[0-9]+\/[0-9]+ Test: / {test = $3; counted = 0}
  expected && !counted {
    counted = 1
    if (!($0 in tests)) reasons[++n] = $0
    ++tests[$0]
    if (/^other hardware: /) names[$0] = names[$0] "\n    " test
  }
  {expected = /: Skipped$/}
  END {
    for (i = 1; i <= n; ++i) all += tests[reasons[i]]
    if (n) printf "Skipped tests: %d, for these reasons:\n", all
    for (i = 1; i <= n; ++i) printf "  %d: %s%s\n", tests[reasons[i]], reasons[i], names[reasons[i]]
  }' "$1"
