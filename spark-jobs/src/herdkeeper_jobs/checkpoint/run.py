"""The Checkpoint job in order: target -> origin (a base?) -> log -> cut -> timeline -> fold -> files -> verify -> manifest -> report.

A failed report never fails a checkpoint. Without an origin the job takes a follower's tables, if one is named, and chooses the target, now,
behind them. If the leader or a follower contradicts a checkpoint made from a base, it is made again from the whole log.
"""

from __future__ import annotations

import functools
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from typing import assert_never

import pyarrow as pa
import structlog
from pyspark import StorageLevel
from pyspark.sql import SparkSession

from herdkeeper.codecs.herddb.row_digest import RowDigest
from herdkeeper.codecs.herddb.table import MOST_COLUMNS, MOST_OF_NAME, TableDefinition, beginning, encode_table
from herdkeeper.protocol.job_summary import CheckpointSummary, FollowerComparison, JobOutcome, TableSummary
from herdkeeper_jobs.archive.parts import UNLIMITED, ReadBudget, WholeLog, read_archived
from herdkeeper_jobs.archive.window import recovery_window
from herdkeeper_jobs.bookkeeper.metadata import LedgerCatalog
from herdkeeper_jobs.bookkeeper.reader import read_partition
from herdkeeper_jobs.checkpoint.base import Base, CheckpointBase, described, highest_keys_of
from herdkeeper_jobs.checkpoint.data_files import WrittenTable, sync_folders, verify_files, write_tables
from herdkeeper_jobs.checkpoint.file_check import faults_of_files
from herdkeeper_jobs.checkpoint.follower_base import CLOCKS_DIFFER_MILLIS, FollowerBase, FollowerSource, load_tables, take_tables
from herdkeeper_jobs.checkpoint.follower_comparison import compare, require_rows_of_leader
from herdkeeper_jobs.checkpoint.history_files import Published, publish_history
from herdkeeper_jobs.checkpoint.node_http import LeaderCounts, NotCounted, follower_tables
from herdkeeper_jobs.checkpoint.origin import Mode, Origin, Search, choose_origin, origin_from, whole_live_log
from herdkeeper_jobs.checkpoint.removal import remove_uncommitted
from herdkeeper_jobs.checkpoint.table_digests import table_digests
from herdkeeper_jobs.checkpoint.target import Target, TargetRequest, choose_target
from herdkeeper_jobs.encryption.keys import Key
from herdkeeper_jobs.encryption.parquet_folder import FileKey, ParquetFolder
from herdkeeper_jobs.errors import (
    BaseLockedAway,
    CheckpointRefused,
    CheckpointRetryable,
    FollowerDiffers,
    InvariantViolated,
    LeaderDiffers,
    LogDropped,
    NothingToBeginWith,
)
from herdkeeper_jobs.log_source import open_log
from herdkeeper_jobs.manifests.continuation import Continuation
from herdkeeper_jobs.manifests.manifest import (
    CommittedManifest,
    Encryption,
    Identity,
    Making,
    Manifest,
    ManifestColumn,
    ManifestIndex,
    ManifestTable,
    ManifestTransaction,
    Position,
    Verification,
    commit_manifest,
    tablespace_folder,
)
from herdkeeper_jobs.spark_tasks import map_numbers
from herdkeeper_jobs.storage.stored_path import StoredPath, asked_of_each, file_size
from herdkeeper_jobs.wal.blocks import BLOCK_SCHEMA, Blocks, blocks_of
from herdkeeper_jobs.wal.cut import cut_at_time
from herdkeeper_jobs.wal.decode import decode_batches
from herdkeeper_jobs.wal.fold import fold_partitions, highest_auto_increments, last_changes, place_changes
from herdkeeper_jobs.wal.log_state import StartingPoint
from herdkeeper_jobs.wal.lsn import Lsn
from herdkeeper_jobs.wal.moment import Time, stamp
from herdkeeper_jobs.wal.outline import LogExtent, LogOutline, log_extent, log_outline, log_timeline
from herdkeeper_jobs.wal.task_log import TaskLog
from herdkeeper_jobs.wal.timeline import Timeline

_log = structlog.get_logger()
_MOST_OF_A_REASON = 150
"""Characters; the rest is in the pod's log."""
_SHOWN = 5
_REST_SECONDS = 120
"""Time for a follower to reach a position without open transactions."""
FULL_EVERY_SECONDS = 7 * 24 * 3600
"""The default of `fullEvery` of a Checkpoint: weekly, like full backups."""


@dataclass(frozen=True, slots=True)
class CheckpointRequest:
    herd_root: str
    tablespace: str
    target: TargetRequest
    destination: StoredPath
    run_id: str
    mode: Mode = Mode.AUTO
    archive: StoredPath | None = None
    """Where the log is archived; None: at this destination."""
    key: Key | None = None
    """Encrypts the output; None: no encryption. It stays in the driver."""
    budget: ReadBudget = UNLIMITED
    """The limit of reads from each bookie."""
    follower: FollowerSource | None = None
    """The follower to start from without another origin."""
    full_every_seconds: int = FULL_EVERY_SECONDS
    """With `Auto`, the whole log is read if the base's chain last did so longer ago."""


@dataclass(frozen=True, slots=True)
class Order:
    """Where, by which run and in which mode to make a checkpoint. `since`: the start of the work, by `time.monotonic`."""

    destination: StoredPath
    run_id: str
    mode: Mode
    since: float
    key: Key | None = None
    budget: ReadBudget = UNLIMITED
    full_every_seconds: int = FULL_EVERY_SECONDS
    """The last three are those of `CheckpointRequest`."""


@dataclass(frozen=True, slots=True)
class Made:
    """A committed checkpoint. `left_out`: entries after it with a stamp at or before the requested time."""

    committed: CommittedManifest
    comparison: FollowerComparison | None
    left_out: int
    published: Published
    trouble: str = ""
    """What is wrong, e.g. rows that HerdDB's SQL refuses, and what to do; empty if nothing."""
    passed_over: str = ""
    """Newer checkpoints than its base, and why they are unusable; may be empty."""
    restorable: bool = True
    """Whether a restore would load it as it is, as far as known; `trouble` says why not."""


@dataclass(frozen=True, slots=True)
class _Cut:
    """The LSN at which the log is cut. `left_out`: entries after it with a stamp at or before the requested time."""

    lsn: Lsn
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class _Folded:
    """The result of a fold: all that a manifest needs except who asked. `compared`: the tables at the end of what was read, where the
    follower was held."""

    cut: _Cut
    extent: LogExtent
    timeline: Timeline
    written: list[WrittenTable]
    highest_keys: dict[str, int]
    compared: Mapping[str, RowDigest]
    base: Base | None


def run_checkpoint(start: Callable[[], SparkSession], catalog: LedgerCatalog, request: CheckpointRequest) -> CheckpointSummary:
    """Makes one checkpoint and returns its summary. `start` gives the session, once there is work for it.

    Raises:
        CheckpointRefused, CheckpointRetryable, InvariantViolated: see `errors`. No manifest was written then.
    """
    order = Order(
        request.destination, request.run_id, request.mode, time.monotonic(), request.key, request.budget, request.full_every_seconds
    )
    log = open_log(catalog, request.herd_root, request.tablespace)
    identity = log.identity
    whole = WholeLog(log, tablespace_folder(request.archive or request.destination, identity), identity)
    target = chosen_target(whole, request.target, tablespace_folder(request.destination, identity))
    spark = functools.cache(start)
    try:
        made = make_checkpoint(spark, whole, target, order)
    except BaseLockedAway:
        raise  # its key makes it usable again; a follower's tables would hide the missing key
    except NothingToBeginWith as error:
        made = _make_from_follower(spark, whole, request, order, error)
    return _with_report(_summary(made, request, time.monotonic() - order.since), made.published)


def make_checkpoint(start: Callable[[], SparkSession], whole: WholeLog, target: Target, order: Order) -> Made:
    """Makes the checkpoint of a chosen moment. Raises as `run_checkpoint`."""
    spark = start()
    folder = tablespace_folder(order.destination, whole.identity)
    due_before = int((time.time() - order.full_every_seconds) * 1000)
    search = Search(folder, whole.identity, order.mode, target.at, due_before)
    origin = choose_origin(spark, whole, search, target.read_to, order.budget)
    try:
        return _make(spark, whole, target, order, origin)
    except (FollowerDiffers, LeaderDiffers) as error:
        # The base may be wrong: its rows are proven unchanged, not correct.
        base = origin.base
        whole_log = whole_live_log(spark, whole, target.read_to, order.budget) if isinstance(base, CheckpointBase) else None
        if base is None or whole_log is None:
            raise
        _log.warning("made again from the whole log", base=base.record.manifest, reason=str(error))
        made = _make(spark, whole, target, order, whole_log)
        return replace(made, trouble="; ".join(filter(None, (_wrong_base(base), made.trouble))))


def _wrong_base(base: Base) -> str:
    """The whole log agrees with the leader or follower that contradicted the base."""
    return (
        f"the checkpoint {base.record.manifest.removesuffix('.json')} has wrong rows. Its base, and checkpoints that were made from it, "
        "may have them, too: restore none of these, and delete them"
    )


def _make_from_follower(
    start: Callable[[], SparkSession], whole: WholeLog, request: CheckpointRequest, order: Order, cause: NothingToBeginWith
) -> Made:
    """Makes a checkpoint from a follower's tables, the last resort. It is compared with another follower, or else with the same one, which
    an earlier comparison found equal. The latter proves the transfer and the fold behind it, not the rows themselves: the manifest says
    `Self`."""
    source = request.follower
    if source is None or request.target.at is not None:
        raise NothingToBeginWith(f"{_why_no_follower(source)}. {cause}", cause.missing, cause.no_base) from cause
    _log.info("no origin but a follower", node=source.address, reason=str(cause))
    parts = follower_tables(source.address, whole.name, source.token, _REST_SECONDS)
    where = (_written_to(whole, order), order.run_id)
    base = take_tables(parts, source.address, whole.identity.tablespace_uuid, where)
    try:
        behind = replace(request.target, verify_against=source.witness or source.address, token=source.token, not_before=base.start.at)
        target = choose_target(whole, behind)
        spark = start()
        rows = load_tables(spark, base)
    except BaseException:
        base.release()
        raise
    try:
        origin = origin_from(spark, whole, rows, target.read_to, order.budget)
    except BaseException:
        rows.release()
        raise
    return _make(spark, whole, target, order, origin)


def _why_no_follower(source: FollowerSource | None) -> str:
    if source is None:
        return (
            "No follower's tables can be the base either: no other follower, and no earlier Checkpoint, proves one right (--base-follower)."
            " Raise spec.replicas of the Tablespace to 3"
        )
    return "A follower's tables can be the base only for the current state: remove spec.target (--to)"


def _written_to(whole: WholeLog, order: Order) -> ParquetFolder:
    """The folder that a run writes to, with a new file key."""
    return ParquetFolder(tablespace_folder(order.destination, whole.identity), None if order.key is None else FileKey.new(order.key))


def _make(spark: SparkSession, whole: WholeLog, target: Target, order: Order, origin: Origin) -> Made:
    identity = whole.identity
    written_to = _written_to(whole, order)
    folder = written_to.place
    _log.info("target", at=str(target.at), read_to=str(target.read_to), follower="" if target.follower is None else target.follower.node)
    try:
        with blocks_of(spark) as blocks:
            folded = _fold(_read(spark, origin, blocks), origin, target, (written_to, order.run_id))
    finally:
        origin.release()
    files = [folder / part.path for table in folded.written for file in table.files for part in file.with_older_forms()]
    sync_folders(folder, order.run_id, order.destination)
    verify_files(spark, zip(folded.timeline.tables, folded.written, strict=True), written_to)
    try:
        comparison = _compared(folded, target, identity.tablespace_uuid)
        verified = _verification(comparison, folded).model_copy(update={"leader": _leader_compared(folded, target)})
    except InvariantViolated:
        remove_uncommitted(files)
        raise
    _log.info("verified", how=verified.how, by=verified.by, leader=verified.leader)
    making = Making(at_millis=time.time_ns() // 1_000_000, seconds=round(time.monotonic() - order.since, 3))
    manifest = _manifest(identity, order.run_id, folded, verified, making)
    _require_there(files)
    committed = commit_manifest(_encrypted(manifest, written_to.key), folder, order.key)
    if committed.existed:
        _require_whole(spark, committed, folder)
        named = {folder / file.path for file in committed.manifest.files}
        remove_uncommitted([path for path in files if path not in named])
    # Agreeing followers prove each other. Whether they agree with the log was not checked.
    verdict = None if isinstance(folded.base, FollowerBase) or verified.how == "Self" else comparison
    published = publish_history(whole, folder, time.time_ns() // 1_000_000)
    passed_over = described(origin.passed_over, shown=1) if origin.passed_over else ""
    unrestorable = _why_unrestorable(folded)
    trouble = "; ".join((*unrestorable, *_what_a_restore_changes(folded)))
    return Made(committed, verdict, folded.cut.left_out, published, trouble, passed_over, restorable=not unrestorable)


def _why_unrestorable(folded: _Folded) -> list[str]:
    """Names what a restore can't load. HerdDB stores NULL in a NOT NULL column with a default, and refuses it in an INSERT by name."""
    tables = list(zip(folded.timeline.tables, folded.written, strict=True))
    nulls = _columns((table.name, written.nulls_in) for table, written in tables)
    long_names = [table.name for table, written in tables if written.digest.rows and not table.can_be_queried]
    found = []
    if long_names:
        found.append(
            f"it can't be restored as it is: no INSERT accepts the name {beginning(long_names[0])}, which has more than "
            f"{MOST_OF_NAME} characters. Rename the table (EXECUTE RENAMETABLE), and make another Checkpoint"
        )
    if wide := [table.name for table, _ in tables if len(table.columns) > MOST_COLUMNS]:
        found.append(
            f"it can't be restored as it is: table {beginning(wide[0])} has more than {MOST_COLUMNS} columns. Drop some, and make another "
            "Checkpoint"
        )
    if nulls:
        found.append(
            f"it can't be restored as it is: {nulls} hold a NULL and are declared NOT NULL, which no INSERT may do. "
            "UPDATE these rows, or ALTER TABLE ... MODIFY the columns without NOT NULL, and make another Checkpoint"
        )
    return found


def _what_a_restore_changes(folded: _Folded) -> list[str]:
    """Names what a restore loads changed. HerdDB does not check the bytes of a text: clients in other languages than Java may send any."""
    tables = list(zip(folded.timeline.tables, folded.written, strict=True))
    invalid_texts = _columns((table.name, written.invalid_text_in) for table, written in tables)
    unread = _columns((table.name, table.unread_columns) for table, _ in tables)
    found = []
    if unread:
        found.append(
            f"HerdDB returns NULL for whatever is stored in {unread}, and an UPDATE of the row loses it: the table had more than "
            f"{MOST_COLUMNS} columns, dropped ones included. The files have the values. A table that still has more can't be restored"
        )
    if invalid_texts:
        found.append(
            f"{invalid_texts} hold text that is not UTF-8: a restore replaces its bytes by U+FFFD, and fails if two keys become equal by "
            "that. Write these rows anew, and make another Checkpoint"
        )
    return found


def _columns(found: Iterable[tuple[str, frozenset[str]]]) -> str:
    """Some columns of tables, for people."""
    names = [f"{table}.{column}" for table, columns in found for column in sorted(columns)]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


def _compared(folded: _Folded, target: Target, tablespace_uuid: str) -> FollowerComparison | None:
    if target.follower is None:
        return None
    try:
        return compare(folded.compared, target.follower, tablespace_uuid)
    except FollowerDiffers as error:
        unproven = _unproven(folded)
        if unproven is None:
            raise
        # The same node may have another copy by now, which was made anew from the leader.
        raise InvariantViolated(
            f"{error}. The fold begins with the tables that the follower {unproven} had, and nothing else proves them: it is unknown which "
            "of the two is wrong, so nothing was committed. Request a full check of the tablespace, and copy its tables into another"
        ) from error


def _unproven(folded: _Folded) -> str | None:
    return None if folded.base is None else folded.base.unproven_follower


def _leader_compared(folded: _Folded, target: Target) -> str | None:
    """Returns the leader that has as many rows; None if it can't be compared. Raises LeaderDiffers."""
    match target.leader:
        case NotCounted(reason):
            _log.info("not compared with the leader", reason=reason)
            return None
        case LeaderCounts() if target.follower is None and folded.cut.lsn != target.read_to:
            return None  # the fold ends at the requested moment
        case LeaderCounts():
            require_rows_of_leader(folded.compared, target.leader)
            return target.leader.node
        case _:
            assert_never(target.leader)


def _require_there(files: Sequence[StoredPath]) -> None:
    """The comparison took its time; a driver on a node that was taken for lost may have outlived its Checkpoint. Raises
    CheckpointRetryable."""
    try:
        asked_of_each(files, file_size)
    except FileNotFoundError as error:
        raise CheckpointRetryable(f"a file of this run was removed before it was committed, so nothing was: {error}") from error


def _require_whole(spark: SparkSession, committed: CommittedManifest, folder: StoredPath) -> None:
    """Checks all bytes of a checkpoint that existed before: the log before it may be deleted after this run. Raises InvariantViolated."""
    manifest = committed.manifest
    if faults := faults_of_files(spark, manifest.files_in(folder), manifest.files):
        more = f", and so are {len(faults) - 1} more of its files" if faults[1:] else ""
        raise InvariantViolated(
            f"{faults[0]}: the checkpoint at {manifest.lsn.lsn}, which existed before this run, is damaged{more}. Nothing was removed: put "
            f"the file back from a copy, or move the manifest {committed.path} away and make a new Checkpoint at that LSN"
        )


def chosen_target(whole: WholeLog, request: TargetRequest, folder: StoredPath) -> Target:
    """As `choose_target`; a refusal for a dropped LSN names the recovery window."""
    try:
        return choose_target(whole, request)
    except LogDropped as error:
        window = recovery_window(whole, folder)
        raise LogDropped(str(error) if window is None else f"{error}. With the archive, {window}: take one of these") from error


def _read(spark: SparkSession, origin: Origin, blocks: Blocks) -> TaskLog:
    """Returns the decoded entries of the archive's and the log's partitions, one task each."""
    archived, live = origin.archived, origin.live

    def entries(number: int) -> Iterator[pa.RecordBatch]:
        return read_archived(archived[number]) if number < len(archived) else read_partition(live[number - len(archived)])

    def read(number: int) -> Iterator[pa.RecordBatch]:
        return blocks.of_batches(decode_batches(entries(number)))

    return TaskLog.of_blocks(map_numbers(spark, len(archived) + len(live), read, BLOCK_SCHEMA), blocks)


def _within(read: TaskLog, origin: Origin, read_to: Lsn) -> TaskLog:
    """Cuts off what whole archived segments hold outside of the needed range."""
    if not origin.archived:
        return read
    entries = read.up_to(read_to)
    return entries if origin.start is None else entries.since(origin.start.restart)


def _fold(read: TaskLog, origin: Origin, target: Target, where: tuple[ParquetFolder, str]) -> _Folded:
    cores = read.tasks.sparkSession.sparkContext.defaultParallelism
    # On disk, so that bookies are read once: the outline and the fold each scan the log.
    read.tasks.persist(StorageLevel.DISK_ONLY)
    try:
        outline = log_outline(read)
        extent = outline.extent
        if extent.entries != origin.entries:
            raise InvariantViolated(
                f"what is read of the log up to {target.read_to} has {origin.entries} entries, {extent.entries} were read"
            )
        _log.info("log read", entries=extent.entries, archived=sum(len(part.segments) for part in origin.archived))
        entries = _within(read, origin, target.read_to)
        cut = _cut(entries, target)
        if cut.lsn > target.read_to:
            raise InvariantViolated(f"the checkpoint is to be at {cut.lsn}, but the log was read up to {target.read_to} only")
        reads_beyond = cut.lsn != target.read_to
        prefix = entries.up_to(cut.lsn) if reads_beyond else entries
        timeline = log_timeline(prefix, origin.start, outline)
        _log.info("control entries walked", tables=len(timeline.tables), open_transactions=len(timeline.open_transactions))
        placed = origin.with_rows(place_changes(prefix, timeline), timeline)
        partitions = fold_partitions(cores, extent.entries + origin.base_rows)
        written = write_tables(last_changes(placed, partitions), timeline.tables, *where, timeline.altered)
        _log.info("tables written", rows=sum(table.digest.rows for table in written), files=sum(len(table.files) for table in written))
        highest = highest_auto_increments(placed, timeline, highest_keys_of(origin.base))
        compared = {table.name: item.digest for table, item in zip(timeline.tables, written, strict=True)}
        if reads_beyond and target.follower is not None:
            compared = _digests_at_the_end(entries, origin, partitions, outline)
        return _Folded(
            cut, log_extent(prefix) if reads_beyond or origin.archived else extent, timeline, written, highest, compared, origin.base
        )
    finally:
        read.tasks.unpersist()


def _cut(entries: TaskLog, target: Target) -> _Cut:
    """Finds the LSN of the requested moment."""
    match target.at:
        case Lsn():
            return _Cut(target.at)
        case Time(millis, text):
            found = cut_at_time(entries, millis)
        case _:
            assert_never(target.at)
    asked = f"spec.target.timestamp (--to) is {text}"
    if found.later is None:
        stamped = "" if found.last_millis is None else f", stamped {stamp(found.last_millis)}"
        raise CheckpointRetryable(
            f"{asked}: no later entry is confirmed yet; the log is known up to {target.read_to}{stamped}; wait for the "
            "next entry, or take an earlier time"
        )
    if found.lsn is None:
        begin = "" if found.first_millis is None else f" at {stamp(found.first_millis)}"
        raise CheckpointRefused(f"{asked}: the log begins after it, with {found.later}{begin}; take a later time")
    _log.info("cut", lsn=str(found.lsn), before=str(found.later), left_out=found.left_out)
    return _Cut(found.lsn, found.left_out)


def _digests_at_the_end(entries: TaskLog, origin: Origin, partitions: int, outline: LogOutline) -> dict[str, RowDigest]:
    timeline = log_timeline(entries, origin.start, outline)
    rows = last_changes(origin.with_rows(place_changes(entries, timeline), timeline), partitions)
    return dict(zip((table.name for table in timeline.tables), table_digests(rows, len(timeline.tables)), strict=True))


def _verification(comparison: FollowerComparison | None, folded: _Folded) -> Verification:
    reread = Verification(how="Reread", by="the checkpoint job")
    if comparison is None:
        return reread
    if comparison.follower == _unproven(folded):
        return Verification(how="Self", by=comparison.follower)
    at = Lsn(comparison.ledger_id, comparison.entry_id)
    if at == folded.cut.lsn:
        return Verification(how="Follower", by=comparison.follower)
    if _unproven(folded) is not None:
        return reread  # a wrong row of the chain's follower may have been overwritten before `at`
    return Verification(how="Beyond", by=comparison.follower, at=Position.of(at))


def _manifest(identity: Identity, run_id: str, folded: _Folded, verified: Verification, making: Making) -> Manifest:
    timeline = folded.timeline
    return Manifest(
        identity=identity,
        lsn=Position.of(folded.cut.lsn),
        lsn_timestamp_millis=folded.extent.last_timestamp_millis,
        latest_timestamp_millis=_latest(folded),
        run_id=run_id,
        entries_read=folded.extent.entries,
        tables=tuple(
            manifest_table(table, written, folded.highest_keys.get(table.uuid))
            for table, written in zip(timeline.tables, folded.written, strict=True)
        ),
        indexes=tuple(
            ManifestIndex(
                name=index.name,
                table=index.table,
                type=index.type,
                unique=index.unique,
                columns=tuple(name for name, _, _ in index.columns),
            )
            for index in timeline.indexes
        ),
        open_transactions=tuple(
            ManifestTransaction(transaction_id=transaction.transaction_id, begin=Position.of(transaction.begin))
            for transaction in timeline.open_transactions
        ),
        restart_lsn=Position.of(StartingPoint(folded.cut.lsn, timeline.state).restart),
        verified=verified,
        versions=_versions(),
        base=None if folded.base is None else folded.base.record,
        whole_log_at_millis=None if folded.base is None else folded.base.whole_log_at,
        begun_alone=_unproven(folded) if verified.how in ("Self", "Reread") else None,
        continuation=Continuation.of(timeline.state),
        made=making,
    )


def _encrypted(manifest: Manifest, key: FileKey | None) -> Manifest:
    """Adds the key of the files to the manifest."""
    return manifest if key is None else manifest.model_copy(update={"encryption": Encryption.with_file_key(key)})


def manifest_table(table: TableDefinition, written: WrittenTable, highest_key: int | None) -> ManifestTable:
    """A written table's part of the manifest; `highest_key`: the highest auto-increment key, None without one."""
    return ManifestTable(
        name=table.name,
        uuid=table.uuid,
        columns=tuple(
            ManifestColumn(name=column.name, type=column.type.name, serial_position=column.serial_position, nullable=column.nullable)
            for column in table.columns
        ),
        primary_key=table.primary_key,
        auto_increment=table.auto_increment,
        highest_auto_increment=highest_key,
        rows=written.digest.rows,
        digest=written.digest.hex,
        files=written.files,
        definition=encode_table(table).hex(),
    )


def _latest(folded: _Folded) -> int | None:
    """Upper bound of the times of all entries up to the LSN; None if unknown."""
    base, read = folded.base, folded.extent.latest_timestamp_millis
    before = None if base is None else base.latest_timestamp_millis
    if base is not None and before is None:
        return None  # the base or one before it comes from an earlier version, which did not record it
    if isinstance(base, FollowerBase) and read is not None:
        # This job's clock may be behind. The first entry read is where the follower was held, stamped by its leader.
        read += CLOCKS_DIFFER_MILLIS
    return max((millis for millis in (before, read) if millis is not None), default=None)


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in ("herdkeeper", "pyspark", "pyarrow"):
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "not installed as a package"
    return versions


def _summary(made: Made, request: CheckpointRequest, seconds: float) -> CheckpointSummary:
    committed, left_out = made.committed, made.left_out
    manifest = committed.manifest
    by = manifest.verified.words
    done = "existed already" if committed.existed else "written"
    encrypted = "" if manifest.encryption is None else f", encrypted with the key {manifest.encryption.key_name!r}"
    stamped = "" if manifest.lsn_timestamp_millis is None else stamp(manifest.lsn_timestamp_millis)
    trouble = f"{made.trouble}; " if made.trouble else ""
    passed_over = f", not from {made.passed_over[:_MOST_OF_A_REASON]}" if made.passed_over else ""
    skewed = f"; {left_out} entries behind it are stamped at or before the time, and left out" if left_out else ""
    there = f"{len(manifest.open_transactions)} transactions open there{skewed}"
    return CheckpointSummary(
        run_id=request.run_id,
        outcome=JobOutcome.ALREADY_DONE if committed.existed else JobOutcome.SUCCEEDED,
        message=f"{trouble}checkpoint at {manifest.lsn.lsn}{f' ({stamped})' if stamped else ''} {done}{encrypted}, "
        f"made from {_made_from(manifest)}{passed_over}; {by}; {there}",
        instance_id=manifest.identity.instance_id,
        tablespace=manifest.identity.tablespace,
        tablespace_uuid=manifest.identity.tablespace_uuid,
        ledger_id=manifest.lsn.ledger_id,
        entry_id=manifest.lsn.entry_id,
        lsn_timestamp=stamped,
        latest_timestamp="" if manifest.latest_timestamp_millis is None else stamp(manifest.latest_timestamp_millis),
        manifest="/".join(committed.path.parts[-4:]),
        entries_read=manifest.entries_read,
        base_ledger_id=None if manifest.base is None else manifest.base.lsn.ledger_id,
        base_entry_id=None if manifest.base is None else manifest.base.lsn.entry_id,
        base_follower="" if manifest.base is None or manifest.base.follower is None else manifest.base.follower,
        open_transactions=len(manifest.open_transactions),
        restart_ledger_id=manifest.restart_lsn.ledger_id,
        restart_entry_id=manifest.restart_lsn.entry_id,
        verified=by,
        restorable=made.restorable,
        comparison=made.comparison,
        rows=sum(table.rows for table in manifest.tables),
        bytes=sum(table.bytes for table in manifest.tables),
        encrypted_with="" if manifest.encryption is None else manifest.encryption.key_name,
        key_fingerprint="" if manifest.encryption is None else manifest.encryption.key_fingerprint,
        duration_seconds=round(seconds, 3),
        tables=tuple(TableSummary(table.name, table.rows, table.bytes, table.digest) for table in manifest.tables),
    )


def _made_from(manifest: Manifest) -> str:
    """The origin, for people."""
    if manifest.base is None:
        return "the whole log"
    begun = "the checkpoint" if manifest.base.follower is None else f"the tables of the follower {manifest.base.follower}"
    return f"{begun} at {manifest.base.lsn.lsn} and the log behind it"


def _with_report(summary: CheckpointSummary, published: Published) -> CheckpointSummary:
    if not published.failure:
        return replace(summary, report=published.path)
    return replace(summary, message=f"{summary.message}; the report was not written: {published.failure[:_MOST_OF_A_REASON]}")
