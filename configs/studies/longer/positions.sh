#!/usr/bin/env bash
# The loss at each place of sequences four times as long as in training, mean over the seeds:
#   positions.sh SWEEP_DIR
set -euo pipefail
difftape=${DIFFTAPE:-difftape}
longer=(--set data.seq_len=512 --set model.max_seq_len=512)
for arm in softmax v1 v2; do
  for scaling in none linear ntk yarn; do
    scaled=("${longer[@]}")
    [ $scaling = none ] || scaled+=(--set "model.rope_scaling={kind: $scaling, factor: 4}")
    for run in "$1/$arm"-seed*; do "$difftape" eval "$run" --positions "${scaled[@]}"; done |
      awk -v name="$arm $scaling" '
        / to [0-9]+ / { sum[$1] += $4; last[$1] = $3; ++count[$1] }
        END {
          printf "%-16s", name
          for (first = 8; first in sum; first *= 2)
            printf "  %d to %d: %.4f", first, last[first], sum[first] / count[first]
          print ""
        }'
  done
done
