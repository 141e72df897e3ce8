# What the test cluster is made of; sourced. Everything here is part of the caches' keys, and so is the Go module that pins the versions.
programs=$repo/e2e/kind/programs
version_of() { sed -n "s#^\(require\)\{0,1\}[[:space:]]*$1 \(v[^ ]*\).*#\2#p" "$programs/go.mod" | head -1; }
kubernetes_version=$(version_of k8s.io/kubernetes)   # 1.34 is the last minor version that still runs on cgroup v1 with containerd 1.6
kind_version=$(version_of sigs.k8s.io/kind)
helm_version=$(version_of helm.sh/helm/v3)
local_path_version=$(version_of github.com/rancher/local-path-provisioner)
case ${HERDKEEPER_NODE_IMAGE:-} in
  # the same minor version, from kind's release notes
  "" | pull | build) pulled_node_image=$(on_docker_hub kindest/node:v1.34.0@sha256:7416a61b42b1662ca6ca89f02028ac133a309a2a30ba309614e8ec94d976dc5a) ;;
  *) pulled_node_image=$HERDKEEPER_NODE_IMAGE ;;
esac
