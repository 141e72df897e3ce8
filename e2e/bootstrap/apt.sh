#!/usr/bin/env bash
# Installs what is missing with apt-get, on Debian as root; says what to install anywhere else.
# Usage: apt.sh COMMAND=PACKAGE…   (a package is installed only when its command is not found)
set -euo pipefail
. "$(dirname "$0")/paths.sh"

missing=()
for pair in "$@"; do
  command -v "${pair%%=*}" >/dev/null || missing+=("${pair#*=}")
done
[ ${#missing[@]} -gt 0 ] || exit 0
is_debian_root || fail "not found: ${missing[*]} (Debian's names). Install them, then run this again; only on Debian as root it is done for you."

say "installing ${missing[*]} with apt-get"
export DEBIAN_FRONTEND=noninteractive
log=$cache/apt.log
exec 9>"$cache/apt.lock"   # two scripts that run side by side may both lack something
flock 9
install() { apt-get install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1 </dev/null; }
install || { apt-get update >"$log" 2>&1 && install; } || { tail -20 "$log" >&2; fail "apt-get could not install ${missing[*]}; see $log"; }
