#!/usr/bin/env bash
# Builds Kubernetes' programs for the nodes from the pinned Go modules and prints their folder. Several minutes cold, nothing when cached.
# Usage: binaries.sh [NAME…]   (all of them without a name)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../bootstrap/paths.sh"
. "$here/versions.sh"
. "$here/go.sh"

bin=$cache/kubernetes-$(content_key "$here/versions.sh" "$here/kubernetes" "$here/etcd" "$here/coredns")/bin
mkdir -p "$bin"
names=("$@")
[ ${#names[@]} -gt 0 ] || names=(kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet kubeadm kubectl etcd coredns local-path-provisioner)

# a compiler that collects less often is a fifth faster, and still stays below 2 GB
export CGO_ENABLED=0 GOOS=linux GOFLAGS=-trimpath GOGC=${GOGC:-400}

# build_other NAME OUT: etcd and what is not part of Kubernetes.
build_other() {
  local name=$1 out=$2
  case $name in
    etcd) (cd "$here/etcd" && go build -ldflags '-s -w' -o "$out" go.etcd.io/etcd/server/v3) ;;
    coredns) (cd "$here/coredns" && go build -ldflags '-s -w' -o "$out" .) ;;
    local-path-provisioner)
      # `go install` takes a module that is nobody's dependency, but can't name its output
      GOBIN=$bin/new go install -ldflags '-s -w' "github.com/rancher/local-path-provisioner@$local_path_version" && mv "$bin/new/$name" "$out" && rmdir "$bin/new" ;;
  esac
}

# build_kubernetes NAME…: all in one go, so that one program is compiled while another is linked.
build_kubernetes() {
  local programs=$bin/new-kubernetes
  rm -rf "$programs" && mkdir "$programs" &&
    (cd "$here/kubernetes" && go build -ldflags "$kubernetes_link_flags" -o "$programs/" "${@/#/k8s.io/kubernetes/cmd/}") &&
    mv "$programs"/* "$bin/" && rmdir "$programs"
}

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

kubernetes=()
for name in "${names[@]}"; do
  [ -x "$bin/$name" ] && continue
  if take "$name" "$bin/$name.new" >"$bin/$name.log" 2>&1; then
    mv "$bin/$name.new" "$bin/$name"
    say "$name: taken from $pulled_node_image"
    continue
  fi
  find_go
  case $name in kube*) kubernetes+=("$name"); continue ;; esac
  begun=$SECONDS
  build_other "$name" "$bin/$name.new" >"$bin/$name.log" 2>&1 || { tail -20 "$bin/$name.log" >&2; fail "$name could not be built; see $bin/$name.log"; }
  mv "$bin/$name.new" "$bin/$name"
  say "built $name in $((SECONDS - begun)) s"
done
if [ ${#kubernetes[@]} -gt 0 ]; then
  begun=$SECONDS
  say "building ${kubernetes[*]} $kubernetes_version (many minutes on few cores)"
  log=$bin/kubernetes.log
  build_kubernetes "${kubernetes[@]}" >"$log" 2>&1 || { tail -20 "$log" >&2; fail "Kubernetes could not be built; see $log"; }
  say "built ${kubernetes[*]} in $((SECONDS - begun)) s"
fi
echo "$bin"
