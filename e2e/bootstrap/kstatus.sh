#!/usr/bin/env bash
# Prints the path of the program that says what kstatus makes of resources (e2e/kstatus), built from its pinned Go module: half a minute once.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/paths.sh"
. "$here/../kind/go.sh"

module=$repo/e2e/kstatus
program=$cache/kstatus-$(content_key "$module" "$here/kstatus.sh" "$here/../kind/go.sh")
if [ ! -x "$program" ]; then
  find_go
  say "building kstatus"
  # two that build at once do the same twice, and each puts a whole program there
  (cd "$module" && go_build "$(go env GOOS)" -o "$program.$$" .) >"$program.log" 2>&1 ||
    { tail -20 "$program.log" >&2; fail "kstatus could not be built; see $program.log"; }
  mv "$program.$$" "$program"
fi
echo "$program"
