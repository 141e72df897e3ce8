#!/usr/bin/env bash
# Finds kind, kubectl and helm and prints a folder that has them: links to those on PATH where their versions suit,
# else downloaded releases, else built from the pinned Go module.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../bootstrap/paths.sh"
. "$here/versions.sh"
. "$here/go.sh"

tools=$cache/tools-$(content_key "$here/versions.sh" "$here/go.sh" "$here/tools.sh" "$programs")
mkdir -p "$tools"
os=$(uname | tr '[:upper:]' '[:lower:]')
arch=$(uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/')

# The version that a program on PATH says of itself, or nothing.
version_on_path() {
  case $1 in
    kind) kind version ;;
    kubectl) kubectl version --client ;;
    helm) helm version --short ;;
  esac 2>/dev/null | grep -oE 'v[0-9]+\.[0-9]+\.[0-9]+' | head -1
}

suits() {
  case $1:$2 in
    kind:v0.3[0-9].*) ;;
    kubectl:v1.3[345].*) ;;   # one minor version of skew at most
    helm:v3.1[4-9].* | helm:v3.2[0-9].*) ;;
    *) return 1 ;;
  esac
}

download() {
  local name=$1 out=$2 fetch=(curl -fsSL --connect-timeout 5 --max-time 600 --retry 1)
  command -v curl >/dev/null || return 1
  case $name in
    kind) "${fetch[@]}" -o "$out" "https://kind.sigs.k8s.io/dl/$kind_version/kind-$os-$arch" ;;
    kubectl) "${fetch[@]}" -o "$out" "https://dl.k8s.io/release/$kubernetes_version/bin/$os/$arch/kubectl" ;;
    helm) "${fetch[@]}" "https://get.helm.sh/helm-$helm_version-$os-$arch.tar.gz" | tar -xzO "$os-$arch/helm" > "$out" ;;
  esac 2>/dev/null && chmod +x "$out"
}

missing=()
for name in kind kubectl helm; do
  [ -x "$tools/$name" ] && continue
  rm -f "$tools/$name"
  version=$(version_on_path "$name") || true
  if suits "$name" "${version:-none}"; then
    ln -s "$(command -v "$name")" "$tools/$name"
    say "$name $version: the one on PATH"
  elif download "$name" "$tools/$name.new"; then
    mv "$tools/$name.new" "$tools/$name"
    say "$name: downloaded"
  else
    missing+=("$name")
  fi
done
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$os" = linux ]; then
    bin=$("$here/binaries.sh" "${missing[@]}")
    for name in "${missing[@]}"; do ln -sf "$bin/$name" "$tools/$name"; done
  else
    [[ " ${missing[*]} " != *" kubectl "* ]] || fail "kubectl is missing: install kubectl $kubernetes_version, then run this again."
    find_go
    say "building ${missing[*]}"
    build_programs "$os" "$tools" "${missing[@]}" >"$tools/log" 2>&1 || { tail -20 "$tools/log" >&2; fail "they could not be built; see $tools/log"; }
  fi
fi
echo "$tools"
