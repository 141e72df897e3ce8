#!/usr/bin/env bash
# Makes a kind node image present in the engine and prints `pulled IMAGE` or `built IMAGE`.
#
# Pulled: kind's own image, where a registry answers and this machine can run it. Built: the same Kubernetes minor version from source
# (Go modules and Debian's packages). HERDKEEPER_NODE_IMAGE=pull|build decides it by hand.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../bootstrap/paths.sh"
. "$here/versions.sh"
. "$here/go.sh"

built=herdkeeper/kind-node:$kubernetes_version-$(content_key "$here/versions.sh" "$here/node-image.sh" "$here/kubernetes" "$here/etcd" "$here/coredns" "$here/node" "$here/pause.c")
present() { docker image inspect "$1" >/dev/null 2>&1; }

# why_not_pulled: the reason why kind's own image is of no use here, or nothing.
why_not_pulled() {
  case ${HERDKEEPER_NODE_IMAGE:-} in
    pull) return ;;
    build) echo "HERDKEEPER_NODE_IMAGE=build"; return ;;
  esac
  if ! has_cgroup_v2; then echo "the image that can be pulled needs cgroup v2, and the engine has v1"
  elif ! has_every_capability; then echo "this machine withholds a capability that the image that can be pulled needs"
  elif ! present "$pulled_node_image" && ! timeout 900 docker pull -q "$pulled_node_image" >/dev/null 2>&1; then echo "no image registry answers"
  fi
}

# image NAME TAG… < Dockerfile: builds an image from the programs' folder.
image() {
  local folder=$1 tags=()
  shift
  for tag in "$@"; do tags+=(-t "$tag"); done
  docker build -q -f - "${tags[@]}" "$folder" >/dev/null 2>"$cache/node-image.log"
}

build_component_images() {
  local bin=$1 folder=$2 program
  for program in kube-apiserver kube-controller-manager kube-scheduler etcd; do
    mkdir -p "$folder/$program" && cp "$bin/$program" "$folder/$program/"
    printf 'FROM scratch\nENV PATH=/usr/local/bin\nCOPY %s /usr/local/bin/\n' "$program" | image "$folder/$program" "$(kubeadm_name "$program")"
  done
  mkdir -p "$folder/kube-proxy" && cp "$bin/kube-proxy" "$folder/kube-proxy/"
  image "$folder/kube-proxy" "$(kubeadm_name kube-proxy)" <<-'END'
	FROM debian:bookworm-slim
	RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends iptables conntrack >/dev/null && rm -rf /var/lib/apt/lists/*
	COPY kube-proxy /usr/local/bin/
	END
  # its helper pods run a shell script that makes and removes folders
  mkdir -p "$folder/local-path" && cp "$bin/local-path-provisioner" "$folder/local-path/"
  image "$folder/local-path" "$local_path_image" <<-'END'
	FROM debian:bookworm-slim
	COPY local-path-provisioner /usr/local/bin/
	END
  mkdir -p "$folder/coredns" && cp "$bin/coredns" "$folder/coredns/"
  printf 'FROM scratch\nCOPY coredns /coredns\nENTRYPOINT ["/coredns"]\n' | image "$folder/coredns" "$(kubeadm_name coredns)"
  mkdir -p "$folder/pause" && gcc -static -O2 -o "$folder/pause/pause" "$here/pause.c"
  # containerd's configuration and kubeadm may name two versions of it
  printf 'FROM scratch\nCOPY pause /pause\nENTRYPOINT ["/pause"]\n' | image "$folder/pause" "$(kubeadm_name pause)" "${sandbox_images[@]}"
}

build_node() {
  local bin=$1 folder=$2 kind_source builder=herdkeeper-node-build
  find_go
  kind_source=$(go mod download -json "sigs.k8s.io/kind@$kind_version" | jq -r .Dir)
  mkdir -p "$folder/node" && cp "$here/node/Dockerfile" "$folder/node/" && cp -r "$kind_source/images/base/files" "$folder/node/" && chmod -R u+w "$folder/node"
  mapfile -t sandbox_images < <(sed -n 's/.*sandbox_image = "\(.*\)"/\1/p' "$folder/node/files/etc/containerd/config.toml")
  docker build -q -t herdkeeper/kind-node-base:local "$folder/node" >/dev/null 2>"$cache/node-image.log"
  build_component_images "$bin" "$folder"

  docker rm -f "$builder" >/dev/null 2>&1 || true
  docker run -d --name "$builder" --entrypoint sleep --security-opt seccomp=unconfined herdkeeper/kind-node-base:local infinity >/dev/null
  for program in kubeadm kubelet kubectl; do docker cp "$bin/$program" "$builder:/usr/bin/$program" >/dev/null 2>&1; done
  docker exec "$builder" sh -c "echo $kubernetes_version > /kind/version"
  docker exec -d "$builder" containerd
  for _ in $(seq 60); do docker exec "$builder" ctr version >/dev/null 2>&1 && break; sleep 0.5; done
  docker save "${kubeadm_images[@]}" "${sandbox_images[@]}" "$local_path_image" |
    docker exec -i "$builder" ctr -n k8s.io images import --all-platforms --no-unpack --digests - >/dev/null
  docker exec "$builder" sh -c 'pkill containerd; while pgrep containerd >/dev/null; do sleep 0.1; done; rm -rf /run/containerd'
  docker commit --change 'ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]' "$builder" "$built" >/dev/null
  docker rm -f "$builder" >/dev/null
}

kubeadm_name() { printf '%s\n' "${kubeadm_images[@]}" | grep "/$1:"; }

reason=$(why_not_pulled)
if [ -z "$reason" ]; then
  present "$pulled_node_image" || docker pull "$pulled_node_image" >&2
  say "node image: kind's own, $pulled_node_image"
  echo "pulled $pulled_node_image"
  exit 0
fi

if ! present "$built"; then
  say "node image: built from source, since $reason (about 12 minutes cold on 2 cores, 1 with warm caches)"
  "$here/../bootstrap/apt.sh" jq=jq gcc=gcc git=git
  [ -f /usr/include/stdlib.h ] || "$here/../bootstrap/apt.sh" no-c-headers=libc6-dev
  bin=$("$here/binaries.sh")
  "$here/../images/base.sh"
  export DOCKER_BUILDKIT=0   # Debian's engine has no BuildKit front end
  begun=$SECONDS
  mapfile -t kubeadm_images < <("$bin/kubeadm" config images list --kubernetes-version "$kubernetes_version" 2>/dev/null)
  local_path_image=docker.io/rancher/local-path-provisioner:$local_path_version
  folder=$(mktemp -d "$cache/node-image.XXXXXX")
  trap 'rm -rf "$folder"; docker rm -f herdkeeper-node-build >/dev/null 2>&1 || true' EXIT
  build_node "$bin" "$folder" || { tail -20 "$cache/node-image.log" >&2; fail "the node image could not be built; see $cache/node-image.log"; }
  say "node image: assembled in $((SECONDS - begun)) s, $(docker image inspect -f '{{.Size}}' "$built" | awk '{printf "%.0f MB", $1/1e6}')"
else
  say "node image: built before, $built"
fi
echo "built $built"
