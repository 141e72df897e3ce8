#!/usr/bin/env bash
# Runs all checks and tests, side by side where they may (e2e/src/herdkeeper_e2e/run_tests.py). Usage: stages.sh [--resume]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/paths.sh"
# the project's own Python is made by a stage, beside the cluster; without any other it has to come first
python=(python3)
python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null || python=("$here/run.sh" python)
export PYTHONPATH=$repo/e2e/src
exec "${python[@]}" -m herdkeeper_e2e.run_tests "$cache/runs" "$@"
