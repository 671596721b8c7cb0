#!/usr/bin/env bash
# A cluster of Slurm on this machine, of nodes with one core each, all in one directory, where a job
# that was put back into the queue begins after ten seconds (two minutes by default):
#   slurm.sh start DIR NODES   starts it; prints what to set as SLURM_CONF
#   slurm.sh fail DIR NODE     kills a node and all that runs there, as a loss of power would
#   slurm.sh stop DIR
set -euo pipefail
PATH=$PATH:/usr/sbin  # where the daemons are, which the PATH of an ordinary user lacks
dir=$(readlink -f "$2")
export SLURM_CONF=$dir/slurm.conf

start() {
  local host port node
  host=$(hostname -s)
  port=$((20000 + RANDOM % 20000))
  mkdir -p "$dir/state"
  chmod 755 "$dir"
  (umask 077 && dd if=/dev/urandom of="$dir/munge.key" bs=1024 count=1 status=none)
  munged --force --key-file="$dir/munge.key" --socket="$dir/munge.socket" \
    --pid-file="$dir/munged.pid" --log-file="$dir/munged.log" --seed-file="$dir/munge.seed" \
    2>"$dir/munged.err"
  cat >"$SLURM_CONF" <<CONF
ClusterName=difftape
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
AuthType=auth/munge
AuthInfo=socket=$dir/munge.socket,cred_expire=10
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool-%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd-%n.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_interval=1
KillWait=5
SlurmdTimeout=6
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
  for ((node = 1; node <= nodes; ++node)); do
    echo "NodeName=n$node NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + node)) CPUs=1" \
      >>"$SLURM_CONF"
  done
  slurmctld -c
  for ((node = 1; node <= nodes; ++node)); do slurmd -N "n$node"; done
  for ((i = 0; i < 600; ++i)); do
    [ "$(sinfo --noheader --Node --states=idle 2>/dev/null | wc -l)" -eq "$nodes" ] &&
      echo "$SLURM_CONF" && return
    sleep 0.1
  done
  echo "slurm.sh: the $nodes nodes were not idle within a minute; $dir has the logs" >&2
  exit 1
}

# The jobs of a node and, first, what would tell the controller of their end.
processes_of() {
  local id parent
  for id in $(cd /proc && echo [0-9]*); do
    [ "$({ tr '\0' '\n' <"/proc/$id/environ"; } 2>/dev/null |
      grep -cxE "SLURM_CONF=$SLURM_CONF|SLURMD_NODENAME=$1")" -eq 2 ] || continue
    parent=$(awk '/^PPid/ {print $2}' "/proc/$id/status" 2>/dev/null) || continue
    [ "$(cat "/proc/$parent/comm" 2>/dev/null)" != slurmstepd ] || echo "$parent"
    echo "$id"
  done
}

case $1 in
  start) nodes=$3 && start ;;
  fail)
    kill -KILL $(cat "$dir/slurmd-$3.pid") $(processes_of "$3") 2>/dev/null || true
    rm "$dir/slurmd-$3.pid"
    ;;
  stop)
    for pid in "$dir"/slurmd-*.pid "$dir/slurmctld.pid" "$dir/munged.pid"; do
      [ ! -f "$pid" ] || kill "$(cat "$pid")" 2>/dev/null || continue
      for ((i = 0; i < 100; ++i)); do  # it removes the file at its end
        [ -f "$pid" ] || break
        sleep 0.1
      done
    done
    ;;
  *) sed -n 2,6p "$0" >&2 && exit 64 ;;
esac
