#!/usr/bin/env bash
# The test cluster. Usage: cluster.sh up | down | pause | resume | env | audit-log
#   up      makes it, or finds it healthy and leaves it as it is; makes it anew when its nodes were stopped
#   down    removes it
#   pause   stops its processes where they are, since probes and controllers take half a core also when nothing happens
#   resume  lets them go on; so do up and env
#   env     prints KUBECONFIG, PATH and names for a shell: eval "$(e2e/kind/cluster.sh env)"
#   audit-log  prints what its API server logged of the operator, oldest first
# HERDKEEPER_KIND_CLUSTER names it (default: herdkeeper). ~/.kube/config is never touched.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../bootstrap/paths.sh"
. "$here/versions.sh"

cluster=${HERDKEEPER_KIND_CLUSTER:-herdkeeper}
state=$cache/kind/$cluster
kubeconfig=$state/kubeconfig
mkdir -p "$state"
export KUBECONFIG=$kubeconfig

kubectl() { "$tools/kubectl" --request-timeout=10s "$@"; }
nodes() { docker ps -a --filter "label=io.x-k8s.kind.cluster=$cluster" --format '{{.Names}} {{.State}}'; }

in_state() { nodes | awk -v state="$1" '$2 == state {print $1}'; }

started_at() { docker inspect -f '{{.Name}} {{.State.StartedAt}}' $(nodes | awk '{print $1}' | sort); }

# why_not_usable: the reason why the cluster that is there can't be used, or nothing.
why_not_usable() {
  local stopped ready
  stopped=$(nodes | awk '$2 != "running" {print $1}' | tr '\n' ' ')
  [ -z "$stopped" ] || { echo "these nodes are stopped: $stopped"; return; }
  [ -s "$kubeconfig" ] || "$tools/kind" export kubeconfig --name "$cluster" >/dev/null 2>&1 || { echo "its kubeconfig can't be exported"; return; }
  [ -f "$state/mode" ] || { echo "an earlier run did not finish making it"; return; }
  # nodes that an engine started again have lost their routes, though the API server still calls them ready
  [ "$(started_at)" = "$(cat "$state/started" 2>/dev/null)" ] || { echo "its nodes were started again"; return; }
  ready=$(kubectl get nodes --no-headers 2>/dev/null | awk '$2 == "Ready"' | wc -l)
  [ "$ready" -eq 4 ] || echo "$ready of its 4 nodes are ready"
}

# configuration MODE STORE: what kind makes the cluster from
configuration() {
  sed "s/DISABLE_DEFAULT_CNI/$([ "$1" = built ] && echo true || echo false)/; s#IMAGE_STORE#$2#; s#AUDIT_POLICY#$state/audit-policy.yaml#" "$here/cluster.yaml"
}

# An engine that starts nodes again makes a folder of each file that they mount and that is gone.
fresh_state() {
  rm -rf "$state"
  mkdir -p "$state"
  cp "$here/audit-policy.yaml" "$state/audit-policy.yaml"
}

create() {
  local mode image store begun log=$state/create.log
  read -r mode image <<<"$("$here/node-image.sh")"
  [ -n "$image" ] || fail "there is no node image; the lines above tell why"
  store=$("$here/image-store.sh" "$image")
  begun=$SECONDS
  fresh_state
  configuration "$mode" "$store" > "$state/cluster.yaml"
  say "creating cluster $cluster: one control plane, three workers"
  # not --wait: nodes become ready only with the pod network, which comes after this
  "$tools/kind" create cluster --name "$cluster" --image "$image" --config "$state/cluster.yaml" --kubeconfig "$kubeconfig" --retain >"$log" 2>&1 ||
    { tail -40 "$log" >&2; fail "kind could not create the cluster; see $log, and: kind export logs --name $cluster"; }
  if [ "$mode" = built ]; then
    KUBECTL=$tools/kubectl "$here/pod-network.sh" 4
    # kind itself makes a class of this name whose volumes are bound to no node
    kubectl delete storageclass standard --ignore-not-found >/dev/null
    sed "s#LOCAL_PATH_IMAGE#docker.io/rancher/local-path-provisioner:$local_path_version#" "$here/volumes.yaml" | kubectl apply -f - >/dev/null
  fi
  wait_until_ready
  started_at > "$state/started"
  echo "$mode" > "$state/mode"
  say "cluster $cluster: ready after $((SECONDS - begun)) s"
}

wait_until_ready() {
  local patient=("$tools/kubectl" --request-timeout=0)
  "${patient[@]}" wait --for=condition=Ready nodes --all --timeout=180s >/dev/null || fail "nodes did not become ready: $(kubectl get nodes --no-headers | tr '\n' ';')"
  "${patient[@]}" -n kube-system rollout status deployment/coredns --timeout=180s >/dev/null || fail "cluster DNS did not become ready"
  "${patient[@]}" -n local-path-storage rollout status deployment/local-path-provisioner --timeout=180s >/dev/null || fail "dynamic volumes did not become ready"
}

up() {
  local reason
  "$here/../bootstrap/engine.sh"
  tools=$("$here/tools.sh")
  resume
  if [ -n "$(nodes)" ]; then
    reason=$(why_not_usable)
    if [ -z "$reason" ]; then
      say "cluster $cluster: there already, and healthy"
    else
      say "cluster $cluster is made anew: $reason"
      "$tools/kind" delete cluster --name "$cluster" >/dev/null 2>&1
      create
    fi
  else
    create
  fi
  echo "KUBECONFIG=$kubeconfig"
}

down() {
  local node
  if ! docker info >/dev/null 2>&1; then
    say "no container engine answers; if it still has the cluster's nodes, start it and run this again"
  else
    # without kind, so that this needs no tool to be built
    for node in $(nodes | awk '{print $1}'); do docker rm -f -v "$node" >/dev/null && say "removed $node"; done
  fi
  rm -rf "$state"
}

pause() { in_state running | xargs -r docker pause >/dev/null; }

resume() {
  local paused
  paused=$(in_state paused 2>/dev/null)
  [ -n "$paused" ] || return 0
  xargs docker unpause <<<"$paused" >/dev/null
  say "cluster $cluster: goes on"
  [ ! -s "$kubeconfig" ] || kubectl wait --for=condition=Ready nodes --all --timeout=60s >/dev/null || true
}

audit_log() {
  resume
  docker exec "$cluster-control-plane" sh -c 'zcat -f /var/log/kubernetes/audit/*' || fail "cluster $cluster logs no requests: make it anew (make cluster-clean)"
}

print_environment() {
  tools=$("$here/tools.sh")
  resume
  printf 'export KUBECONFIG=%q\n' "$kubeconfig"
  printf 'export PATH=%q:"$PATH"\n' "$tools"
  printf 'export HERDKEEPER_KIND_CLUSTER=%q\n' "$cluster"
}

# Two runs at once would delete each other's nodes.
if command -v flock >/dev/null; then
  exec 9>"$cache/kind/lock"
  flock -w 1800 9 || fail "another run holds $cache/kind/lock"
fi
case ${1:-} in
  up) up ;;
  down) down ;;
  pause) pause ;;
  resume) tools=$("$here/tools.sh") && resume ;;
  env) print_environment ;;
  audit-log) tools=$("$here/tools.sh") && audit_log ;;
  *) fail "usage: cluster.sh up | down | pause | resume | env | audit-log" ;;
esac
