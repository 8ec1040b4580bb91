# Starts the services of a node on this host: sh node.sh DIRECTORY
set -e
export SLURM_CONF="$1/slurm.conf"
mkdir -p -m 755 /run/munge /run/slurm/state /run/slurm/spool
mkdir -p -m 1777 /run/tmp
chown 0:0 /run/munge
install -m 755 "$1/task-prolog.sh" /run/slurm/task-prolog
munged --force --key-file="$1/munge.key" --socket=/run/munge/munge.socket.2 \
    --pid-file=/run/munge/pid --seed-file=/run/munge/seed --log-file=/run/munge/log
[ "$(hostname)" != a ] || slurmctld
slurmd -N "$(hostname)"
