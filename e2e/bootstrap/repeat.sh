#!/usr/bin/env bash
# Runs all checks and tests several times in a row, and prints a line for each run. Fails if one of them failed.
# Usage: repeat.sh RUNS [BUSY]   with BUSY a loop that does nothing takes one core meanwhile
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/paths.sh"
runs=$1
mkdir -p "$cache/repeated"
if [ -n "${2:-}" ]; then
  taskset -c 0 bash -c 'while :; do :; done' &
  busy=$!
  trap 'kill "$busy"' EXIT
fi
failed=0
for run in $(seq "$runs"); do
  log=$cache/repeated/$run.log
  began=$SECONDS
  if "$here/stages.sh" >"$log" 2>&1; then verdict=passed; else verdict=failed failed=$((failed + 1)); fi
  printf '%3d of %d  %s  %d s  %s\n' "$run" "$runs" "$verdict" $((SECONDS - began)) "$log"
done
echo "$((runs - failed)) of $runs runs passed"
[ "$failed" = 0 ]
