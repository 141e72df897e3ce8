#!/usr/bin/env bash
# Makes the site of docs/ in site, strict: a page that is not in the navigation, a broken link or anchor, or anything that would be
# loaded from another host fails. Usage: site.sh
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/paths.sh"

# What draws the pictures, as npm has it: beside the pages, so that a reader's browser asks no other host.
mermaid_version=11.17.2
mermaid=$cache/mermaid-$mermaid_version/package/dist/mermaid.min.js
if [ ! -f "$mermaid" ]; then
  "$here/apt.sh" npm=npm
  say "fetching mermaid $mermaid_version from npm"
  making=$cache/mermaid-$mermaid_version.$$
  rm -rf "$making" && mkdir -p "$making"
  (cd "$making" && npm pack --silent "mermaid@$mermaid_version" >&2 && tar -xzf mermaid-*.tgz package/dist/mermaid.min.js package/LICENSE)
  # whoever came first at the same time has made the same
  mv -T "$making" "$cache/mermaid-$mermaid_version" 2>/dev/null || rm -rf "$making"
fi
# the theme tells of its successor at each build
NO_MKDOCS_2_WARNING=1 HERDKEEPER_MERMAID=$mermaid "$here/run.sh" mkdocs build --strict --config-file "$repo/mkdocs.yml" >&2
say "made: $repo/site/index.html"
