"""Reads all checkpoints of a volume repeatedly: `python3 -m herdkeeper_e2e.checkpoint_watch`, in a pod of the Spark image that mounts it.

It ends with `stop`, or the end, of its standard input. After each pass it prints how many there were (`acknowledged`, as the writers do).
At the end it prints a JSON object with what was `wrong`: a checkpoint that was incomplete, or had vanished.
"""

from __future__ import annotations

import json
from pathlib import Path

from herdkeeper_e2e.checker.stop_order import stop_order
from herdkeeper_e2e.tools_pod import CHECKPOINTS

PAUSE_SECONDS = 0.2


def problem_of(manifest: Path) -> str | None:
    """Returns why a checkpoint is incomplete. None if each file has the written bytes, and each table its rows."""
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
    """Returns the existing manifests, and what is wrong with them. `before` are those of the last pass."""
    from herdkeeper_jobs.errors import InvariantViolated
    from herdkeeper_jobs.manifests.manifest import manifests

    # a manifest may be replaced by another kind of file to block its reader (herdkeeper_e2e.hold)
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


def main() -> None:
    stop = stop_order()
    found: frozenset[Path] = frozenset()
    wrong: dict[str, None] = {}
    looks = 0
    while True:
        found, now = look(Path(CHECKPOINTS), found)
        wrong |= dict.fromkeys(now)
        looks += 1
        print(json.dumps({"acknowledged": looks}), flush=True)
        if stop.wait(PAUSE_SECONDS):
            break
    print(json.dumps({"looks": looks, "checkpoints": len(found), "wrong": list(wrong)}), flush=True)


if __name__ == "__main__":
    main()
