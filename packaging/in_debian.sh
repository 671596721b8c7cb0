#!/usr/bin/env bash
# in_debian.sh PACKAGE.deb, as root of a system that may be thrown away: what test_deb.sh does there.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
fail() { echo "in_debian: $*" >&2; exit 1; }
# What is on the system, but for what using it changes.
files() { find / -xdev \( -path /proc -o -path /sys -o -path /tmp -o -path /var -o -path /root \) \
  -prune -o -type f -path '*difftape*' -print; }

apt-get install -y -qq --no-install-recommends "$1" >/dev/null
for file in /usr/share/man/man1/difftape.1.gz /usr/share/bash-completion/completions/difftape \
  /usr/share/doc/difftape/copyright /usr/share/difftape/configs/sweeps/quickstart.yaml; do
  [ -s "$file" ] || fail "no $file"
done

useradd --create-home user
run() { su user -c "cd && $*"; }
run difftape --version
run difftape sweep configs/sweeps/quickstart.yaml --out sweep --jobs 1 --set train.steps=4 \
  --set train.eval_interval=4 --set train.final_eval_batches=1 \
  --set data.batch_size=2 | tail -6
[ -s /home/user/sweep/report.html ] || fail "no report"
[ "$(grep -c ',finished,' /home/user/sweep/index.csv)" = 3 ] || fail "not three runs that finished"
run "difftape gradcheck --filter '^softmax'" | tail -1

apt-get purge -y -qq difftape >/dev/null
left=$(files | grep -v '^/home/user/' || true)
[ -z "$left" ] || fail "left behind: $left"
command -v difftape && fail "difftape is still there"
exit 0
