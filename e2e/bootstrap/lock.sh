#!/usr/bin/env bash
# Makes Python's lock files anew: each version that pyproject.toml brings, with the hash of each of its files on PyPI. Versions stay while
# pyproject.toml allows them. Usage: lock.sh [NAME…]   (packages of which the newest version is taken; --upgrade for all of them)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/paths.sh"

uv_version=0.13.8
tool=$cache/uv-$uv_version   # not the project's environment, which a lock file makes
if [ ! -x "$tool/bin/uv" ]; then
  python3 -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' || fail "Python 3.11 or newer with venv is needed as python3"
  say "fetching uv $uv_version from PyPI"
  rm -rf "$tool" && python3 -m venv "$tool" && "$tool/bin/pip" install -q --disable-pip-version-check --only-binary :all: "uv==$uv_version"
fi
upgrade=()
for name in "$@"; do
  case $name in
    --upgrade) upgrade+=(--upgrade) ;;
    *) upgrade+=(--upgrade-package "$name") ;;
  esac
done

# needs EXTRA…: what pyproject.toml and these extras of it name.
needs() {
  "$tool/bin/python" - "$repo/pyproject.toml" "$@" <<'END_OF_PYTHON'
import sys, tomllib
project = tomllib.load(open(sys.argv[1], "rb"))["project"]
needed = project["dependencies"] + [line for name in sys.argv[2:] for line in project["optional-dependencies"][name]]
print("\n".join(line for line in needed if not line.startswith("herdkeeper-")))
END_OF_PYTHON
}

# lock FILE ABOUT [OPTION…] < requirements
lock() {
  local file=$1 about=$2 made=$cache/lock.$$
  shift 2
  cp "$file" "$made" 2>/dev/null || true   # versions that stay
  "$tool/bin/uv" pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
    -o "$made" "$@" - >/dev/null || { rm -f "$made"; fail "$file could not be made"; }
  { printf '# %s\n# Made by \x60make lock\x60.\n' "$about"; cat "$made"; } > "$file"
  rm "$made"
  say "${file#"$repo"/}: $(grep -c == "$file") packages"
}

lock_file=$repo/requirements.lock
needs operator spark dev docs | lock "$lock_file" "What the tests, the site and releases need." "${upgrade[@]}"
for extra in operator spark; do
  needs "$extra" | lock "$repo/images/$extra/requirements.lock" "What the image holds of PyPI, in the versions of requirements.lock." -c "$lock_file"
done
printf '%s\n' pip setuptools "$(sed -n 's/^requires = \["\(.*\)"\]$/\1/p' "$repo/pyproject.toml")" |
  lock "$here/build.lock" "What installs and builds packages; pip before 23.1 packs Spark again for each installation by hash." -c "$lock_file" "${upgrade[@]}"
