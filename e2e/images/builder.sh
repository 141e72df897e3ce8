#!/usr/bin/env bash
# Runs a command in the builder: a container with Maven, Java 17 and Python 3.11, so that the machine needs none of them.
# Usage: builder.sh FOLDER COMMAND…
#   FOLDER is mounted at /out, writable; the checkout at /src, read-only; the caches of Maven and pip are kept between runs.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../bootstrap/paths.sh"
export DOCKER_BUILDKIT=0   # Debian's engine has no BuildKit front end

unset HERDKEEPER_PLATFORM   # it is of this machine's platform, whatever it makes
"$here/base.sh"
context=$cache/builder
pip=${PIP_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/pip}   # this machine's own: Spark is packed once, for the Python environment and for the image
mkdir -p "$context" "$cache/m2" "$pip" "$cache/home"
cp "$here/builder/Dockerfile" "$here/builder/trust.sh" "$context/"
: > "$context/machine-certificates.pem"
for bundle in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem; do
  [ ! -f "$bundle" ] || { cp "$bundle" "$context/machine-certificates.pem"; break; }
done
image=herdkeeper/builder:$(content_key "$context")-$(docker image inspect -f '{{.Id}}' herdkeeper/debian:local | cut -c8-19)
if ! docker image inspect "$image" >/dev/null 2>&1; then
  say "making the builder's image (Maven, Java, pip; about a minute)"
  docker build -q -t "$image" "$context" >/dev/null 2>"$cache/builder.log" || { tail -20 "$cache/builder.log" >&2; fail "the builder's image could not be made; see $cache/builder.log"; }
fi

folder=$1
shift
exec docker run --rm --network host --user "$(id -u):$(id -g)" -e HOME=/home -e PIP_CACHE_DIR=/pip -e PIP_ROOT_USER_ACTION=ignore \
  -e MAVEN_OPTS="-Dmaven.repo.local=/m2 -XX:+UseSerialGC -XX:TieredStopAtLevel=1" \
  -e PIP_DISABLE_PIP_VERSION_CHECK=1 -e PIP_PLATFORM -e PIP_NO_DEPS -e PIP_ONLY_BINARY -e PIP_NO_BINARY -v "$repo:/src:ro" -v "$folder:/out" -v "$cache/m2:/m2" -v "$pip:/pip" -v "$cache/home:/home" -w /tmp "$image" "$@"
