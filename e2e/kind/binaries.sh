#!/usr/bin/env bash
# Builds Kubernetes' programs for the nodes from the pinned Go module and prints their folder. Several minutes cold, nothing when cached.
# Usage: binaries.sh [NAME…]   (all that a node has without a name; kind and helm too)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../bootstrap/paths.sh"
. "$here/versions.sh"
. "$here/go.sh"

bin=$cache/programs-$(content_key "$here/versions.sh" "$here/go.sh" "$programs")
mkdir -p "$bin"
names=("$@")
[ ${#names[@]} -gt 0 ] || names=(kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet kubeadm kubectl etcd coredns local-path-provisioner)

# take NAME OUT: from the image of the same name in kind's own node image, for machines that can pull it and have no Go.
take() {
  local name=$1 out=$2 node=herdkeeper-take code=0
  command -v go >/dev/null && return 1
  [ "$name" != kubectl ] || return 1   # of another patch release than the one that is asked for
  docker image inspect "$pulled_node_image" >/dev/null 2>&1 || timeout 900 docker pull -q "$pulled_node_image" >/dev/null 2>&1 || return 1
  docker rm -f "$node" >/dev/null 2>&1 || true
  docker run -d --name "$node" --entrypoint sleep --security-opt seccomp=unconfined "$pulled_node_image" infinity >/dev/null || return 1
  docker exec -d "$node" containerd
  docker exec "$node" bash -ec "
    for i in {1..60}; do ctr version >/dev/null 2>&1 && break; sleep 0.5; done
    mkdir -p /tmp/blobs /tmp/layers
    ctr -n k8s.io images export --platform linux/\$(dpkg --print-architecture) /tmp/image.tar \$(ctr -n k8s.io images ls -q | grep /$name: | head -1)
    tar -xf /tmp/image.tar -C /tmp/blobs
    for blob in /tmp/blobs/blobs/sha256/*; do tar -xf \$blob -C /tmp/layers 2>/dev/null || true; done
    mv \$(find /tmp/layers -type f -name $name | head -1) /tmp/program" && docker cp "$node:/tmp/program" "$out" || code=1
  docker rm -f "$node" >/dev/null
  return $code
}

# whoever comes at the same time waits, and finds them built
exec 9>"$bin/lock"
if command -v flock >/dev/null; then flock 9; fi
missing=()
for name in "${names[@]}"; do
  [ -x "$bin/$name" ] && continue
  if take "$name" "$bin/$name.new" >"$bin/take.log" 2>&1; then
    mv "$bin/$name.new" "$bin/$name"
    say "$name: taken from $pulled_node_image"
  else
    missing+=("$name")
  fi
done
if [ ${#missing[@]} -gt 0 ]; then
  find_go
  begun=$SECONDS
  say "building ${missing[*]} (many minutes on few cores)"
  build_programs linux "$bin" "${missing[@]}" >"$bin/log" 2>&1 || { tail -20 "$bin/log" >&2; fail "they could not be built; see $bin/log"; }
  say "built in $((SECONDS - begun)) s"
fi
echo "$bin"
