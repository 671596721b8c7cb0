#!/usr/bin/env bash
# newcomer.sh: follows the README on a bare Debian 12, as a user who may use sudo. Clones the current
# commit there, runs `./dev quickstart` and `./dev test`, prints the minutes of each, and fails when
# one fails. Needs root or sudo, and what bare_debian.sh needs.
#
# build/newcomer/base keeps the bare system for the next time. build/newcomer/system is the copy that
# is used; it stays if a command failed. Processes and mounts end with the script.
set -euo pipefail
script=$(readlink -f "${BASH_SOURCE[0]}")
cd "$(dirname "$script")/.."
work=build/newcomer
system=$work/system

# Runs a command in the clone, as the user, and prints its minutes.
follow() {
  local start=$SECONDS status=0
  echo "newcomer: $1"
  chroot "$system" su --login newcomer --command "cd difftape && $1" </dev/null || status=$?
  awk -v command="$1" -v seconds=$((SECONDS - start)) -v status=$status 'BEGIN {
    printf "newcomer: %s: %.1f minutes%s\n", command, seconds / 60,
      status ? ", failed with exit code " status : "" }'
  return $status
}

if [ "${1:-}" = --isolated ]; then  # in namespaces of its own
  hostname newcomer
  mount --rbind /dev "$system/dev"
  mount -t tmpfs -o mode=1777 tmpfs "$system/dev/shm"
  mount --rbind /sys "$system/sys"
  mount -t proc proc "$system/proc"
  chroot "$system" su --login newcomer --command 'git clone --quiet difftape.bundle difftape'
  follow './dev quickstart'
  [ -s "$system/home/newcomer/difftape/runs/quickstart/report.html" ] || {
    echo "newcomer: ./dev quickstart wrote no runs/quickstart/report.html" >&2
    exit 1
  }
  follow './dev test'
  exit
fi

[ "$(id -u)" -eq 0 ] || exec sudo --preserve-env=MIRROR,http_proxy,https_proxy "$script"
[ -z "$(git status --porcelain)" ] ||
  echo "newcomer: uncommitted changes are not in the clone" >&2
mkdir -p $work
if [ ! -d $work/base ]; then
  rm -rf $work/base.new
  packaging/bare_debian.sh $work/base.new --include=git,sudo
  mv $work/base.new $work/base
fi
rm -rf --one-file-system "$system"
cp -a --reflink=auto $work/base "$system"
cp -L /etc/resolv.conf "$system/etc/resolv.conf"
printf '127.0.0.1 localhost\n127.0.1.1 newcomer\n' >"$system/etc/hosts"
chroot "$system" useradd --create-home --shell /bin/bash newcomer
echo 'newcomer ALL=(ALL) NOPASSWD: ALL' >"$system/etc/sudoers.d/newcomer"
git bundle create --quiet "$system/home/newcomer/difftape.bundle" HEAD --branches
unshare --mount --mount-proc --uts --ipc --pid --fork --kill-child "$script" --isolated
rm -rf --one-file-system "$system"
