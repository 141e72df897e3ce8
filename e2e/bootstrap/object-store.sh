#!/usr/bin/env bash
# Prints the path of the S3 server of tests and scenarios (versitygw), built from its pinned Go module: minutes once, nothing when it was
# built before. Usage: object-store.sh [SYSTEM]   (linux for a pod; this machine's own without it)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/paths.sh"
. "$here/../kind/go.sh"

system=${1:-$(uname | tr '[:upper:]' '[:lower:]')}
module=$repo/e2e/object-store
folder=$cache/object-store-$(content_key "$module" "$here/object-store.sh")-$system
program=$folder/versitygw
if [ ! -x "$program" ]; then
  mkdir -p "$folder"
  # whoever comes at the same time waits, and finds it built
  exec 9>"$folder/lock"
  if command -v flock >/dev/null; then flock 9; fi
fi
if [ ! -x "$program" ]; then
  find_go
  begun=$SECONDS
  say "building the S3 server of the tests (some minutes on few cores)"
  # a compiler that collects less often is a fifth faster, and still stays below 2 GB
  export CGO_ENABLED=0 GOOS=$system GOFLAGS=-trimpath GOGC=${GOGC:-400}
  (cd "$module" && go build -ldflags '-s -w' -o "$program.$$" github.com/versity/versitygw/cmd/versitygw) >"$folder/log" 2>&1 ||
    { tail -20 "$folder/log" >&2; fail "the S3 server could not be built; see $folder/log"; }
  mv "$program.$$" "$program"
  say "built the S3 server in $((SECONDS - begun)) s"
fi
echo "$program"
