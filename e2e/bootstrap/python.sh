#!/usr/bin/env bash
# Makes the Python environment of the checkout and prints its bin folder: what requirements.lock names, each file checked against its hash.
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
environment=$cache/venv-$(content_key "$repo/requirements.lock" "$here/build.lock" "$here/python.sh")
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
  install() {
    "$environment/bin/pip" install -q --disable-pip-version-check --require-hashes "$@" >>"$environment/pip.log" 2>&1 ||
      { tail -20 "$environment/pip.log" >&2; fail "pip could not install what the project needs; see $environment/pip.log"; }
  }
  install -r "$here/build.lock"
  # what is built here (Spark's package) is built with the above
  install --no-build-isolation -r "$repo/requirements.lock"
  touch "$environment/complete"
  say "Python environment: made in $((SECONDS - begun)) s"
fi
echo "$environment/bin"
