"""Keeps a run's progress at its destination, as `audit_progress/<run>/<number of the portion>.parquet`, until the run is in the tables.

A portion's file has a row per finding, as audit_findings has. The rest is JSON in the schema's metadata. So a portion is one file, and
exists whole or not at all (written beside, fsynced, linked). Numbers count from 0. The second process with a number takes the first one's
portion, so that no ledger counts twice. A restarted repair starts from the same findings; restored copies are not written again
(repair/run.py).
"""

from __future__ import annotations

import contextlib
import json
import shutil
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from herdkeeper.protocol.audit_finding import AuditDepth
from herdkeeper_jobs.audit.bookie_health import BookieTally
from herdkeeper_jobs.audit.finding_rows import finding_of
from herdkeeper_jobs.audit.portion import Counted, Portion
from herdkeeper_jobs.audit.schema import FINDINGS_ARROW, fields_of
from herdkeeper_jobs.copies.holding import CopyState
from herdkeeper_jobs.durable_file import link_once, written_beside
from herdkeeper_jobs.storage.stored_path import sync_folder

PROGRESS = "audit_progress"
_KEY = b"herdkeeper.audit.portion"
_STATES = [state.value for state in CopyState]


class ProgressRefusedError(ValueError):
    """The stored progress can't be continued; the message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """What must be equal for a run to continue another process's progress."""

    run_id: str
    instance_id: str
    """The cluster's id."""
    depth: AuditDepth
    ledger_filter: str
    """From `LedgerFilter.described`."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The portions of a run in order, and the seconds spent on them."""

    portions: tuple[Portion, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of one run at a destination."""

    destination: Path
    run: RunIdentity

    @property
    def folder(self) -> Path:
        return self.destination / PROGRESS / self.run.run_id

    def read(self) -> Kept:
        """Reads portions up to the first missing number. Raises ProgressRefusedError for another run's file, or a damaged one."""
        kept = list(self._read_in_order())
        return Kept(tuple(portion for portion, _ in kept), sum(seconds for _, seconds in kept))

    def keep(self, number: int, portion: Portion, seconds: float) -> Portion:
        """Makes a portion durable. Returns the portion of another process if that one stored this number first."""
        path = self._path(number)
        if not link_once(written_beside(path, lambda stream: parquet.write_table(self._table(portion, seconds), stream)), path):
            return self._read(path)[0]
        for folder in (self.folder, self.folder.parent, self.destination):
            sync_folder(folder)
        return portion

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06d}.parquet"

    def _read_in_order(self) -> Iterator[tuple[Portion, float]]:
        number = 0
        while (path := self._path(number)).exists():
            yield self._read(path)
            number += 1

    def _read(self, path: Path) -> tuple[Portion, float]:
        try:
            table = parquet.read_table(path)
            document = json.loads((table.schema.metadata or {})[_KEY])
            portion, seconds = _portion(document, table), float(document["seconds"])
            identity = {name: document[name] for name in _identity(self.run)}
        except (pa.ArrowException, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise ProgressRefusedError(f"{path} can't be read ({error}): delete {self.folder} to restart the run") from error
        self._require_same_run(identity)
        return portion, seconds

    def _require_same_run(self, begun: Mapping[str, str]) -> None:
        for name, mine in _identity(self.run).items():
            if begun[name] != mine:
                problem = f"the run {self.run.run_id} was started with {name} {begun[name]!r}, not {mine!r}"
                raise ProgressRefusedError(f"{problem}: give another --run-id, or delete {self.folder} to restart it")

    def _table(self, portion: Portion, seconds: float) -> pa.Table:
        counted = portion.counted
        document = {
            **_identity(self.run),
            "seconds": seconds,
            "last_of_run": portion.last_of_run,
            "through": portion.through,
            "last_try": portion.last_try,
            **{name: getattr(counted, name) for name in ("ledgers", "open_ledgers", "entries", "unreadable")},
            "bookies": {bookie_id: _tally_row(tally) for bookie_id, tally in counted.tallies.items()},
        }
        named = {"run_id": self.run.run_id, "attempt": ""}
        rows = pa.Table.from_pylist([named | row for row in fields_of(counted.findings)], schema=FINDINGS_ARROW)
        return rows.replace_schema_metadata({_KEY: json.dumps(document).encode()})


def forget_progress(destination: Path, run_id: str) -> None:
    """Removes the progress, by a rename first: a later process would continue from a partly deleted folder. Failed deletions are harmless
    after that."""
    folder = destination / PROGRESS / run_id
    gone = folder.with_name(f".{run_id}.{uuid.uuid4().hex}")
    with contextlib.suppress(FileNotFoundError):
        folder.rename(gone)
        sync_folder(folder.parent)
    shutil.rmtree(gone, ignore_errors=True)


def _identity(run: RunIdentity) -> dict[str, str]:
    return {"instance_id": run.instance_id, "depth": run.depth.value, "ledger_filter": run.ledger_filter}


def _portion(document: Mapping[str, Any], table: pa.Table) -> Portion:
    counted = Counted(
        ledgers=document["ledgers"],
        open_ledgers=document["open_ledgers"],
        entries=document["entries"],
        findings=tuple(finding_of(row) for row in table.to_pylist()),
        tallies={bookie_id: _tally(row) for bookie_id, row in document["bookies"].items()},
        unreadable=tuple(document["unreadable"]),
    )
    return Portion(document["last_of_run"], document["through"], document["last_try"], counted)


def _tally_row(tally: BookieTally) -> dict[str, Any]:
    """Names each state, since a later version may have more of them."""
    (row,) = fields_of([tally])
    return row | {"copies": dict(zip(_STATES, tally.copies, strict=True))}


def _tally(row: Mapping[str, Any]) -> BookieTally:
    return BookieTally(**{**row, "copies": tuple(row["copies"].get(state, 0) for state in _STATES)})
