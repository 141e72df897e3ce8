# A Go that can build the pinned modules; sourced after paths.sh. Sets GOTOOLCHAIN for an older Go that can fetch a newer one.
go_needed=1.26

# find_go: Go on PATH, else from Debian's backports (as root); fails saying what to install.
find_go() {
  local have
  if ! command -v go >/dev/null && is_debian_root; then
    say "installing Go from bookworm-backports"
    echo 'deb http://deb.debian.org/debian bookworm-backports main' > /etc/apt/sources.list.d/herdkeeper-backports.list
    { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends -t bookworm-backports golang-go; } >"$cache/apt.log" 2>&1 || true
  fi
  command -v go >/dev/null || fail "Go is needed to build Kubernetes and the S3 server of the tests from source: install Go $go_needed or newer (Debian 12's own is too old), then run this again."
  have=$(go env GOVERSION)
  have=${have#go}
  [ "$(printf '%s\n' "$go_needed" "$have" | sort -V | head -1)" = "$go_needed" ] && return
  [ "$(printf '%s\n' 1.21 "$have" | sort -V | head -1)" = 1.21 ] ||
    fail "Go $have is too old to build Kubernetes and the S3 server of the tests from source: install Go $go_needed or newer."
  export GOTOOLCHAIN=auto   # such a Go fetches the version that a module asks for
}
