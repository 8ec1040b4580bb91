#!/bin/sh
# What Slurm runs for each rank, as its user: what it prints goes into the environment.
echo "export EARMARK_VERBOSE=1"
# Without CAP_NET_RAW, datagrams carry MX.
[ "$(id -u)" = 0 ] || echo "export EARMARK_PORT=udp:${SLURMD_NODENAME}0"
