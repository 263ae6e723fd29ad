#!/bin/bash
# Pretends several hosts on this machine: network namespaces whose links have a given rate, and mpirun with a rank in each.
#
#   tools/shaped_links.sh up 4 1gbit                      # namespaces weft0 to weft3 on a bridge, 1 Gbit/s each way
#   tools/shaped_links.sh run build/weft cluster bench    # a rank in each of them
#   tools/shaped_links.sh down                            # takes all of it away
#   tools/shaped_links.sh up 4 1gbit --groups 2 --uplink 200mbit    # two switches, with 200 Mbit/s to what ties them
#   tools/shaped_links.sh up 2 2gbit --per-stream 500mbit    # no TCP connection gets more than 500 Mbit/s, as in clouds
#
# Hosts go to the switches in turn (0 and 2, 1 and 3), so that their own order is the worst; with --contiguous one switch after
# the other.
#
# As root. Every rank has a link of its own to a bridge that is as fast as the machine; `tc ... tbf` shapes both directions.
# Traffic stays inside. RANKS_PER_HOST=N runs N ranks in each namespace; LINKS_NAME=x names all of it x instead of weft.
set -euo pipefail
name=${LINKS_NAME:-weft}
bridge=${name}links
prefix=10.77.0

hosts() { ip netns list | awk -v name="$name" '$1 ~ "^" name "[0-9]+$" { print $1 }' | sort -V; }

down() {
  for host in $(hosts); do ip netns delete "$host"; done
  local link  # those of hosts, too: where a process lives on in a namespace, so do its links
  for link in $(ip -o link show | awk -F '[:@ ]+' -v name="$name" \
    '$2 ~ "^" name "(links([0-9]+[ud]?)?|[0-9]+-out)$" { print $2 }'); do
    ip link delete "$link" 2>/dev/null || true
  done
}

shape() {  # COMMAND-PREFIX DEVICE RATE: a bucket of 2 ms at the rate, at least some packets; a queue of 20 ms
  local bits burst
  bits=$(awk -v rate="$3" 'BEGIN { unit = rate; sub(/^[0-9.]+/, "", unit)
    print rate * (unit == "gbit" ? 1e9 : unit == "mbit" ? 1e6 : 0) }')
  [[ $bits != 0 ]] || { echo "shaped_links.sh: rate '$3': write it as 100mbit or 10gbit" >&2; exit 2; }
  burst=$(awk -v bits="$bits" 'BEGIN { b = bits / 8 * 0.002; print int(b < 65536 ? 65536 : b) }')
  $1 tc qdisc replace dev "$2" root tbf rate "$3" burst "$burst" latency 20ms
}

# COMMAND-PREFIX DEVICE RATE STREAM-RATE: a class of its own for each TCP connection, by bits 1 to 3 of its two ports
# (Linux hands out even ports, one after the other).
shape_streams() {
  local tc="$1 tc" device=$2 rate=$3 stream=$4 from to class
  $tc qdisc replace dev "$device" root handle 1: htb default ff r2q 10000
  $tc class add dev "$device" parent 1: classid 1:fff htb rate "$rate" quantum 60000
  $tc class add dev "$device" parent 1:fff classid 1:ff htb rate "$stream" quantum 60000
  for from in 0 2 4 6 8 10 12 14; do
    for to in 0 2 4 6 8 10 12 14; do
      class=1:$(printf %x $((256 + from * 8 + to)))
      $tc class add dev "$device" parent 1:fff classid "$class" htb rate "$stream" quantum 60000
      $tc filter add dev "$device" parent 1: protocol ip u32 match ip protocol 6 0xff \
        match ip sport "$from" 0x000e match ip dport "$to" 0x000e flowid "$class"
    done
  done
}

# NAME: a bridge that is up. All of them go with down().
switch() { ip link add "$1" type bridge && ip link set "$1" up; }

up() {
  local count=$1 rate=$2 groups=${groups:-1} uplink=${uplink:-} contiguous=${contiguous:-} per_stream=${per_stream:-} i group
  (( groups >= 1 && groups <= count && groups <= 9 )) ||
    { echo "shaped_links.sh: --groups $groups: give 1 to 9 switches, no more than hosts" >&2; exit 2; }
  (( groups == 1 )) || [[ -n $uplink ]] || { echo "shaped_links.sh: --groups needs --uplink RATE" >&2; exit 2; }
  down
  switch "$bridge"
  # Each switch is tied to the one in the middle; one switch alone is that one.
  for ((group = 0; groups > 1 && group < groups; ++group)); do
    switch "$bridge$group"
    ip link add "$bridge${group}u" type veth peer name "$bridge${group}d"
    ip link set "$bridge${group}u" master "$bridge$group" up
    ip link set "$bridge${group}d" master "$bridge" up
    shape "" "$bridge${group}u" "$uplink"
    shape "" "$bridge${group}d" "$uplink"
  done
  for ((i = 0; i < count; ++i)); do
    group=$(( contiguous ? i * groups / count : i % groups ))
    ip netns add "$name$i"
    ip link add "$name$i-out" type veth peer name eth0 netns "$name$i"
    ip link set "$name$i-out" master "$bridge$( (( groups > 1 )) && echo "$group" )" up
    ip -n "$name$i" address add "$prefix.$((i + 1))/24" dev eth0
    ip -n "$name$i" link set eth0 up
    ip -n "$name$i" link set lo up
    # Linux's default, whatever this machine's is: BBR takes a shaped queue for a slow link now and then, in one direction.
    ip -n "$name$i" route replace "$prefix.0/24" dev eth0 src "$prefix.$((i + 1))" congctl cubic
    if [[ -n $per_stream ]]; then
      shape_streams "ip netns exec $name$i" eth0 "$rate" "$per_stream"
    else
      shape "ip netns exec $name$i" eth0 "$rate"
    fi
    shape "" "$name$i-out" "$rate"
  done
}

run() {
  local agent list="" host i=0
  [[ -n $(hosts) ]] || { echo "shaped_links.sh: no links; first: $0 up 4 1gbit" >&2; exit 2; }
  agent=$(mktemp)
  # mpirun calls it as ssh: HOST COMMAND... Each namespace gets a host name too, by which MPI tells hosts apart.
  cat >"$agent" <<AGENT
#!/bin/bash
name=$name
host=\$1
shift
index=\$((\${host##*.} - 1))
exec ip netns exec "\$name\$index" unshare --uts sh -c "hostname \$name\$index; \$*"
AGENT
  chmod +x "$agent"
  for host in $(hosts); do
    i=$((i + 1))
    list+="${list:+,}$prefix.$i:${RANKS_PER_HOST:-1}"
  done
  local status=0
  ip netns exec "${name}0" unshare --uts sh -c 'hostname "$0"; exec "$@"' "${name}0" env OMPI_ALLOW_RUN_AS_ROOT=1 \
    OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe --mca plm_rsh_agent "$agent" --mca oob_tcp_if_include eth0 \
    --mca btl_tcp_if_include eth0 --mca btl tcp,vader,self --bind-to none --host "$list" "$@" || status=$?
  rm -f "$agent"
  return $status
}

case ${1:-} in
  up)
    usage="usage: $0 up HOSTS RATE [--groups N --uplink RATE [--contiguous]] [--per-stream RATE]"
    [[ $# -ge 3 ]] || { echo "$usage" >&2; exit 2; }
    hosts=$2 rate=$3
    shift 3
    while [[ $# -gt 0 ]]; do
      case $1 in
        --groups) groups=${2:?$usage}; shift 2 ;;
        --uplink) uplink=${2:?$usage}; shift 2 ;;
        --contiguous) contiguous=1; shift ;;
        --per-stream) per_stream=${2:?$usage}; shift 2 ;;
        *) echo "$usage" >&2; exit 2 ;;
      esac
    done
    up "$hosts" "$rate"
    ;;
  run) shift; run "$@" ;;
  down) down ;;
  *) sed -n '2,14s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
