#!/usr/bin/env bash
# Runs make targets one after the other, tells how long each took, and stops at the first that fails. Usage: stages.sh TARGET…
set -uo pipefail
. "$(dirname "$0")/paths.sh"
summary=
for stage in "$@"; do
  begun=$SECONDS
  printf '\n=== %s\n' "$stage"
  "${MAKE:-make}" --no-print-directory -C "$repo" "$stage"
  code=$?
  summary+=$(printf '%6d s  %s' $((SECONDS - begun)) "$stage")$'\n'
  [ $code -eq 0 ] || { printf '\n%s=== %s failed; to run it alone: make %s\n' "$summary" "$stage" "$stage"; exit $code; }
done
printf '\n%s%6d s  all stages passed\n' "$summary" $SECONDS
