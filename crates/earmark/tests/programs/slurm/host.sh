# A host whose power can be cut: sh host.sh DIRECTORY
#
# While there is a file DIRECTORY/off-HOST it is off: its link is down, its processes are dead, its
# /run is gone. What they have left all the same is in DIRECTORY/left-HOST.
directory=$1 host=$(hostname)
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
while :; do
    ip link set "${host}0" up
    unshare --pid --fork --kill-child --mount-proc \
        sh -c 'sh "$0/node.sh" "$0" && exec sleep infinity' "$directory" &
    until [ -e "$directory/off-$host" ]; do sleep 0.1; done
    ip link set "${host}0" down
    kill -9 $!
    wait
    rm -rf /run/slurm /run/munge /run/tmp
    while [ -e "$directory/off-$host" ]; do
        sh "$directory/left.sh" >"$directory/left.new"
        mv "$directory/left.new" "$directory/left-$host"
        sleep 0.1
    done
done
