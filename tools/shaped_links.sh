#!/bin/bash
# Pretends several hosts on this machine: network namespaces whose links have a given rate, and mpirun with a rank in each.
#
#   tools/shaped_links.sh up 4 1gbit                      # namespaces weft0 to weft3 on a bridge, 1 Gbit/s each way
#   tools/shaped_links.sh run build/weft cluster bench    # a rank in each of them
#   tools/shaped_links.sh down                            # takes all of it away
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
  ip link delete "$bridge" 2>/dev/null || true
}

shape() {  # COMMAND-PREFIX DEVICE RATE: a bucket of 2 ms at the rate, at least some packets; a queue of 20 ms
  local bits burst
  bits=$(awk -v rate="$3" 'BEGIN { unit = rate; sub(/^[0-9.]+/, "", unit)
    print rate * (unit == "gbit" ? 1e9 : unit == "mbit" ? 1e6 : 0) }')
  [[ $bits != 0 ]] || { echo "shaped_links.sh: rate '$3': write it as 100mbit or 10gbit" >&2; exit 2; }
  burst=$(awk -v bits="$bits" 'BEGIN { b = bits / 8 * 0.002; print int(b < 65536 ? 65536 : b) }')
  $1 tc qdisc replace dev "$2" root tbf rate "$3" burst "$burst" latency 20ms
}

up() {
  local count=$1 rate=$2 i
  down
  ip link add "$bridge" type bridge
  ip link set "$bridge" up
  for ((i = 0; i < count; ++i)); do
    ip netns add "$name$i"
    ip link add "$name$i-out" type veth peer name eth0 netns "$name$i"
    ip link set "$name$i-out" master "$bridge" up
    ip -n "$name$i" address add "$prefix.$((i + 1))/24" dev eth0
    ip -n "$name$i" link set eth0 up
    ip -n "$name$i" link set lo up
    # Linux's default, whatever this machine's is: BBR takes a shaped queue for a slow link now and then, in one direction.
    ip -n "$name$i" route replace "$prefix.0/24" dev eth0 src "$prefix.$((i + 1))" congctl cubic
    shape "ip netns exec $name$i" eth0 "$rate"
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
  up) [[ $# -eq 3 ]] || { echo "usage: $0 up HOSTS RATE" >&2; exit 2; }; up "$2" "$3" ;;
  run) shift; run "$@" ;;
  down) down ;;
  *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
