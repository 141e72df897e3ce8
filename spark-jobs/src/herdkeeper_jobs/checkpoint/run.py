"""The Checkpoint job in order: target -> origin (a base?) -> log -> cut -> timeline -> fold -> files -> verify -> manifest -> report.

A failed report never fails a checkpoint. Without an origin the job takes a follower's tables, if one is named, and chooses the target, now,
behind them. If the leader or a follower contradicts a checkpoint made from a base, it is made again from the whole log.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import structlog
from pyspark.sql import SparkSession

from herdkeeper.protocol.job_summary import CheckpointSummary
from herdkeeper_jobs.archive.parts import UNLIMITED, ReadBudget, WholeLog
from herdkeeper_jobs.archive.window import recovery_window
from herdkeeper_jobs.bookkeeper.metadata import LedgerCatalog
from herdkeeper_jobs.checkpoint.attempts import expire_attempts, noted
from herdkeeper_jobs.checkpoint.base import Base, CheckpointBase, described
from herdkeeper_jobs.checkpoint.data_files import sync_folders, verify_files
from herdkeeper_jobs.checkpoint.file_check import faults_of_files
from herdkeeper_jobs.checkpoint.folded_log import fold_log
from herdkeeper_jobs.checkpoint.folded_manifest import manifest_of
from herdkeeper_jobs.checkpoint.follower_base import CLOCKS_DIFFER_MILLIS, FollowerSource, load_tables, take_tables
from herdkeeper_jobs.checkpoint.history_files import publish_history
from herdkeeper_jobs.checkpoint.node_http import follower_tables
from herdkeeper_jobs.checkpoint.origin import Mode, Origin, Search, choose_origin, origin_from, whole_live_log
from herdkeeper_jobs.checkpoint.restorability import what_a_restore_changes, why_unrestorable
from herdkeeper_jobs.checkpoint.summary import Made, summary_of
from herdkeeper_jobs.checkpoint.target import Target, TargetRequest, choose_target
from herdkeeper_jobs.checkpoint.verification import prove
from herdkeeper_jobs.encryption.keys import Key
from herdkeeper_jobs.encryption.parquet_folder import FileKey, ParquetFolder
from herdkeeper_jobs.errors import (
    BaseLockedAway,
    CheckpointRetryable,
    FollowerDiffers,
    InvariantViolated,
    LeaderDiffers,
    LogDropped,
    NothingToBeginWith,
)
from herdkeeper_jobs.log_source import open_log
from herdkeeper_jobs.manifests.manifest import (
    CommittedManifest,
    Encryption,
    Making,
    Manifest,
    commit_manifest,
    lsn_of_name,
    manifests_in,
    read_outline,
    tablespace_folder,
)
from herdkeeper_jobs.storage.stored_path import StoredPath, asked_of_each, file_size, names_below
from herdkeeper_jobs.wal.lsn import Lsn

_log = structlog.get_logger()
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
    since: float = field(default_factory=time.monotonic)
    """The start of the work, by `time.monotonic`."""


def run_checkpoint(start: Callable[[], SparkSession], catalog: LedgerCatalog, request: CheckpointRequest) -> CheckpointSummary:
    """Makes one checkpoint and returns its summary. `start` gives the session, once there is work for it.

    Raises:
        CheckpointRefused, CheckpointRetryable, InvariantViolated: see `errors`. No manifest was written then.
    """
    log = open_log(catalog, request.herd_root, request.tablespace)
    identity = log.identity
    whole = WholeLog(log, tablespace_folder(request.archive or request.destination, identity), identity)
    folder = tablespace_folder(request.destination, identity)
    if request.target.at is None and (committed := _committed_before(folder, request.run_id)) is not None:
        # Now would be a later checkpoint, and nobody would ever remove the first one.
        request = replace(request, target=replace(request.target, at=committed))
    target = chosen_target(whole, request.target, folder)
    spark = functools.cache(start)
    try:
        made = make_checkpoint(spark, whole, target, request)
    except BaseLockedAway:
        raise  # its key makes it usable again; a follower's tables would hide the missing key
    except NothingToBeginWith as error:
        made = _make_from_follower(spark, whole, request, error)
    return summary_of(made, request.run_id, time.monotonic() - request.since)


def _committed_before(folder: StoredPath, run_id: str) -> Lsn | None:
    """The LSN of the checkpoint that an attempt of this run committed before it was killed; None without one. Raises OSError."""
    if next(names_below(folder / "data" / run_id), None) is None:
        return None
    for path in reversed(manifests_in(folder)):
        with suppress(InvariantViolated, FileNotFoundError):
            if read_outline(path).run_id == run_id:
                return lsn_of_name(path)
    return None


def make_checkpoint(start: Callable[[], SparkSession], whole: WholeLog, target: Target, request: CheckpointRequest) -> Made:
    """Makes the checkpoint of a chosen moment. Raises as `run_checkpoint`."""
    spark = start()
    folder = tablespace_folder(request.destination, whole.identity)
    now = int(time.time() * 1000)
    search = Search(folder, whole.identity, request.mode, target.at, now - request.full_every_seconds * 1000, now + CLOCKS_DIFFER_MILLIS)
    origin = choose_origin(spark, whole, search, target.read_to, request.budget)
    try:
        return _make(spark, whole, target, request, origin)
    except (FollowerDiffers, LeaderDiffers) as error:
        # The base may be wrong: its rows are proven unchanged, not correct.
        base = origin.base
        whole_log = whole_live_log(spark, whole, target.read_to, request.budget) if isinstance(base, CheckpointBase) else None
        if base is None or whole_log is None:
            raise
        _log.warning("made again from the whole log", base=base.record.manifest, reason=str(error))
        made = _make(spark, whole, target, request, whole_log)
        return replace(made, trouble="; ".join(filter(None, (_wrong_base(base), made.trouble))))


def _wrong_base(base: Base) -> str:
    """The whole log agrees with the leader or follower that contradicted the base."""
    return (
        f"the checkpoint {base.record.manifest.removesuffix('.json')} has wrong rows. Its base, and checkpoints that were made from it, "
        "may have them, too: restore none of these, and delete them"
    )


def _make_from_follower(start: Callable[[], SparkSession], whole: WholeLog, request: CheckpointRequest, cause: NothingToBeginWith) -> Made:
    """Makes a checkpoint from a follower's tables, the last resort. It is compared with another follower, or else with the same one, which
    an earlier comparison found equal. The latter proves the transfer and the fold behind it, not the rows themselves: the manifest says
    `Self`."""
    source = request.follower
    if source is None or request.target.at is not None:
        raise NothingToBeginWith(f"{_why_no_follower(source)}. {cause}", cause.missing, cause.no_base) from cause
    _log.info("no origin but a follower", node=source.address, reason=str(cause))
    parts = follower_tables(source.address, whole.name, source.token, _REST_SECONDS)
    base = take_tables(parts, source.address, whole.identity.tablespace_uuid, _written_to(whole, request), request.run_id)
    try:
        behind = replace(request.target, verify_against=source.witness or source.address, token=source.token, not_before=base.start.at)
        target = choose_target(whole, behind)
        spark = start()
        rows = load_tables(spark, base)
    except BaseException:
        base.release()
        raise
    try:
        origin = origin_from(spark, whole, rows, target.read_to, request.budget)
    except BaseException:
        rows.release()
        raise
    return _make(spark, whole, target, request, origin)


def _why_no_follower(source: FollowerSource | None) -> str:
    if source is None:
        return (
            "No follower's tables can be the base either: no other follower, and no earlier Checkpoint, proves one right (--base-follower)."
            " Raise spec.replicas of the Tablespace to 3"
        )
    return "A follower's tables can be the base only for the current state: remove spec.target (--to)"


def _written_to(whole: WholeLog, request: CheckpointRequest) -> ParquetFolder:
    """The folder that a run writes to, with a new file key."""
    return ParquetFolder(tablespace_folder(request.destination, whole.identity), None if request.key is None else FileKey.new(request.key))


def _make(spark: SparkSession, whole: WholeLog, target: Target, request: CheckpointRequest, origin: Origin) -> Made:
    identity = whole.identity
    written_to = _written_to(whole, request)
    folder = written_to.place
    _log.info("target", at=str(target.at), read_to=str(target.read_to), follower="" if target.follower is None else target.follower.node)
    try:
        with noted(folder, request.run_id) as attempt:
            folded = fold_log(spark, origin, target, written_to, attempt)
    finally:
        origin.release()
    files = [folder / part.path for table in folded.written for file in table.files for part in file.with_older_forms()]
    sync_folders(folder, request.run_id, request.destination)
    verify_files(spark, zip(folded.timeline.tables, folded.written, strict=True), written_to)
    try:
        proof = prove(folded, target, identity.tablespace_uuid)
    except InvariantViolated:
        attempt.discard(files)
        raise
    making = Making(at_millis=time.time_ns() // 1_000_000, seconds=round(time.monotonic() - request.since, 3))
    manifest = manifest_of(identity, request.run_id, folded, proof.verified, making)
    _require_there(files)
    committed = commit_manifest(_encrypted(manifest, written_to.key), folder, request.key)
    if committed.existed:
        _require_whole(spark, committed, folder)
        named = {folder / file.path for file in committed.manifest.files}
        attempt.discard([path for path in files if path not in named])
    else:
        attempt.end()
    expire_attempts(folder, committed)
    published = publish_history(whole, folder, time.time_ns() // 1_000_000)
    passed_over = described(origin.passed_over, shown=1) if origin.passed_over else ""
    unrestorable = why_unrestorable(folded)
    trouble = "; ".join((*unrestorable, *what_a_restore_changes(folded)))
    return Made(committed, proof.comparison, folded.cut.left_out, published, trouble, passed_over, restorable=not unrestorable)


def _encrypted(manifest: Manifest, key: FileKey | None) -> Manifest:
    """Adds the key of the files to the manifest."""
    return manifest if key is None else manifest.model_copy(update={"encryption": Encryption.with_file_key(key)})


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
