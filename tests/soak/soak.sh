#!/usr/bin/env bash
# soak.sh BIN_DIR [STEPS]: one run of many small steps, with checkpoints, validation, diagnostics and
# every file that a run can write. Fails if, from the second fifth of them to the fourth, its memory
# grows by more than a tenth or its open files at all. Memory is the least that it holds.
set -euo pipefail
bin=$(readlink -f "$1")
steps=${2:-20000}
configs=$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../../configs")
work=$(mktemp -d)
trap 'kill "$run" 2>/dev/null || true; rm -rf "$work"' EXIT
"$bin/difftape" train "$configs/base/text_0.2m.yaml" --out "$work/run" \
  --set model.attention.kind=diff_v1 --set model.match_params=false --set model.d_model=32 \
  --set model.num_heads=2 --set model.num_layers=2 --set model.d_ff=64 --set data.seq_len=32 \
  --set data.batch_size=4 --set train.steps="$steps" --set train.eval_interval=100 \
  --set train.eval_batches=1 --set train.final_eval_batches=1 --set train.checkpoint_interval=200 \
  --set train.keep_last=2 --set log.diagnostics_interval=100 --set log.tensorboard=true \
  >"$work/out" &
run=$!
done_steps() { tail -n 1 "$work/run/metrics.jsonl" 2>/dev/null | grep -oE '^\{"step":[0-9]+' | grep -oE '[0-9]+$' || echo 0; }
kilobytes() { awk '/^VmRSS/ {print $2}' "/proc/$run/status" 2>/dev/null || true; }
early=0 late=0 most=0 early_files=0 late_files=0
while kill -0 "$run" 2>/dev/null; do
  step=$(done_steps)
  memory=$(kilobytes)
  files=$({ ls "/proc/$run/fd" 2>/dev/null || true; } | wc -l)
  [ -n "$memory" ] && [ "$files" -gt 0 ] || break  # it has ended
  [ "$memory" -le "$most" ] || most=$memory
  if [ "$step" -ge $((3 * steps / 5)) ] && [ "$step" -lt $((4 * steps / 5)) ]; then
    [ "$late" -gt 0 ] && [ "$memory" -ge "$late" ] || late=$memory
    [ "$files" -le "$late_files" ] || late_files=$files
  elif [ "$step" -ge $((steps / 5)) ] && [ "$step" -lt $((2 * steps / 5)) ]; then
    [ "$early" -gt 0 ] && [ "$memory" -ge "$early" ] || early=$memory
    [ "$files" -le "$early_files" ] || early_files=$files
  fi
  sleep 0.1
done
wait "$run"
grep -q '"finished"' "$work/run/status.json"
echo "$steps steps: at least $early KB in the second fifth, $late KB in the fourth; at most $most KB"
echo "open files at most $early_files in the second fifth, $late_files in the fourth"
[ "$early" -gt 0 ] && [ "$late" -le $((early + early / 10)) ] && [ "$late_files" -le "$early_files" ]
