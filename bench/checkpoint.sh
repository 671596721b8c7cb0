#!/usr/bin/env bash
# checkpoint.sh BIN_DIR ROUNDS: seconds that a checkpoint of 11.0 M parameters adds to a run, as the
# median over rounds of runs with and without checkpoints in turns, and the part of a run that one
# takes every five minutes.
set -euo pipefail
export LC_ALL=C
bin=$(readlink -f "$1") rounds=$2
config=$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../configs/bench/d384.yaml")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

# seconds_of_nine_steps INTERVAL: of a run that writes a checkpoint every INTERVAL steps and at its end
seconds_of_nine_steps() {
  local begin=$EPOCHREALTIME
  "$bin/difftape" train "$config" --out run --set data.batch_size=1 --set train.steps=9 \
    --set train.checkpoint_interval="$1" --set train.eval_interval=0 \
    --set train.final_eval_batches=1 >out || { cat out >&2; return 1; }
  awk "BEGIN {print $EPOCHREALTIME - $begin}"
  rm -r run
}

"$bin/difftape" doctor
for ((round = 0; round < rounds; ++round)); do
  with=$(seconds_of_nine_steps 1)
  without=$(seconds_of_nine_steps 0)
  awk "BEGIN {print ($with - $without) / 8}"
done | sort -g | awk -v rounds="$rounds" '
  {seconds[NR] = $1}
  END {
    if (NR != rounds) exit 1
    median = (seconds[int((NR + 1) / 2)] + seconds[int(NR / 2) + 1]) / 2
    printf "A checkpoint of 11.0 M parameters adds %.2f s to a run (median of %d rounds).\n", median, rounds
    printf "Every five minutes, that is %.2f %% of its time.\n", median / 300 * 100
  }'
