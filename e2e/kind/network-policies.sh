#!/usr/bin/env bash
# Has the workers of the test cluster enforce NetworkPolicies. kind's own nodes do so by themselves. On nodes that were built from source a
# program of e2e/network-policies does, until it is stopped: then it takes its rules away.
# Usage: network-policies.sh enforce | stop
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../bootstrap/paths.sh"
eval "$("$here/cluster.sh" env)"
name=network-policies
image=herdkeeper/$name:${HERDKEEPER_IMAGE_TAG:-$project_version}

build() {
  local folder
  "$here/../images/base.sh"
  folder=$(mktemp -d "$cache/$name-image.XXXXXX")
  cp "$("$here/../bootstrap/go-program.sh" $name linux)" "$folder/$name"
  DOCKER_BUILDKIT=0 docker build -q -t "$image" -f - "$folder" >/dev/null <<-END
	FROM herdkeeper/debian:local
	RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends iptables ipset kmod >/dev/null && rm -rf /var/lib/apt/lists/*
	COPY $name /usr/local/bin/
	ENTRYPOINT ["$name"]
	END
  rm -r "$folder"
}

enforce() {
  if [ "$(cat "$cache/kind/$HERDKEEPER_KIND_CLUSTER/mode")" = pulled ]; then
    say "network policies: kind's own nodes enforce them"
    return
  fi
  build
  "$here/../images/load.sh" $name
  sed "s#IMAGE#$image#" "$here/network-policies.yaml" | kubectl apply -f - >/dev/null
  kubectl -n kube-system rollout status "daemonset/$name" --timeout=180s >/dev/null || fail "nothing enforces network policies: $(kubectl -n kube-system logs "daemonset/$name" --tail=5 2>&1)"
  say "network policies: enforced on all workers"
}

stop() { sed "s#IMAGE#$image#" "$here/network-policies.yaml" | kubectl delete -f - --ignore-not-found --wait >/dev/null; }

case ${1:-} in
  enforce) enforce ;;
  stop) stop ;;
  *) fail "usage: network-policies.sh enforce | stop" ;;
esac
