# Where the project keeps what it makes, and how its scripts speak. Sourced by the scripts of e2e/, never run.
#
# Results go to stdout (one path or name), progress to stderr, so that scripts can be composed with $(…).
# Everything below the cache folder can be deleted at any time: the next run makes it again.

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cache=${HERDKEEPER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/herdkeeper}
project_version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$repo/pyproject.toml")   # of the images that are built here, too
mkdir -p "$cache"
started=$SECONDS

say() { printf '[%s] %s\n' "$(basename "$0" .sh)" "$*" >&2; }
fail() { printf '[%s] error: %s\n' "$(basename "$0" .sh)" "$*" >&2; exit 1; }

# content_key FILE…: twelve hex digits that change when a path or its content does; folders count with all their files.
content_key() {
  local path
  for path in "$@"; do
    if [ -d "$path" ]; then
      find "$path" -type f -not -path '*/__pycache__/*' -not -path '*/target/*' | LC_ALL=C sort
    else
      printf '%s\n' "$path"
    fi
  done | while read -r path; do
    printf '%s\n' "${path#"$repo"/}"
    [ ! -f "$path" ] || cat "$path"
  done | sha256sum | cut -c1-12
}

# on_docker_hub IMAGE: the name by which an image of Docker Hub is pulled: as it is, or behind what HERDKEEPER_DOCKER_HUB names, a mirror as host
# and path. For machines whose engine was not told of the mirror.
on_docker_hub() { printf '%s\n' "${HERDKEEPER_DOCKER_HUB:+$HERDKEEPER_DOCKER_HUB/}$1"; }

# is_debian_root: apt-get may be used here.
is_debian_root() { [ "$(id -u)" = 0 ] && [ -f /etc/debian_version ] && command -v apt-get >/dev/null; }

# has_every_capability: false where the bounding set lacks CAP_SYS_RESOURCE (bit 24), which containers ask for.
has_every_capability() {
  local bounding
  bounding=$(awk '/^CapBnd/ {print $2}' /proc/self/status 2>/dev/null) || return 0
  [ -z "$bounding" ] || (( (16#$bounding >> 24) & 1 ))
}

# has_cgroup_v2: the engine's machine has the unified hierarchy (a desktop engine runs in a machine of its own, which does).
has_cgroup_v2() { [ "$(docker info --format '{{.CgroupVersion}}' 2>/dev/null)" = 2 ]; }
