"""Reads all checkpoints of a volume again and again: `python3 -m herdkeeper_e2e.checkpoint_watch`, in a pod of the Spark image that has it.

It ends with a line of its standard input, or with its end. On standard output it says after each look how many there were, as the writers
do of rows (`acknowledged`), and in the end as one JSON object what was `wrong`: a checkpoint that could not be read whole, or was not there
any more.
"""

from __future__ import annotations

import argparse
import json
import queue
import sys
import threading
from pathlib import Path

from herdkeeper_e2e.tools_pod import CHECKPOINTS
from herdkeeper_e2e.writer import read_orders

PAUSE_SECONDS = 0.2


def problem_of(manifest: Path) -> str | None:
    """Why a checkpoint is not whole; None when each of its files has the bytes that were written, and each table its rows."""
    from herdkeeper_jobs.checkpoint.reading import open_manifest  # pyarrow is in the Spark image only
    from herdkeeper_jobs.storage.stored_path import file_hash

    checkpoint = open_manifest(manifest)
    for table in checkpoint.manifest.tables:
        for file in table.files:
            if file_hash(checkpoint.folder / file.path) != file.hash:
                return f"{file.path} has other bytes than were written"
        if (rows := checkpoint.load(table.name).num_rows) != table.rows:
            return f"table {table.name} has {rows} rows, and {table.rows} were written"
    return None


def look(destination: Path, before: frozenset[Path]) -> tuple[frozenset[Path], list[str]]:
    """The manifests that are there, and what is wrong with them. `before` are those of the last look."""
    from herdkeeper_jobs.errors import InvariantViolated
    from herdkeeper_jobs.manifests.manifest import manifests

    # another kind of file has the name of a manifest where somebody is held who reads it (herdkeeper_e2e.hold)
    found = frozenset(path for path in manifests(destination) if path.is_file())
    wrong = [f"{path} is not there any more" for path in before - found]
    for path in sorted(found):
        try:
            problem = problem_of(path)
        except (InvariantViolated, OSError, ValueError) as error:
            problem = repr(error)
        if problem is not None:
            wrong.append(f"{path}: {problem}")
    return found, wrong


def main() -> int:
    """The command line; 0 whatever is wrong."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    orders: queue.Queue[str] = queue.Queue()
    threading.Thread(target=read_orders, args=(orders,), daemon=True).start()
    found: frozenset[Path] = frozenset()
    wrong: dict[str, None] = {}
    looks = 0
    while True:
        found, now = look(Path(CHECKPOINTS), found)
        wrong |= dict.fromkeys(now)
        looks += 1
        print(json.dumps({"acknowledged": looks}), flush=True)
        try:
            orders.get(timeout=PAUSE_SECONDS)
        except queue.Empty:
            continue
        print(json.dumps({"looks": looks, "checkpoints": len(found), "wrong": list(wrong)}), flush=True)
        return 0


if __name__ == "__main__":
    sys.exit(main())
