#!/usr/bin/env bash
# in_debian.sh PACKAGE.deb, as root of a system that may be thrown away: what test_deb.sh does there.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
fail() { echo "in_debian: $*" >&2; exit 1; }
# What is on the system, but for what using it changes.
files() { find / -xdev \( -path /proc -o -path /sys -o -path /tmp -o -path /var -o -path /root \) \
  -prune -o -type f -path '*difftape*' -print; }

apt-get install -y -qq --no-install-recommends "$1" >/dev/null
for file in /usr/share/man/man1/difftape.1.gz \
  /usr/share/doc/difftape/copyright /usr/share/doc/difftape/docs/studies.md \
  /usr/share/difftape/configs/sweeps/quickstart.yaml; do
  [ -s "$file" ] || fail "no $file"
done
zgrep -q '^\.SS "difftape data prepare:"' /usr/share/man/man1/difftape.1.gz ||
  fail "the manual page lacks a section on difftape data prepare"

useradd --create-home user
run() { su user -c "cd && $*"; }
run difftape --version
run difftape sweep configs/sweeps/quickstart.yaml --out sweep --jobs 1 --set train.steps=4 \
  --set train.eval_interval=4 --set train.final_eval_batches=1 \
  --set data.batch_size=2 | tail -6
[ -s /home/user/sweep/report.html ] || fail "no report"
runs=$(($(wc -l </home/user/sweep/runs.csv) - 1))
[ "$runs" -gt 0 ] && [ "$(grep -c ',finished,' /home/user/sweep/runs.csv)" = "$runs" ] ||
  fail "not all of $runs runs finished"
run "difftape gradcheck --filter '^softmax'" | tail -1

# Runs difftape with the library that the loader would choose on a processor of the level $1.
loader=/lib64/ld-linux-x86-64.so.2
at_level() { run GOMP_SPINCOUNT=10000 $loader --glibc-hwcaps-mask "$1" /usr/bin/difftape "${@:2}"; }
levels=()
for level in x86-64 x86-64-v3 x86-64-v4; do
  [[ $level = x86-64 || $($loader --help) = *"$level (supported"* ]] || continue
  at_level $level doctor | grep "^compiled for *$level: " || fail "$level does not run"
  gemm=portable
  [ $level != x86-64 ] || gemm=auto  # the portable GEMM needs x86-64-v3
  at_level $level train /usr/share/difftape/configs/base/text_0.2m.yaml --out $level \
    --set train.gemm=$gemm --set train.steps=4 --set train.final_eval_batches=1 \
    --set data.batch_size=2 | tail -1
  levels+=($level)
done
if [ ${#levels[@]} = 3 ]; then
  cmp /home/user/x86-64-v[34]/checkpoints/step-00000004.h5 || fail "two levels differ in bits"
else
  echo "this processor lacks x86-64-v4, so the bits of v3 and v4 are not compared"
fi
if [ ${#levels[@]} -gt 1 ]; then
  run "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2 difftape doctor" | grep '; unset GLIBC_TUNABLES' ||
    fail "difftape doctor says nothing about GLIBC_TUNABLES"
  run "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2 difftape train /usr/share/difftape/configs/base/text_0.2m.yaml \
    --out hidden --set train.gemm=portable --set train.steps=1 2>&1 || true" | grep '; unset GLIBC_TUNABLES' ||
    fail "the refusal of the portable GEMM says nothing about GLIBC_TUNABLES"
fi

apt-get purge -y -qq difftape >/dev/null
left=$(files | grep -v '^/home/user/' || true)
[ -z "$left" ] || fail "left behind: $left"
command -v difftape && fail "difftape is still there"
exit 0
