#!/usr/bin/env bash
# valgrind.sh BIN_DIR: every configuration of configs/variants trains two steps in Valgrind, with all
# that a run measures and writes. Fails where memory is read that is not ours or has no value yet, or
# that nothing points to any more stays behind.
set -euo pipefail
bin=$(readlink -f "$1")
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GOMP_SPINCOUNT=10000  # else the program executes itself again, which Valgrind cannot
for variant in "$here"/../../configs/variants/*.yaml; do
  name=$(basename "$variant" .yaml)
  valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite \
    --show-leak-kinds=definite --suppressions="$here/libraries.supp" \
    "$bin/difftape" train "$variant" --out "$work/$name" --set model.d_model=32 \
    --set model.num_heads=4 --set model.num_layers=3 --set model.d_ff=64 --set model.max_seq_len=64 \
    --set data.seq_len=64 --set data.batch_size=2 --set train.steps=2 --set train.eval_interval=1 \
    --set train.eval_batches=1 --set train.final_eval_batches=1 --set train.checkpoint_interval=1 \
    --set log.diagnostics_interval=1 --set log.tensorboard=true >"$work/out" ||
    { echo "$name: exit code $?"; exit 1; }
  echo "$name: $(wc -l <"$work/$name/metrics.jsonl") steps, no error"
done
