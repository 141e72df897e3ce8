"""Publishes a job's summary: standard output for people, the termination message for the operator."""

from __future__ import annotations

import os
import sys
from pathlib import Path

VARIABLE = "HERDKEEPER_TERMINATION_MESSAGE"
_KUBERNETES_DEFAULT = Path("/dev/termination-log")


def write_termination_message(summary: str) -> None:
    """Prints the summary as one line, and writes it to the file in VARIABLE, else to Kubernetes' own if writable."""
    print(summary, flush=True)
    named = os.environ.get(VARIABLE)
    path = Path(named) if named else _KUBERNETES_DEFAULT
    if not named and not os.access(path, os.W_OK):
        return
    try:
        path.write_text(summary)
    except OSError as error:
        # The exit code has the outcome; an unwritable summary must not change it.
        print(f"{VARIABLE}: cannot write {path}: {error}", file=sys.stderr)
