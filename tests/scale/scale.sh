#!/usr/bin/env bash
# scale.sh BIN_DIR [PART ...]: what is long and large, each number beside its bound; fails if one is missed.
#   runs        a sweep of 1,000 runs, and its report in chromium
#   steps       a run of 1,000,000 logged steps, its report, and how soon it goes on
#   tokens      token files of 64 GB (holes, which read as zeros)
#   checkpoint  a checkpoint of more than 4 GB, which takes 16 GB of memory; what one every five minutes costs
set -euo pipefail
bin=$(readlink -f "$1")
shift
parts=${*:-runs steps tokens checkpoint}
root=$(readlink -f "$(dirname "${BASH_SOURCE[0]}")/../..")
configs=$root/configs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
missed=0
now() { date +%s.%N; }
# at_most WHAT VALUE BOUND UNIT
at_most() {
  local verdict=ok
  awk "BEGIN {exit !($2 <= $3)}" || { verdict=MISSED && missed=1; }
  printf '%-58s %8.2f %-3s at most %6s  %s\n' "$1" "$2" "$4" "$3" "$verdict"
}
seconds_since() { awk "BEGIN {print $(now) - $1}"; }
megabytes_of() { awk "BEGIN {print $(stat -c %s "$1") / 1e6}"; }
# What a process held at most, while it runs, in GB, into the file most.
watch_memory() {
  local most=0 held
  while held=$(awk '/^VmHWM/ {print $2}' "/proc/$1/status" 2>/dev/null) && [ -n "$held" ]; do
    most=$held
    sleep 0.2
  done
  awk "BEGIN {print $most / 1e6}" >most
}
open_page() {
  chromium --headless --no-sandbox --disable-gpu --no-first-run --user-data-dir="$work/profile" \
    --dump-dom "file://$work/$1" >page.dom 2>page.log
}
tiny=(--set model.d_model=8 --set model.num_heads=1 --set model.num_layers=1 --set model.d_ff=8
  --set model.max_seq_len=8 --set data.seq_len=8 --set data.batch_size=1 --set train.eval_interval=0
  --set train.final_eval_batches=1)

runs() {
  cat >sweep.yaml <<YAML
base: $configs/base/text_0.2m.yaml
model: {d_model: 8, num_heads: 2, num_layers: 1, d_ff: 8, max_seq_len: 8}
data: {seq_len: 8, batch_size: 1}
train: {steps: 40, eval_interval: 20, eval_batches: 1, final_eval_batches: 1}
sweep:
  name: thousand
  seeds: [$(seq -s, 250)]
  arms:
    softmax: {model.attention.kind: softmax}
    diff_v1: {model.attention.kind: diff_v1}
    diff_v2: {model.attention.kind: diff_v2}
    gated: {model.attention.kind: gated}
YAML
  local begin
  begin=$(now)
  "$bin/difftape" sweep sweep.yaml --out thousand >out 2>err || { tail -n 5 err >&2; exit 1; }
  echo "$(grep -c ',finished,' thousand/runs.csv) runs of a sweep finished in $(seconds_since "$begin") s"
  [ "$(grep -c ',finished,' thousand/runs.csv)" -eq 1000 ]
  begin=$(now)
  "$bin/difftape" report thousand >out
  echo "their report is made in $(seconds_since "$begin") s"
  at_most "their report" "$(megabytes_of thousand/report.html)" 2 MB
  open_page thousand/report.html  # what chromium does once for a profile
  begin=$(now)
  open_page thousand/report.html
  at_most "chromium starts and opens it" "$(seconds_since "$begin")" 3 s
  grep -q '<table' page.dom
}

steps() {
  local begin run
  begin=$(now)
  "$bin/difftape" train "$configs/base/text_0.2m.yaml" --out long "${tiny[@]}" \
    --set train.steps=1000000 --set train.checkpoint_interval=100000 --set optim.schedule=constant \
    --set log.diagnostics_interval=1000 >out &
  run=$!
  watch_memory "$run"
  wait "$run"
  echo "$(wc -l <long/metrics.jsonl) steps are logged in $(seconds_since "$begin") s"
  [ "$(wc -l <long/metrics.jsonl)" -eq 1000000 ]
  at_most "memory of the run" "$(cat most)" 1 GB
  mkdir early
  cp long/{env.json,status.json,config.yaml} early
  head -n 68000 long/metrics.jsonl >early/metrics.jsonl
  begin=$(now)
  "$bin/difftape" runs early >out
  at_most "the line of a run of 68,000 steps" "$(seconds_since "$begin")" 0.3 s
  begin=$(now)
  "$bin/difftape" report long --out long.html >out
  at_most "its report is made" "$(seconds_since "$begin")" 30 s
  at_most "its report" "$(megabytes_of long.html)" 2 MB
  begin=$(now)
  "$bin/difftape" train long --resume --set train.steps=2000000 >out &
  run=$!
  until [ "$(tail -n 1 long/metrics.jsonl | grep -oE '^.{8}[0-9]+' | grep -oE '[0-9]+$')" -gt 1000000 ]; do
    sleep 0.02
  done
  at_most "until it has gone on by a step" "$(seconds_since "$begin")" 1 s
  kill "$run"
  wait "$run" || [ $? -eq 143 ]
}

tokens() {
  local begin run
  truncate -s 64G tokens.bin
  begin=$(now)
  "$bin/difftape" train "$configs/base/text_0.2m.yaml" --out tokens "${tiny[@]}" --set train.steps=1000 \
    --set data.type=tokens --set data.path=tokens.bin --set model.vocab_size=256 >out &
  run=$!
  watch_memory "$run"
  wait "$run"
  echo "$(wc -l <tokens/metrics.jsonl) steps on 64 GB of tokens in $(seconds_since "$begin") s"
  at_most "memory of the run" "$(cat most)" 0.5 GB
}

checkpoint() {
  local begin run
  begin=$(now)
  "$bin/difftape" train "$configs/base/text_0.2m.yaml" --out large --set model.d_model=2048 \
    --set model.num_heads=16 --set model.num_layers=8 --set model.d_ff=5632 --set data.seq_len=8 \
    --set data.batch_size=1 --set train.steps=2 --set train.checkpoint_interval=1 \
    --set train.final_eval_batches=1 --set train.eval_interval=0 --set train.keep_last=2 >out &
  run=$!
  watch_memory "$run"
  wait "$run"
  stat -c '%s bytes: %n' large/checkpoints/step-*.h5
  [ "$(stat -c %s "$(ls large/checkpoints/step-*2.h5)")" -gt $((1 << 32)) ]
  echo "two steps in $(seconds_since "$begin") s"
  at_most "memory of the run" "$(cat most)" 16 GB
  begin=$(now)
  "$bin/difftape" verify large --from 1 | tail -n 1
  at_most "the second step again from the first checkpoint" "$(seconds_since "$begin")" 60 s
  local cost
  cost=$("$root/bench/checkpoint.sh" "$bin" 3 | sed -n 's/^Every five minutes, that is \(.*\) %.*/\1/p')
  at_most "a checkpoint of 11 M parameters every five minutes" "$cost" 2 %
}

for part in $parts; do
  "$part"
  rm -rf thousand long early long.html tokens tokens.bin large
done
[ "$missed" -eq 0 ]
