#!/usr/bin/env bash
# Prints the program of Azurite, an Azure Blob Storage for tests, from its npm package of a pinned version. It needs node and npm.
# Usage: azurite.sh
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/paths.sh"

version=3.35.0
folder=$cache/azurite-$version
program=$folder/node_modules/.bin/azurite-blob
if [ ! -x "$program" ]; then
  command -v npm >/dev/null || fail "npm is missing: install node and npm"
  say "installing Azurite $version"
  npm install --prefix "$folder.$$" --no-audit --no-fund --ignore-scripts "azurite@$version" >&2
  mv -T "$folder.$$" "$folder" 2>/dev/null || rm -rf "$folder.$$"   # another run was quicker
fi
echo "$program"
