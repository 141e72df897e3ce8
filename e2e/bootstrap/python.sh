#!/usr/bin/env bash
# Makes the Python environment of the checkout and prints its bin folder: every dependency of pyproject.toml in the versions of requirements.lock.
# The project's own packages are not installed: they come from the checkout by PYTHONPATH (see the Makefile), so that checkouts can share one.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/paths.sh"

# find_python: a Python of at least 3.11 that can make environments.
find_python() {
  local candidate
  for candidate in python3 /usr/bin/python3 python3.13 python3.12 python3.11; do
    "$candidate" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo "$candidate"; return; }
  done
  return 1
}

python=$(find_python) || {
  "$here/apt.sh" no-python-with-environments=python3-venv
  python=$(find_python) || fail "no Python of at least 3.11 with venv: install one, then run this again."
}
# what stands before the settings of tools is what names dependencies
needs=$(sed '/^\[tool\./,$d' "$repo/pyproject.toml" | sha256sum | cut -c1-12)
environment=$cache/venv-$needs-$(content_key "$repo/requirements.lock" "$here/python.sh")
if [ ! -f "$environment/complete" ]; then
  # whoever comes at the same time waits, and finds it made
  exec 6>"$cache/python.lock"
  if command -v flock >/dev/null; then flock 6; fi
fi
if [ ! -f "$environment/complete" ]; then
  begun=$SECONDS
  say "making the Python environment (about two minutes)"
  rm -rf "$environment"
  "$python" -m venv "$environment"
  "$environment/bin/python" - "$repo/pyproject.toml" > "$environment/requirements.txt" <<'END'
import sys, tomllib
project = tomllib.load(open(sys.argv[1], "rb"))["project"]
extras = project["optional-dependencies"]
needed = project["dependencies"] + [line for name in ("operator", "spark", "dev", "docs") for line in extras[name]]
print("\n".join(line for line in needed if not line.startswith("herdkeeper-")))
END
  "$environment/bin/pip" install -q --disable-pip-version-check -c "$repo/requirements.lock" -r "$environment/requirements.txt" >"$environment/pip.log" 2>&1 ||
    { tail -20 "$environment/pip.log" >&2; fail "pip could not install what the project needs; see $environment/pip.log"; }
  touch "$environment/complete"
  say "Python environment: made in $((SECONDS - begun)) s"
fi
echo "$environment/bin"
