"""Shared code of programs that read one fact of the metadata, inside the cluster, and print it as one line of JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable

from herdkeeper_e2e.session import Session, open_session


def print_answer(description: str | None, ask: Callable[[Session, str], object]) -> None:
    """The command line `--ledgers-root PATH`; `ask` gets the session and that root."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ledgers-root", required=True)
    arguments = parser.parse_args()
    with open_session() as session:
        print(json.dumps(ask(session, arguments.ledgers_root)))
