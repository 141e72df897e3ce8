#!/usr/bin/env bash
# Builds the images of version 0.1.0 from its commit, by that commit's own scripts, as herdkeeper/NAME:before, and loads them into the test
# cluster. Prints the folder of that version's files.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../bootstrap/paths.sh"
commit=866bbc21f0   # its resources store the default image, as CHANGELOG.md says of 0.1.0
source=$cache/before/$commit

git -C "$repo" cat-file -e "$commit^{commit}" 2>/dev/null || fail "commit $commit is not here: fetch the whole history (git fetch --unshallow)"
[ -f "$source/crds/tablespaces.yaml" ] || { mkdir -p "$source" && git -C "$repo" archive "$commit" | tar -x -C "$source"; }
"$here/../bootstrap/engine.sh"

names=(zookeeper bookkeeper herddb operator spark)
load() { HERDKEEPER_IMAGE_TAG=before "$here/load.sh" >&2 && echo "$source"; }
if docker image inspect $(printf 'herdkeeper/%s:before ' "${names[@]}") >/dev/null 2>&1; then load; exit; fi

# both versions name the layers below their images alike: this version's get their names back
exec 8>"$cache/images.lock"
if command -v flock >/dev/null; then flock 8; fi
layers=$(docker image ls --filter 'reference=herdkeeper/*:local' --format '{{.ID}} {{.Repository}}:{{.Tag}}')
named_as_before() { while read -r id name; do docker tag "$id" "$name"; done <<<"$layers"; }
trap named_as_before EXIT
mkdir -p "$cache/before/cache"
ln -sfn "$cache/m2" "$cache/before/cache/m2"
HERDKEEPER_CACHE=$cache/before/cache HERDKEEPER_IMAGE_TAG=before "$source/e2e/images/build.sh" >&2
load
