#!/usr/bin/env bash
# The pod network of nodes that were built from source: one point-to-point network per node and routes between the nodes,
# which is all that kind's own network daemon does (network policies aside). Can be run again at any time.
# Usage: KUBECTL=… pod-network.sh NUMBER   (of the nodes: it waits until so many have their range)
set -euo pipefail
kubectl=${KUBECTL:-kubectl}
pods=10.244.0.0/16

for _ in $(seq 240); do
  ranges=$($kubectl get nodes -o jsonpath='{.items[*].spec.podCIDR}' | wc -w)
  [ "$ranges" -lt "$1" ] || break
  sleep 0.5
done
[ "$ranges" -ge "$1" ] || { echo "$ranges of $1 nodes have a range of addresses for their pods" >&2; exit 1; }

nodes=$($kubectl get nodes -o jsonpath='{range .items[*]}{.metadata.name},{.spec.podCIDR},{.status.addresses[?(@.type=="InternalIP")].address}{"\n"}{end}')
for node in $nodes; do
  IFS=, read -r name range _ <<<"$node"
  routes=
  for other in $nodes; do
    IFS=, read -r other_name other_range other_address <<<"$other"
    [ "$other_name" = "$name" ] || routes+="ip route replace $other_range via $other_address;"
  done
  # what leaves the cluster takes the node's address; pods see each other's own
  masquerade="POSTROUTING -s $range ! -d $pods -j MASQUERADE"
  docker exec -i "$name" sh -ec "cat > /etc/cni/net.d/.10-pods && mv /etc/cni/net.d/.10-pods /etc/cni/net.d/10-pods.conflist
    $routes iptables -t nat -C $masquerade 2>/dev/null || iptables -t nat -A $masquerade" <<-END
	{"cniVersion": "0.3.1", "name": "pods", "plugins": [
	  {"type": "ptp", "mtu": 1500, "ipMasq": false, "ipam": {"type": "host-local", "dataDir": "/run/cni-ipam-state",
	   "routes": [{"dst": "0.0.0.0/0"}], "ranges": [[{"subnet": "$range"}]]}},
	  {"type": "portmap", "capabilities": {"portMappings": true}}]}
	END
done
