#!/usr/bin/env bash
# demo.sh BIN_DIR: 60 runs as a job array on two nodes of Slurm, one of which is killed on the way.
# Fails if a run is lost, or has other bits than on this machine alone.
set -euo pipefail
bin=$(readlink -f "$1")
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
cluster=$(mktemp -d)
work=$(mktemp -d)
trap '"$here/slurm.sh" stop "$cluster"; rm -rf "$cluster" "$work"' EXIT
SLURM_CONF=$("$here/slurm.sh" start "$cluster" 2)
export SLURM_CONF
cd "$work"
cat >sweep.yaml <<YAML
base: $here/../../configs/base/text_0.2m.yaml
model: {num_layers: 2, d_model: 32, d_ff: 64}
data: {seq_len: 64, batch_size: 8}
train: {steps: 200, eval_interval: 0, checkpoint_interval: 50}
sweep:
  name: cluster
  seeds: [$(seq -s, 30)]
  arms: {softmax: {model.attention.kind: softmax}, diff_v2: {model.attention.kind: diff_v2}}
YAML
"$bin/difftape" sweep sweep.yaml --out there --submit slurm
done_runs() { awk -F, 'NR > 1 && $5 ~ /^(finished|diverged)$/' there/runs.csv | wc -l; }
complete() { cat there/*/status.json 2>/dev/null | grep -c '"state": "finished"' || true; }
killed=
while [ -n "$(squeue --noheader)" ]; do
  if [ -z "$killed" ] && [ "$(complete)" -ge 15 ]; then
    echo "after $(complete) runs node n2 fails"
    "$here/slurm.sh" fail "$cluster" n2
    killed=yes
  fi
  sleep 1
done
echo "$(done_runs) of 60 runs are complete"
tail -n 12 there/summary.txt
OMP_NUM_THREADS=1 "$bin/difftape" sweep sweep.yaml --out here --jobs 2 >/dev/null
same=0
for run in here/*/; do
  run=$(basename "$run")
  "$bin/difftape" diff "here/$run" "there/$run" --exit-code >/dev/null && same=$((same + 1))
done
echo "$same of 60 have the bits of one machine"
[ "$(done_runs)" -eq 60 ] && [ "$same" -eq 60 ] && [ -n "$killed" ]
