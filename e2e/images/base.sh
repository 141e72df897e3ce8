#!/usr/bin/env bash
# Makes the base of every image present in the engine as herdkeeper/debian:local: Debian 12, slim, pinned; for another platform (platform.sh)
# as herdkeeper/debian:local-ARCHITECTURE.
# Pulled by its digest where a registry answers (HERDKEEPER_DOCKER_HUB names a mirror), else made from Debian's packages: those of a day where
# Debian's archive of all days answers, else those of today, which is said.
set -euo pipefail
. "$(dirname "$0")/../bootstrap/paths.sh"
. "$(dirname "$0")/platform.sh"

# The one place of both pins; docs/releases.md tells when and how they are renewed.
digest=sha256:88200866dfff7ea7f5cbcb6ec7c8a701889efe6fe859fe64d6990e4b07ea4171   # of debian:bookworm-slim, for all architectures, as of 2026-09-10
day=20261124T000000Z                                                             # of snapshot.debian.org
days=${HERDKEEPER_DEBIAN_SNAPSHOT:-http://snapshot.debian.org}

pinned=herdkeeper/debian:$(printf '%s %s' "$digest" "$day" | sha256sum | cut -c1-12)$suffix
finish() { docker tag "$pinned" "herdkeeper/debian:local$suffix"; exit; }
present() { docker image inspect "$pinned" >/dev/null 2>&1; }
if present; then finish; fi
foreign=(${suffix:+--platform "$platform"})
# whoever comes at the same time waits, and finds it made
exec 7>"$cache/base.lock"
if command -v flock >/dev/null; then flock 7; fi
if present; then finish; fi

pulled=debian@$digest
[ -z "${HERDKEEPER_DOCKER_HUB:-}" ] || pulled=$(on_docker_hub "library/$pulled")
if timeout 300 docker pull -q "${foreign[@]}" "$pulled" >/dev/null 2>&1; then
  docker tag "$pulled" "$pinned"
  say "the base of all images: pulled $pulled"
  finish
fi

say "the base of all images: no registry serves $pulled, so it is made from Debian's packages (about 30 s)"
"$(dirname "$0")/../bootstrap/apt.sh" mmdebstrap=mmdebstrap ${suffix:+arch-test=arch-test}
# has_day: the archive has that day; apt's own program asks it, as apt would.
has_day() {
  timeout 30 /usr/lib/apt/apt-helper -q -o Acquire::Retries=0 -o Acquire::http::Timeout=10 -o Acquire::https::Timeout=10 \
    download-file "$days/archive/debian/$day/dists/bookworm/InRelease" "$cache/base.day" >"$cache/base.log" 2>&1
}
sources=()
if has_day; then
  of_day() { echo "deb [check-valid-until=no] $days/archive/$1/$day $2 main"; }
  sources=("$(of_day debian bookworm)" "$(of_day debian bookworm-updates)" "$(of_day debian-security bookworm-security)")
  say "Debian's packages of $day, here and in the images that stand on it"
else
  say "snapshot.debian.org does not answer: Debian's packages are those of today, so another day's images may differ; make sbom lists what they hold"
fi
# what Debian's own slim image leaves out
excludes=()
for path in '/usr/share/man/*' '/usr/share/doc/*' '/usr/share/info/*' '/usr/share/locale/*' '/usr/share/lintian/*'; do
  excludes+=("--dpkgopt=path-exclude=$path")
done
# as in Debian's own image: an installation leaves no archives behind in a layer
clean='DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/*.bin || true"; };'
# `docker import` takes every file system for one of the engine's own architecture (20.10), `docker load` believes what it is told
layer=$(mktemp "$cache/base.XXXXXX")
trap 'rm -rf "$layer" "$layer.image"' EXIT
load() {
  local digest
  digest=$(sha256sum < "$layer" | cut -d' ' -f1)
  mkdir "$layer.image" && mv "$layer" "$layer.image/layer.tar"
  printf '{"architecture":"%s","os":"linux","config":{},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' "$architecture" "$digest" > "$layer.image/config.json"
  printf '[{"Config":"config.json","RepoTags":["%s"],"Layers":["layer.tar"]}]' "$pinned" > "$layer.image/manifest.json"
  tar -C "$layer.image" -c manifest.json config.json layer.tar | docker load -q >/dev/null
}
mmdebstrap --quiet --architectures="$architecture" --variant=minbase --include=ca-certificates "${excludes[@]}" \
  --customize-hook="echo '$clean' > \"\$1/etc/apt/apt.conf.d/docker-clean\"" --dpkgopt='path-include=/usr/share/doc/*/copyright' \
  bookworm - "${sources[@]}" >"$layer" 2>"$cache/base.log" && load || fail "mmdebstrap could not make the base of all images; see $cache/base.log"
finish
