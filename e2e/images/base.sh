#!/usr/bin/env bash
# Makes the base of every image present in the engine under its usual name, debian:bookworm-slim:
# pulled where a registry answers (HERDKEEPER_DOCKER_HUB names a mirror), else made from Debian's packages.
set -euo pipefail
. "$(dirname "$0")/../bootstrap/paths.sh"

image=debian:bookworm-slim
present() { docker image inspect "$image" >/dev/null 2>&1; }
present && exit 0
# whoever comes at the same time waits, and finds it made
exec 7>"$cache/base.lock"
if command -v flock >/dev/null; then flock 7; fi
present && exit 0

pulled=$image
[ -z "${HERDKEEPER_DOCKER_HUB:-}" ] || pulled=$(on_docker_hub "library/$image")
if timeout 300 docker pull -q "$pulled" >/dev/null 2>&1; then
  [ "$pulled" = "$image" ] || docker tag "$pulled" "$image"
  say "$image: pulled${HERDKEEPER_DOCKER_HUB:+ from $HERDKEEPER_DOCKER_HUB}"
  exit 0
fi

say "$image: no image registry answers, so it is made from Debian's packages (about 30 s)"
"$(dirname "$0")/../bootstrap/apt.sh" mmdebstrap=mmdebstrap
# what Debian's own slim image leaves out
excludes=()
for path in '/usr/share/man/*' '/usr/share/doc/*' '/usr/share/info/*' '/usr/share/locale/*' '/usr/share/lintian/*'; do
  excludes+=("--dpkgopt=path-exclude=$path")
done
# as in Debian's own image: an installation leaves no archives behind in a layer
clean='DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/*.bin || true"; };'
mmdebstrap --quiet --variant=minbase --include=ca-certificates "${excludes[@]}" \
  --customize-hook="echo '$clean' > \"\$1/etc/apt/apt.conf.d/docker-clean\"" --dpkgopt='path-include=/usr/share/doc/*/copyright' bookworm - 2>"$cache/base.log" |
  docker import - "$image" >/dev/null || fail "mmdebstrap could not make $image; see $cache/base.log"
