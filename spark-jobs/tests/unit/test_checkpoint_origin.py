"""What a checkpoint is made from: the log while that has it, else a base and the archive, else the whole archive. Nothing is read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from played_bookie import PlayedBookie, served
from played_log import TABLESPACE, PlayedLog
from test_checkpoint_manifest import IDENTITY, manifest

from herdkeeper.formats.herddb_log_entry import LogEntry, LogEntryType
from herdkeeper_jobs.archive.copying import copy_log
from herdkeeper_jobs.archive.parts import WholeLog
from herdkeeper_jobs.archive.segment import Place
from herdkeeper_jobs.bookkeeper.reader import ReadSettings
from herdkeeper_jobs.checkpoint import origin
from herdkeeper_jobs.checkpoint.base import BaseRows
from herdkeeper_jobs.checkpoint.continuation import Continuation
from herdkeeper_jobs.checkpoint.errors import CheckpointRefused
from herdkeeper_jobs.checkpoint.log_source import LogSource
from herdkeeper_jobs.checkpoint.manifest import commit_manifest
from herdkeeper_jobs.checkpoint.origin import Mode, Search, choose_origin
from herdkeeper_jobs.wal.log_state import LogState
from herdkeeper_jobs.wal.lsn import Lsn

SPARK: Any = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=2))


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PlayedLog]:
    monkeypatch.setattr(origin, "load_rows", lambda spark, base: BaseRows(base, spark))
    bookies = [PlayedBookie() for _ in range(3)]
    with served(*bookies) as addresses:
        made = PlayedLog(bookies, addresses, tmp_path)
        for ledger, closed in ((3, True), (5, True), (7, False)):
            made.write(ledger, [LogEntry(ledger, LogEntryType.NOOP, -1, "")] * 4, closed=closed)
        yield made


def archive(log: PlayedLog, folder: Path) -> None:
    copy_log(source(log), Place(folder, IDENTITY, "run"), ReadSettings(batch_entries=2), segment_bytes=1)


def source(log: PlayedLog) -> LogSource:
    catalog: Any = log.metadata
    return LogSource(catalog, "/db/herd", TABLESPACE)


def chosen(log: PlayedLog, folder: Path, mode: Mode, target: Lsn) -> tuple[Lsn | None, int, int]:
    """The base, how many archived segments are read, and how many entries of the log."""
    found = choose_origin(SPARK, WholeLog(source(log), folder, IDENTITY), Search(folder, IDENTITY, mode, target), target)
    archived = sum(len(part.segments) for part in found.archived)
    live = sum(len(piece.entries) for part in found.live for piece in part.pieces)
    return None if found.start is None else found.start.at, archived, live


@pytest.mark.parametrize(
    ("mode", "target", "dropped", "expected"),
    [
        (Mode.AUTO, Lsn(5, 1), (), (None, 0, 6)),
        (Mode.AUTO, Lsn(5, 1), (3, 5), (Lsn(3, 2), 2, 0)),
        (Mode.AUTO, Lsn(7, 2), (3, 5), (Lsn(3, 2), 5, 0)),
        (Mode.INCREMENTAL, Lsn(5, 1), (), (Lsn(3, 2), 0, 4)),
        (Mode.FULL, Lsn(5, 1), (3, 5), (None, 3, 0)),
        (Mode.AUTO, Lsn(3, 1), (3, 5), (None, 1, 0)),
    ],
    ids=["the log is whole", "released", "released, to the end", "from the base by wish", "whole by wish", "before the first base"],
)
def test_what_the_log_has_is_read_of_it_and_the_rest_of_the_archive_from_a_base_on(
    log: PlayedLog, tmp_path: Path, mode: Mode, target: Lsn, dropped: tuple[int, ...], expected: tuple[Lsn | None, int, int]
) -> None:
    folder = tmp_path / IDENTITY.instance_id / IDENTITY.tablespace_uuid
    commit_manifest(manifest(entry_id=2).model_copy(update={"continuation": Continuation.of(LogState())}), folder)
    archive(log, folder)
    for ledger in dropped:
        log.drop(ledger)
    assert chosen(log, folder, mode, target) == expected


def test_a_moment_that_neither_a_base_nor_the_archive_reaches_is_refused(log: PlayedLog, tmp_path: Path) -> None:
    folder = tmp_path / IDENTITY.instance_id / IDENTITY.tablespace_uuid
    log.drop(3)
    archive(log, folder)
    log.drop(5)
    with pytest.raises(CheckpointRefused, match=r"begins with 5,0, and not with the log's beginning, and no checkpoint at the destination"):
        chosen(log, folder, Mode.AUTO, Lsn(5, 1))
