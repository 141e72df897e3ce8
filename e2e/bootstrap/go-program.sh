#!/usr/bin/env bash
# Prints the path of a program of tests and scenarios, built from its pinned Go module: minutes once, nothing when it was built before.
# Usage: go-program.sh object-store|registry|network-policies|kstatus|scrape-config|prometheus|source-controller|kustomize-controller|helm-controller|kube-score|cert-manager [SYSTEM]   (linux for a pod or container; this machine's own without it)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/paths.sh"
. "$here/../kind/go.sh"

name=${1:-}
module=$repo/e2e/$name
case $name in
  object-store) package=github.com/versity/versitygw/cmd/versitygw what="the S3 server of the tests" ;;
  registry) package=. what="the image registry of the tests" ;;
  kube-score) package=github.com/zegl/kube-score/cmd/kube-score what="kube-score" ;;
  cert-manager) package=. what="cert-manager's controller" ;;
  network-policies) package=. what="the firewall of the tests" ;;
  kstatus) package=. what="kstatus" ;;
  scrape-config) package=. what="the translation of monitors for Prometheus" ;;
  prometheus) package=github.com/prometheus/prometheus/cmd/prometheus what="Prometheus" tags=remove_all_sd,enable_kubernetes_sd ;;
  # one module, so that what they have in common is compiled once
  source-controller | kustomize-controller | helm-controller) module=$repo/e2e/flux package=github.com/fluxcd/$name what="Flux's $name" ;;
  *) fail "usage: go-program.sh object-store|registry|network-policies|kstatus|scrape-config|prometheus|source-controller|kustomize-controller|helm-controller|kube-score|cert-manager [SYSTEM]" ;;
esac
system=${2:-$(uname | tr '[:upper:]' '[:lower:]')}
folder=$cache/$name-$(content_key "$module" "$here/go-program.sh" "$here/../kind/go.sh")-$system
program=$folder/$name
if [ ! -x "$program" ]; then
  mkdir -p "$folder"
  # whoever comes at the same time waits, and finds it built
  exec 9>"$folder/lock"
  if command -v flock >/dev/null; then flock 9; fi
fi
if [ ! -x "$program" ]; then
  find_go
  begun=$SECONDS
  say "building $what (some minutes on few cores)"
  (cd "$module" && go_build "$system" ${tags:+-tags "$tags"} -ldflags '-s -w' -o "$program.$$" "$package") >"$folder/log" 2>&1 ||
    { tail -20 "$folder/log" >&2; fail "$what could not be built; see $folder/log"; }
  mv "$program.$$" "$program"
  say "built $what in $((SECONDS - begun)) s"
fi
echo "$program"
