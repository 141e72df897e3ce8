#!/usr/bin/env bash
# Builds images, those whose inputs changed since they were built. Usage: build.sh [NAME…]   (zookeeper bookkeeper herddb operator spark)
#
# An image's inputs are its folder in images/, LICENSE and NOTICE, the scripts here, the shared layer below it and, for Python, the project's
# sources; their key is the label io.herdkeeper.key. HERDKEEPER_IMAGE_TAG sets the tag (default: pyproject.toml's version),
# HERDKEEPER_MAVEN_OPTIONS other versions of the jars of one image (earlier.sh). HERDKEEPER_REVISION and HERDKEEPER_SOURCE, a commit and the
# address of its repository, become labels of the images of a release: images of other builds name no commit. HERDKEEPER_PLATFORM builds for
# another platform (platform.sh): jars and wheels are staged here all the same, and qemu runs what the Dockerfiles run.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../bootstrap/paths.sh"
. "$here/platform.sh"
export DOCKER_BUILDKIT=0   # Debian's engine has no BuildKit front end

tag=${HERDKEEPER_IMAGE_TAG:-$project_version}
read -ra options <<<"${HERDKEEPER_MAVEN_OPTIONS:-}"
origin=(${HERDKEEPER_REVISION:+"org.opencontainers.image.revision=$HERDKEEPER_REVISION"} ${HERDKEEPER_SOURCE:+"org.opencontainers.image.source=$HERDKEEPER_SOURCE"})
names=("$@")
[ ${#names[@]} -gt 0 ] || names=(zookeeper bookkeeper herddb operator spark)

label() { docker image inspect -f '{{index .Config.Labels "io.herdkeeper.key"}}' "$1" 2>/dev/null || true; }

# build_when_changed IMAGE KEY FOLDER DOCKERFILE LABEL…
build_when_changed() {
  local log=$cache/image.log label labels=()
  for label in "io.herdkeeper.key=$2" "${@:5}"; do labels+=(--label "$label"); done
  sed "s/^FROM .*:local/&$suffix/" "$4" | docker build -q -t "$1" "${labels[@]}" -f - "$3" >/dev/null 2>"$log" || { tail -30 "$log" >&2; fail "$1 could not be built; see $log"; }
  say "$1: built, $(docker image inspect -f '{{.Size}}' "$1" | awk '{printf "%.0f MB", $1/1e6}')"
}

# layer NAME: a shared layer is built again when its Dockerfile or what is below it changed.
layer() {
  local name=$1 file=$here/layers/$1.Dockerfile below key
  case $name in
    java-python) layer java; below=herdkeeper/java:local$suffix ;;
    *) "$here/base.sh"; below=herdkeeper/debian:local$suffix ;;
  esac
  key=$(content_key "$file" "$here/layers/archive-classes")-$(docker image inspect -f '{{.Id}}' "$below" | cut -c8-19)
  [ "$(label "herdkeeper/$name:local$suffix")" = "$key" ] || build_when_changed "herdkeeper/$name:local$suffix" "$key" "$here/layers" "$file"
}

# staged KEY FOLDER COMMAND…: runs the command in the builder, into the folder, unless it was done for this key.
staged() {
  local key=$1 folder=$2
  shift 2
  [ "$(cat "$folder/key" 2>/dev/null)" = "$key" ] && return
  rm -f "$folder/key"
  mkdir -p "$folder"
  "$here/builder.sh" "$folder" "$@" >"$folder/log" 2>&1 || { tail -30 "$folder/log" >&2; fail "$* failed; see $folder/log"; }
  echo "$key" > "$folder/key"
}

# What Docker copies: the image's folder and what was staged for it, joined in a folder of the cache.
image() {
  local name=$1 image=herdkeeper/$1:$tag$suffix folder=$repo/images/$1 stage=$cache/stage/$1${options:+-$tag} context=$cache/context/$1 begun=$SECONDS
  local inputs=("$folder" "$here/stage-jars.sh") below key base
  local staging=("$here/stage-python.sh" "$here/spark-jars.sh" "$here/../bootstrap/build.lock")
  [ -f "$folder/Dockerfile" ] || fail "images/$name/Dockerfile: not found"
  case $name in
    operator | spark) inputs=("$folder" "${staging[@]}" "$repo/pyproject.toml" "$repo/sql" "$repo/operator/src" "$repo/spark-jobs/src") ;;
  esac
  inputs+=("$repo/LICENSE" "$repo/NOTICE")
  # a repair moves copies with BookKeeper's own client
  [ "$name" != spark ] || inputs+=("$repo/images/bookkeeper" "$here/stage-jars.sh")
  base=$(sed -n 's/^FROM \([^ ]*\).*/\1/p' "$folder/Dockerfile" | tail -1)
  layer "$(basename "$base" :local)"
  below=$base$suffix
  key=$(content_key "${inputs[@]}")-$(docker image inspect -f '{{.Id}}' "$below" | cut -c8-19)${options:+-${options[*]}}${origin:+-${origin[*]}}
  if [ "$(label "$image")" = "$key" ]; then say "$image: up to date"; return; fi

  rm -rf "$context" && mkdir -p "$context"
  (cd "$folder" && find . -mindepth 1 -maxdepth 1 ! -name lib ! -name target ! -name site ! -name app -exec cp -r {} "$context/" \;)
  cp "$repo/LICENSE" "$repo/NOTICE" "$context/"
  case $name in
    operator | spark)
      (
        [ -z "$suffix" ] || export "${wheels[@]}"
        staged "$(content_key "${staging[@]}" "$folder/requirements.lock")" "$stage/dependencies$suffix" /src/e2e/images/stage-python.sh dependencies "$name"
      )
      staged "$(content_key "${staging[@]}" "$repo/pyproject.toml" "$repo/sql" "$repo/operator/src" "$repo/spark-jobs/src")" "$cache/stage/project" /src/e2e/images/stage-python.sh project
      link "$stage/dependencies$suffix/site" "$context/site"
      if [ "$name" = spark ]; then
        staged "$(content_key "$repo/images/bookkeeper" "$here/stage-jars.sh")" "$cache/stage/bookkeeper" /src/e2e/images/stage-jars.sh bookkeeper
        link "$cache/stage/bookkeeper/lib" "$context/bookkeeper"
      fi
      # an own, small layer for what changes often, where the Dockerfile has one
      if grep -qE '^COPY .*\bapp/? ' "$folder/Dockerfile"; then link "$cache/stage/project/app" "$context/app"; else cp -r "$cache/stage/project/app/." "$context/site/"; fi ;;
    *)
      staged "$(content_key "$folder" "$here/stage-jars.sh")${options:+-${options[*]}}" "$stage" /src/e2e/images/stage-jars.sh "$name" "${options[@]}"
      link "$stage/lib" "$context/lib" ;;
  esac
  build_when_changed "$image" "$key" "$context" "$context/Dockerfile" "org.opencontainers.image.title=herdkeeper/$name" \
    "org.opencontainers.image.version=$tag" org.opencontainers.image.licenses=Apache-2.0 "${origin[@]}"
  rm -rf "$context"
  say "$image took $((SECONDS - begun)) s"
}

# For pip, which fetches another platform's wheels so: those that Debian 12's glibc can load. Spark comes as its sources only, and is none but
# Python and jars.
wheels=("PIP_PLATFORM=manylinux2014_$machine $(seq -s ' ' -f "manylinux_2_%g_$machine" 17 36)" PIP_NO_DEPS=1 PIP_ONLY_BINARY=:all: PIP_NO_BINARY=pyspark)

# Hard links where the file system has them: a copy of Spark would take seconds each time.
link() { cp -rl "$1" "$2" 2>/dev/null || { rm -rf "$2" && cp -r "$1" "$2"; }; }

# Builds share folders, and a cluster that is made at the same time waits for its images (e2e/kind/image-store.sh).
exec 8>"$cache/images.lock"
if command -v flock >/dev/null; then flock 8; fi
[ -z "$suffix" ] || "$here/../bootstrap/emulation.sh" "$machine"
for name in "${names[@]}"; do image "$name"; done
