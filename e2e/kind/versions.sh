# What the test cluster is made of; sourced. Everything here is part of the caches' keys.
kubernetes_version=v1.34.4                      # the last minor version that still runs on cgroup v1 with containerd 1.6
kind_version=v0.33.0
helm_version=v3.22.0
local_path_version=v0.0.30
# the same minor version, from kind's release notes
pulled_node_image=kindest/node:v1.34.0@sha256:7416a61b42b1662ca6ca89f02028ac133a309a2a30ba309614e8ec94d976dc5a
# what kubelet, kubeadm and the servers say of themselves
stamp=k8s.io/component-base/version
kubernetes_link_flags="-s -w -X $stamp.gitVersion=$kubernetes_version -X $stamp.gitMajor=1 -X $stamp.gitMinor=34 -X $stamp.gitTreeState=clean"
