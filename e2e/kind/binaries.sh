#!/usr/bin/env bash
# Builds Kubernetes' programs for the nodes from the pinned Go modules and prints their folder. Several minutes cold, nothing when cached.
# Usage: binaries.sh [NAME…]   (all of them without a name)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../bootstrap/paths.sh"
. "$here/versions.sh"
. "$here/go.sh"

bin=$cache/kubernetes-$(content_key "$here/versions.sh" "$here/binaries.sh" "$here/kubernetes" "$here/etcd" "$here/coredns")/bin
mkdir -p "$bin"
names=("$@")
[ ${#names[@]} -gt 0 ] || names=(kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet kubeadm kubectl etcd coredns local-path-provisioner)

component=k8s.io/component-base/version
stamp="-s -w -X $component.gitVersion=$kubernetes_version -X $component.gitMajor=1 -X $component.gitMinor=34 -X $component.gitTreeState=clean"
export CGO_ENABLED=0 GOOS=linux GOFLAGS=-trimpath

build() {
  local name=$1 out=$2
  case $name in
    etcd) (cd "$here/etcd" && go build -ldflags '-s -w' -o "$out" go.etcd.io/etcd/server/v3) ;;
    coredns) (cd "$here/coredns" && go build -ldflags '-s -w' -o "$out" .) ;;
    local-path-provisioner)
      # `go install` takes a module that is nobody's dependency, but can't name its output
      GOBIN=$bin/new go install -ldflags '-s -w' "github.com/rancher/local-path-provisioner@$local_path_version" && mv "$bin/new/$name" "$out" && rmdir "$bin/new" ;;
    *) (cd "$here/kubernetes" && go build -ldflags "$stamp" -o "$out" "k8s.io/kubernetes/cmd/$name") ;;
  esac
}

for name in "${names[@]}"; do
  [ -x "$bin/$name" ] && continue
  find_go
  begun=$SECONDS
  build "$name" "$bin/$name.new" >"$bin/$name.log" 2>&1 || { tail -20 "$bin/$name.log" >&2; fail "$name could not be built; see $bin/$name.log"; }
  mv "$bin/$name.new" "$bin/$name"
  say "built $name in $((SECONDS - begun)) s"
done
echo "$bin"
