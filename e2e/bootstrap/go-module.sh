#!/usr/bin/env bash
# Prints the folder of a Go module's files, fetched through Go's module proxy and checked against its hash.
# Usage: go-module.sh MODULE@VERSION HASH   (the hash as in go.sum: h1:…)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/paths.sh"
. "$here/../kind/go.sh"

find_go
cd /   # in no module
found=$(go mod download -json "$1") || fail "$1 could not be fetched: $found"
hash=$(printf '%s' "$found" | sed -n 's/.*"Sum": "\(.*\)".*/\1/p')
[ "$hash" = "$2" ] || fail "$1 has the hash $hash, not $2"
printf '%s' "$found" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p'
