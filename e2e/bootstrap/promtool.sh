#!/usr/bin/env bash
# Prints the path of promtool, Prometheus' checker of rules, or of prometheus: the one on PATH, or the one of Debian's package, of which nothing
# is installed.
# Usage: promtool.sh [prometheus]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/paths.sh"
. /etc/os-release 2>/dev/null || true

name=${1:-promtool}
if command -v "$name" >/dev/null; then command -v "$name"; exit; fi
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null ||
  fail "$name is missing: install it (Prometheus 2.42 or newer), then run this again; only on Debian it is fetched for you."
folder=$cache/$name-${VERSION_CODENAME:-debian}-$(content_key "$here/promtool.sh")
program=$folder/$name
if [ ! -x "$program" ]; then
  mkdir -p "$folder"
  # whoever comes at the same time waits, and finds it there
  exec 9>"$folder/lock"
  if command -v flock >/dev/null; then flock 9; fi
fi
if [ ! -x "$program" ]; then
  say "fetching $name from Debian's package prometheus"
  making=$folder/making
  rm -rf "$making" && mkdir -p "$making"
  fetch() { (cd "$making" && apt-get download prometheus) >"$folder/log" 2>&1; }
  fetch || { is_debian_root && apt-get update >"$folder/log" 2>&1 && fetch; } || { tail -20 "$folder/log" >&2; fail "apt-get could not fetch prometheus; see $folder/log"; }
  dpkg-deb --fsys-tarfile "$making"/prometheus_*.deb | tar -xC "$making" "./usr/bin/$name"
  mv "$making/usr/bin/$name" "$program"
  rm -rf "$making"
fi
echo "$program"
