"""Shared code of programs that read one fact of the metadata, inside the cluster, and print it as one line of JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable

from herdkeeper_e2e.session import Session, SettingError, open_session


def print_answer(name: str, description: str | None, ask: Callable[[Session, str], object]) -> int:
    """The command line `--ledgers-root PATH`; `ask` gets the session and that root. Exits with 1, and the reason, without an answer."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ledgers-root", required=True)
    arguments = parser.parse_args()
    try:
        with open_session() as session:
            print(json.dumps(ask(session, arguments.ledgers_root)))
    except (SettingError, ValueError, LookupError) as error:
        print(f"{name} failed: {error}", file=sys.stderr)
        return 1
    return 0
