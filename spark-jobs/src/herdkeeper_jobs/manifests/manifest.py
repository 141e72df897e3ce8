"""The manifest lists a checkpoint's content. It is the commit: files that no manifest names belong to no checkpoint.

Its path is `<destination>/<INSTANCEID>/<tablespace uuid>/manifests/<ledger, 20 digits>-<entry, 20 digits>.json`. It is only created if
absent, so two runs for one LSN can't overwrite each other. In a folder that is a temporary file, fsync, link, and fsync of the folder; in
an object store `If-None-Match: *`. Ledger ids restart in a re-created cluster, so the path has the identity of the cluster and of the
tablespace. Keys are camelCase; `schemaVersion` is 1.

An encrypted checkpoint's manifest has `schemaVersion` 2. Its plain part (`Outline`) is what listing, expiry and removal need. Beside it is
the whole manifest, sealed by a Secret's key. Readers with the key trust the sealed part, and detect changes of the plain part.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, TypeVar, assert_never

from herdkeeper.protocol.verification import REREAD, alone
from herdkeeper_jobs.encryption.keys import Key, SealedBy, keyring
from herdkeeper_jobs.encryption.parquet_folder import FileKey, ParquetFolder
from herdkeeper_jobs.errors import InvariantViolated
from herdkeeper_jobs.manifests.continuation import Continuation, Part
from herdkeeper_jobs.storage.stored_path import AnyPath, StoredPath, below, create_if_absent, found_below, names_from
from herdkeeper_jobs.wal.lsn import Lsn
from herdkeeper_jobs.wal.moment import Time

SCHEMA_VERSION = 1
ENCRYPTED_VERSION = 2
"""The version of a manifest with sealed columns, definitions and digests."""
_MOST_SHOWN = 200
"""Characters of a part that differs."""
_VERSIONS = (SCHEMA_VERSION, ENCRYPTED_VERSION)
FOLDER = "[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
"""The form of a folder's name in an identity's path: one folder, and never the one above. BookKeeper and HerdDB write UUIDs."""
_NAME = re.compile(r"[0-9]{20}-[0-9]{20}\.json")


class Position(Part):
    ledger_id: int
    entry_id: int

    @staticmethod
    def of(lsn: Lsn) -> Position:
        return Position(ledger_id=lsn.ledger_id, entry_id=lsn.entry_id)

    @property
    def lsn(self) -> Lsn:
        return Lsn(self.ledger_id, self.entry_id)


class Identity(Part):
    """The identity of a log. It is checked before anything is read or written beside a manifest."""

    instance_id: str
    tablespace_uuid: str
    tablespace: str
    ledgers_root: str
    herd_root: str

    @property
    def path(self) -> str:
        """`<INSTANCEID>/<tablespace uuid>`: what no two logs share, and where their files are."""
        return f"{self.instance_id}/{self.tablespace_uuid}"


class ManifestColumn(Part):
    """A column; `type` is HerdDB's name of it (ColumnType)."""

    name: str
    type: str
    serial_position: int
    nullable: bool


class ManifestFile(Part):
    """A Parquet file; `path` is below the tablespace's folder, `hash` is XXH3-128 of its bytes."""

    path: str
    rows: int
    size: int
    hash: str
    older_forms: ManifestFile | None = None
    """Of an altered table: rows that HerdDB stored in an older form, as row number and stored value."""

    def with_older_forms(self) -> tuple[ManifestFile, ...]:
        """This file, and its file of older forms."""
        return (self,) if self.older_forms is None else (self, self.older_forms)


class OutlineTable(Part):
    """The plain part of a table."""

    name: str
    uuid: str
    rows: int
    files: tuple[ManifestFile, ...]

    @property
    def bytes(self) -> int:
        """Size of all files."""
        return sum(part.size for file in self.files for part in file.with_older_forms())


class ManifestTable(OutlineTable):
    """A table. `digest` is the order-free digest of the stored rows; `definition` is HerdDB's own, in hexadecimal."""

    columns: tuple[ManifestColumn, ...]
    primary_key: tuple[str, ...]
    auto_increment: bool
    highest_auto_increment: int | None
    digest: str
    definition: str


class ManifestIndex(Part):
    name: str
    table: str
    type: str
    unique: bool
    columns: tuple[str, ...]


class ManifestTransaction(Part):
    """A transaction that was open at the LSN; its changes are not in the checkpoint."""

    transaction_id: int
    begin: Position


class Verification(Part):
    """How, and by whom, the checkpoint was verified. `Reread`: by the job itself. `Follower`: also by a follower's digest at the LSN.
    `Self`: by the follower whose tables its chain starts from, which can't show errors in these. `Beyond`: by a follower's digest at the
    later LSN `at`, to which the same entries were folded on."""

    how: str
    by: str
    at: Position | None = None
    leader: str | None = None
    """host:port of the leader that had as many rows of each table; None if not compared."""

    @property
    def words(self) -> str:
        """Text for people."""
        return self._compared if self.leader is None else f"{self._compared}; rows of each table counted at the leader {self.leader}"

    @property
    def _compared(self) -> str:
        match self.how:
            case "Follower":
                return f"compared with follower {self.by}"
            case "Self":
                return alone(self.by)
            case "Beyond" if self.at is not None:
                return f"the same log, folded on to {self.at.lsn}, compared there with follower {self.by}"
            case "Reread":
                return REREAD
            case _:
                return f"{self.how}, by {self.by}"


class ManifestBase(Part):
    """The base of this checkpoint: an earlier one, or a follower's tables. A record only: this one's files have all rows."""

    manifest: str
    """The base's file name in the same folder; empty for a follower's tables."""
    lsn: Position
    run_id: str
    follower: str | None = None
    """host:port of the follower whose tables these were, at the LSN; None for a checkpoint."""


class Making(Part):
    """When a checkpoint was committed, by the job's clock, and how long the job took until then."""

    at_millis: int
    seconds: float


class Encryption(SealedBy):
    """A checkpoint's encryption. `file_key` is the key of its files, `sealed` the whole manifest; both are tokens of the named key.
    `sealed` is empty inside of itself."""

    file_key: str
    sealed: str = ""

    @staticmethod
    def with_file_key(key: FileKey) -> Encryption:
        """For files with this key."""
        return Encryption(key_name=key.sealed_by.key_name, key_fingerprint=key.sealed_by.key_fingerprint, file_key=key.token)

    def with_sealed(self, sealed: str) -> Encryption:
        """A copy with another sealed part."""
        return self.model_copy(update={"sealed": sealed})


def files_in(folder: StoredPath, encryption: Encryption | None) -> ParquetFolder:
    """The folder of a manifest's files, with their encryption."""
    if encryption is None:
        return ParquetFolder(folder)
    sealed_by = SealedBy(key_name=encryption.key_name, key_fingerprint=encryption.key_fingerprint)
    return ParquetFolder(folder, FileKey(sealed_by, encryption.file_key))


class Outline(Part):
    """The plain part of a manifest, also of an encrypted one: where its files are, how much they hold, and of which moment.

    Never use it to hand out data: without the key a change can't be detected.
    """

    schema_version: int = SCHEMA_VERSION
    identity: Identity
    lsn: Position
    lsn_timestamp_millis: int | None
    """Time of the last entry by its leader's clock, taken before the append. A run that continues from here compares it with the log's
    entry there: None is compared with nothing."""
    run_id: str
    entries_read: int
    """Entries of the log, from the base's `restart_lsn` on if there is a base."""
    tables: tuple[OutlineTable, ...]
    open_transactions: tuple[ManifestTransaction, ...]
    restart_lsn: Position
    """Where a later run must read again: the oldest open BEGIN, else the LSN itself."""
    verified: Verification
    versions: dict[str, str]
    base: ManifestBase | None = None
    """None for a checkpoint from the whole log."""
    latest_timestamp_millis: int | None = None
    """The latest time of all entries up to the LSN: leaders' clocks differ. An upper bound if a chain starts from a follower's tables
    (checkpoint/follower_base.py). None if an earlier version wrote it or its base."""
    made: Making | None = None
    """For people only. None if an earlier version wrote it."""
    encryption: Encryption | None = None
    """None for a plain checkpoint."""
    whole_log_at_millis: int | None = None
    """Of a checkpoint with a base: the base's `whole_log_at`."""
    begun_alone: str | None = None
    """Of a checkpoint with a base: host:port of the follower with whose tables its chain begins, as long as no other follower had the same
    rows."""

    @property
    def unproven_follower(self) -> str | None:
        """The follower that proves nothing here, since its own rows come back to it: see `begun_alone`."""
        return self.verified.by if self.verified.how == "Self" else self.begun_alone

    @property
    def whole_log_at(self) -> int | None:
        """When the log was read from its beginning for this checkpoint's chain, by the job's clock. None if an earlier version made a part
        of the chain, or if it starts from a follower's tables."""
        if self.base is not None:
            return self.whole_log_at_millis
        return None if self.made is None else self.made.at_millis

    def holds_nothing_after(self, at: Lsn | Time) -> bool:
        """Whether it holds nothing later than a moment: a log is cut before its first later entry."""
        match at:
            case Lsn():
                return self.lsn.lsn <= at
            case Time(millis, _):
                return self.latest_timestamp_millis is not None and self.latest_timestamp_millis <= millis
            case _:
                assert_never(at)

    @property
    def files(self) -> tuple[ManifestFile, ...]:
        """All files. Check where a path leads before deleting."""
        return tuple(part for table in self.tables for file in table.files for part in file.with_older_forms())


class Manifest(Outline):
    """A checkpoint: exactly the commits up to `lsn`."""

    tables: tuple[ManifestTable, ...]
    indexes: tuple[ManifestIndex, ...]
    continuation: Continuation | None = None
    """What a later checkpoint needs to continue from this one; None from an earlier version."""

    def logical_content(self) -> dict[str, tuple[object, ...]]:
        """What any two checkpoints at one LSN must share, by what it is: the log determines it.

        Each run has its own files and base. The highest keys may differ, too: a base may not know those of rows that were deleted before
        the table had AUTO_INCREMENT.
        """
        tables = {f"table {table.name!r}": (table.uuid, table.rows, table.digest) for table in self.tables}
        definitions = {f"the definition of table {table.name!r}": (table.definition,) for table in self.tables}
        indexes = {"the list of indexes": tuple(sorted(self.indexes, key=lambda index: (index.table, index.name)))}
        transactions = {
            "the list of open transactions": (self.restart_lsn, *sorted(self.open_transactions, key=lambda each: each.begin.lsn))
        }
        return {**tables, **definitions, **indexes, **transactions}

    def files_in(self, folder: StoredPath) -> ParquetFolder:
        """Its files, in the tablespace's folder."""
        return files_in(folder, self.encryption)


AnyOutline = TypeVar("AnyOutline", bound=Outline)


@dataclass(frozen=True, slots=True)
class CommittedManifest:
    """The manifest of an LSN; `existed` if another run committed it before."""

    manifest: Manifest
    path: StoredPath
    existed: bool


def tablespace_folder(destination: AnyPath, identity: Identity) -> AnyPath:
    """The folder of one tablespace of one cluster."""
    return below(destination, identity.path)


def manifest_path(folder: AnyPath, lsn: Lsn) -> AnyPath:
    """The manifest of an LSN; names sort in log order."""
    return below(folder, "manifests", f"{lsn.ledger_id:020d}-{lsn.entry_id:020d}.json")


def manifests(destination: AnyPath, tablespace_uuid: str = "*") -> list[AnyPath]:
    """Lists the manifests below a destination, optionally of one tablespace; each tablespace's are in log order."""
    return [path for path in found_below(destination, f"*/{tablespace_uuid}/manifests/[0-9]*.json") if is_lsn_name(path.name)]


def manifests_in(folder: AnyPath) -> list[AnyPath]:
    """Lists the manifests in a tablespace's folder, in log order. Raises OSError: `Path.glob` would skip what it may not read."""
    place = below(folder, "manifests")
    return [below(place, name) for name in names_from(place) if is_lsn_name(name)]


def is_lsn_name(name: str) -> bool:
    """Whether a manifest, of a checkpoint or of an archive's segment, has this file name. A copy that a file manager makes beside one
    (`… copy.json`) has another name, and commits nothing."""
    return _NAME.fullmatch(name) is not None


def lsn_of_name(path: StoredPath) -> Lsn:
    """The LSN in the name of a manifest. Raises ValueError for another name."""
    ledger, entry = path.stem.split("-")
    return Lsn(int(ledger), int(entry))


def report_path(folder: AnyPath) -> AnyPath:
    """The report on all checkpoints of a tablespace's folder."""
    return below(folder, "report.html")


def read_manifest(path: StoredPath) -> Manifest:
    """Reads a whole manifest; an encrypted one with this process's keys.

    Raises:
        InvariantViolated: the file is no manifest of a known version, or was changed after sealing.
        KeyUnusable: the key is missing.
    """
    document = _document(path)
    if document["schemaVersion"] == SCHEMA_VERSION:
        return _parsed(Manifest, document, path)
    outline = _parsed(Outline, document, path)
    encryption = outline.encryption
    if encryption is None or not encryption.sealed:
        raise InvariantViolated(f"{path} is not a manifest: schemaVersion {ENCRYPTED_VERSION} without what was sealed")
    sealed = json.loads(keyring().open(encryption.sealed, encryption, str(path)))
    in_clear = outline.model_copy(update={"encryption": encryption.with_sealed("")})
    if _parsed(Outline, sealed, path) != in_clear:
        raise InvariantViolated(f"{path} was changed: its plain part differs from what the key {encryption.key_name!r} sealed")
    return _parsed(Manifest, sealed, path)


def read_outline(path: StoredPath) -> Outline:
    """Reads the plain part, without a key. Raises InvariantViolated if it is no manifest of a known version."""
    return _parsed(Outline, _document(path), path)


def _document(path: StoredPath) -> dict[str, Any]:
    try:
        document: Any = json.loads(path.read_bytes())
        version = document.get("schemaVersion")
    except (ValueError, AttributeError, RecursionError) as error:
        raise InvariantViolated(f"{path} is not a manifest: {error}") from error
    if version not in _VERSIONS:
        raise InvariantViolated(f"{path}: schemaVersion {version}, this program knows {' and '.join(map(str, _VERSIONS))}")
    return dict(document)


def _parsed(kind: type[AnyOutline], document: dict[str, Any], path: StoredPath) -> AnyOutline:
    try:
        return kind.model_validate(document)
    except ValueError as error:
        raise InvariantViolated(f"{path} is not a manifest: {error}") from error


def _written(manifest: Manifest, key: Key | None) -> bytes:
    """The bytes of a manifest's file. Raises ValueError for an encrypted checkpoint without the key."""
    if manifest.encryption is None:
        return manifest.model_dump_json(by_alias=True, indent=1).encode()
    if key is None or key.fingerprint != manifest.encryption.key_fingerprint:
        raise ValueError("the manifest of an encrypted checkpoint is sealed by the key that sealed the key of its files")
    whole = manifest.model_copy(update={"schema_version": ENCRYPTED_VERSION})
    sealed = key.seal(whole.model_dump_json(by_alias=True).encode())
    in_clear = Outline.model_validate(whole.model_dump())
    encryption = manifest.encryption.with_sealed(sealed)
    return in_clear.model_copy(update={"encryption": encryption}).model_dump_json(by_alias=True, indent=1).encode()


def commit_manifest(manifest: Manifest, folder: StoredPath, key: Key | None = None) -> CommittedManifest:
    """Commits the checkpoint, unless one exists for its LSN. `key` seals an encrypted manifest.

    Raises:
        InvariantViolated: the existing one belongs to another log, or its content differs: one of the two is wrong.
        KeyUnusable: the existing one is encrypted, and its key is missing.
    """
    path = manifest_path(folder, manifest.lsn.lsn)
    if create_if_absent(path, _written(manifest, key)):
        return CommittedManifest(manifest, path, existed=False)
    existing = read_manifest(path)
    _require_equal(existing, manifest, path)
    return CommittedManifest(existing, path, existed=True)


def _require_equal(existing: Manifest, manifest: Manifest, path: StoredPath) -> None:
    if existing.identity != manifest.identity:
        raise InvariantViolated(f"{path} belongs to {existing.identity}, this run read {manifest.identity}")
    before, now = existing.logical_content(), manifest.logical_content()
    for part in (*now, *before):
        if before.get(part) != now.get(part):
            there, here = (str(content.get(part))[:_MOST_SHOWN] for content in (before, now))
            raise InvariantViolated(f"{path} exists with another content: {part} is {there} there and {here} in this run")
