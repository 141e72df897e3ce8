#!/usr/bin/env bash
# Pushes a release to a registry: the images, then the chart. Usage: push.sh VERSION REGISTRY
#
# Images are named REGISTRY/herdkeeper/NAME:VERSION, the chart oci://REGISTRY/herdkeeper/charts/herdkeeper. Where dist/ has archives of two
# platforms, that name is an index of both, and each has the tag VERSION-ARCHITECTURE, too; without archives, images of this machine's platform
# are pushed. dist/digests.yaml gets the images' digests, as values of the chart. With REGISTRY_USER and REGISTRY_PASSWORD set it logs in first.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../bootstrap/paths.sh"
. "$here/platform.sh"

version=${1:-}
registry=${2:-}
[ -n "$version" ] || fail "VERSION is empty: set the version that make release made"
[ -n "$registry" ] || fail "REGISTRY is empty: set a host and a path, e.g. registry.example.com/team"
dist=${HERDKEEPER_DIST:-$repo/dist}
chart=$dist/herdkeeper-$version.tgz
[ -f "$chart" ] || fail "dist/ has no chart of $version: run make release VERSION=$version REGISTRY=$registry"
docker info >/dev/null 2>&1 || fail "no container engine answers: images can't be pushed without one"
helm=${HELM:-$("$here/../kind/tools.sh")/helm}

if [ -n "${REGISTRY_USER:-}" ]; then
  docker login --username "$REGISTRY_USER" --password-stdin "${registry%%/*}" <<<"$REGISTRY_PASSWORD" >/dev/null
  "$helm" registry login --username "$REGISTRY_USER" --password-stdin "${registry%%/*}" <<<"$REGISTRY_PASSWORD" >/dev/null
fi

architectures=()
for each in amd64 arm64; do [ ! -f "$dist/operator-$version-$each.tar" ] || architectures+=("$each"); done
[ ${#architectures[@]} -gt 0 ] || architectures=("$own_architecture")
insecure=()
case $registry in localhost | localhost[:/]* | 127.*) insecure=(--insecure) ;; esac   # as the engine takes it by itself

printf 'images:\n  registry: "%s"\n  digests:\n' "$registry" > "$dist/digests.yaml.new"
for name in operator zookeeper bookkeeper herddb spark; do
  image=$registry/herdkeeper/$name:$version
  parts=()
  for each in "${architectures[@]}"; do
    built=herdkeeper/$name:$version part=$image
    [ "$each" = "$own_architecture" ] || built+=-$each
    [ ${#architectures[@]} = 1 ] || part+=-$each
    docker tag "$built" "$part"
    docker push -q "$part" >/dev/null
    parts+=("$part")
  done
  if [ ${#architectures[@]} = 1 ]; then
    digest=$(docker image inspect -f '{{range .RepoDigests}}{{println .}}{{end}}' "$image" | sed -n "s#^$registry/herdkeeper/$name@##p" | head -1)
  else
    docker manifest rm "$image" >/dev/null 2>&1 || true   # what an interrupted push left
    docker manifest create "${insecure[@]}" "$image" "${parts[@]}" >/dev/null
    digest=$(docker manifest push "${insecure[@]}" --purge "$image" | tail -1)
  fi
  [ -n "$digest" ] || fail "the engine tells no digest of $image after its push"
  printf '    %s: %s\n' "$name" "$digest" >> "$dist/digests.yaml.new"
  say "$image: pushed for ${architectures[*]}"
done
"$helm" push "$chart" "oci://$registry/herdkeeper/charts"
mv "$dist/digests.yaml.new" "$dist/digests.yaml"
