#!/usr/bin/env bash
# Makes a kind node image present in the engine and prints `pulled IMAGE` or `built IMAGE`.
#
# Pulled: kind's own image, where a registry answers and this machine can run it. Built: the same Kubernetes minor version from source
# (the pinned Go module and Debian's packages). HERDKEEPER_NODE_IMAGE=pull|build decides it by hand, or names an image to pull. Either has a
# unit more than kind's own: a node takes over the images of image-store.sh. Kubernetes' own are only there when they were built; the label
# io.herdkeeper.images names them.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../bootstrap/paths.sh"
. "$here/versions.sh"
. "$here/go.sh"
export DOCKER_BUILDKIT=0   # Debian's engine has no BuildKit front end

log=$cache/node-image.log
built=herdkeeper/kind-node:$kubernetes_version-$(content_key "$here/versions.sh" "$here/go.sh" "$here/node-image.sh" "$programs" "$here/node" "$here/pause.c")
present() { docker image inspect "$1" >/dev/null 2>&1; }

# why_not_pulled: the reason why kind's own image is of no use here, or nothing.
why_not_pulled() {
  case ${HERDKEEPER_NODE_IMAGE:-} in
    "") ;;
    build) echo "HERDKEEPER_NODE_IMAGE=build"; return ;;
    *) return ;;
  esac
  if ! has_cgroup_v2; then echo "the image that can be pulled needs cgroup v2, and the engine has v1"
  elif ! has_every_capability; then echo "this machine withholds a capability that the image that can be pulled needs"
  elif ! present "$pulled_node_image" && ! timeout 900 docker pull -q "$pulled_node_image" >/dev/null 2>&1; then echo "no image registry answers"
  fi
}

# image FOLDER TAG… < Dockerfile: builds an image from a folder.
image() {
  local folder=$1 tags=()
  shift
  for tag in "$@"; do tags+=(-t "$tag"); done
  docker build -q -f - "${tags[@]}" "$folder" >/dev/null 2>"$log"
}

# One image has all the programs that run in pods, under all the names by which pods ask for them; only two need an entry point.
# iptables and conntrack are kube-proxy's; a shell is what helper pods of local-path make and remove folders with.
build_component_images() {
  local bin=$1 folder=$2/components
  mkdir -p "$folder" && cp -P "$bin"/{kubernetes,etcd,coredns,local-path-provisioner} "$folder/" && gcc -static -O2 -o "$folder/pause" "$here/pause.c"
  for name in kube-apiserver kube-controller-manager kube-proxy kube-scheduler; do ln -s kubernetes "$folder/$name"; done
  image "$folder" herdkeeper/components:local "$local_path_image" $(for name in kube-apiserver kube-controller-manager kube-proxy kube-scheduler etcd; do kubeadm_name "$name"; done) <<-'END'
	FROM herdkeeper/debian:local
	RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends iptables conntrack >/dev/null && rm -rf /var/lib/apt/lists/*
	COPY . /usr/local/bin/
	END
  printf 'FROM herdkeeper/components:local\nENTRYPOINT ["coredns"]\n' | image "$folder" "$(kubeadm_name coredns)"
  # containerd's configuration and kubeadm may name two versions of it
  printf 'FROM herdkeeper/components:local\nENTRYPOINT ["pause"]\n' | image "$folder" "$(kubeadm_name pause)" "${sandbox_images[@]}"
}

build_node() {
  local bin=$1 folder=$2 kind_source
  find_go
  kind_source=$(go mod download -json "sigs.k8s.io/kind@$kind_version" | jq -r .Dir)
  mkdir -p "$folder/node" && cp "$here/node/Dockerfile" "$folder/node/" && cp -r "$kind_source/images/base/files" "$folder/node/" && chmod -R u+w "$folder/node"
  mapfile -t sandbox_images < <(sed -n 's/.*sandbox_image = "\(.*\)"/\1/p' "$folder/node/files/etc/containerd/config.toml")
  docker build -q -t herdkeeper/kind-node-base:local "$folder/node" >/dev/null 2>"$log" && build_component_images "$bin" "$folder" || return
  image "$folder/components" herdkeeper/kind-node-programs:local <<-END
	FROM herdkeeper/kind-node-base:local
	COPY kubernetes /usr/bin/
	RUN echo $kubernetes_version > /kind/version && for name in kubeadm kubelet kubectl; do ln -s kubernetes /usr/bin/\$name; done
	END
}

# with_store IMAGE TAG CONTAINERD NAME…: the image, with what takes over the images of the store. Labels tell the store which images it needs, and
# by which image it has its containerd: the store is filled by that, and kept for it.
with_store() {
  docker build -q -t "$2" --build-arg "NODE=$1" --label "io.herdkeeper.containerd=$(docker image inspect -f '{{.Id}}' "$3")" --label "io.herdkeeper.images=${*:4}" -f "$here/node/Store.Dockerfile" "$here/node" >/dev/null 2>"$log"
}

kubeadm_name() { printf '%s\n' "${kubeadm_images[@]}" | grep "/$1:"; }

reason=$(why_not_pulled)
if [ -z "$reason" ]; then
  present "$pulled_node_image" || docker pull -q "$pulled_node_image" >/dev/null || fail "$pulled_node_image could not be pulled; the engine's line above tells why"
  pulled=herdkeeper/kind-node:pulled-$(content_key "$here/versions.sh" "$here/node-image.sh" "$here/node")-$(docker image inspect -f '{{.Id}}' "$pulled_node_image" | cut -c8-19)
  present "$pulled" || with_store "$pulled_node_image" "$pulled" "$pulled_node_image" || { tail -20 "$log" >&2; fail "the node image could not be made from $pulled_node_image; see $log"; }
  say "node image: $pulled_node_image, ready after $SECONDS s"
  echo "pulled $pulled"
  exit 0
fi

if ! present "$built"; then
  say "node image: built from source, since $reason (about 8 minutes cold on 2 cores, 1 with warm caches)"
  "$here/../bootstrap/apt.sh" jq=jq gcc=gcc git=git
  [ -f /usr/include/stdlib.h ] || "$here/../bootstrap/apt.sh" no-c-headers=libc6-dev
  bin=$("$here/binaries.sh")
  "$here/../images/base.sh"
  begun=$SECONDS
  mapfile -t kubeadm_images < <("$bin/kubeadm" config images list --kubernetes-version "$kubernetes_version" 2>/dev/null)
  local_path_image=docker.io/rancher/local-path-provisioner:$local_path_version
  folder=$(mktemp -d "$cache/node-image.XXXXXX")
  trap 'rm -rf "$folder"' EXIT
  build_node "$bin" "$folder" && with_store herdkeeper/kind-node-programs:local "$built" herdkeeper/kind-node-base:local "${kubeadm_images[@]}" "${sandbox_images[@]}" "$local_path_image" ||
    { tail -20 "$log" >&2; fail "the node image could not be built; see $log"; }
  say "node image: assembled in $((SECONDS - begun)) s, $(docker image inspect -f '{{.Size}}' "$built" | awk '{printf "%.0f MB", $1/1e6}')"
else
  say "node image: built before, $built"
fi
echo "built $built"
