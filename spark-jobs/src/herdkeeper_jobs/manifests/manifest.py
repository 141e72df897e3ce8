"""The manifest: what a checkpoint consists of. It is the commit: files that no manifest names are not part of any checkpoint.

`<destination>/<INSTANCEID>/<tablespace uuid>/manifests/<ledger, 20 digits>-<entry, 20 digits>.json`, created only if absent (in a folder
temporary file, fsync, link, fsync of the folder; in an object store `If-None-Match: *`), so that two runs for one LSN can't overwrite each
other. Ledger ids restart in a re-created
cluster, so the path holds the identity of both the cluster and the tablespace. Keys are camelCase; `schemaVersion` is 1.

That of an encrypted checkpoint has `schemaVersion` 2: it says in the clear what is needed to list, to expire and to remove checkpoints (an
`Outline`), and has all of itself sealed by a key of a Secret beside that. Whoever has the key believes what was sealed, and finds out
whether what is in the clear was changed since.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from herdkeeper.protocol.verification import ALONE, REREAD
from herdkeeper_jobs.encryption.keys import Key, SealedBy, keyring
from herdkeeper_jobs.encryption.parquet_folder import FileKey, ParquetFolder
from herdkeeper_jobs.errors import InvariantViolated
from herdkeeper_jobs.manifests.continuation import Continuation
from herdkeeper_jobs.storage.stored_path import AnyPath, StoredPath, below, create_if_absent, found_below
from herdkeeper_jobs.wal.lsn import Lsn

SCHEMA_VERSION = 1
ENCRYPTED_VERSION = 2
"""Of a manifest whose columns, definitions and digests are sealed."""
_VERSIONS = (SCHEMA_VERSION, ENCRYPTED_VERSION)


class _Part(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True, extra="ignore")


class Position(_Part):
    """An LSN."""

    ledger_id: int
    entry_id: int

    @staticmethod
    def of(lsn: Lsn) -> Position:
        """From the log's own type."""
        return Position(ledger_id=lsn.ledger_id, entry_id=lsn.entry_id)

    @property
    def lsn(self) -> Lsn:
        """As the log's own type."""
        return Lsn(self.ledger_id, self.entry_id)


class Identity(_Part):
    """Whose log it is. Checked before anything is read from or written beside a manifest."""

    instance_id: str
    tablespace_uuid: str
    tablespace: str
    ledgers_root: str
    herd_root: str


class ManifestColumn(_Part):
    """A column; `type` is HerdDB's name of it (ColumnType)."""

    name: str
    type: str
    serial_position: int
    nullable: bool


class ManifestFile(_Part):
    """A Parquet file; `path` below the tablespace's folder, `hash` XXH3-128 of its bytes."""

    path: str
    rows: int
    size: int
    hash: str
    older_forms: ManifestFile | None = None
    """Of an altered table: the rows that HerdDB stored in an older form, each as its number in the file and its stored value."""

    def with_older_forms(self) -> tuple[ManifestFile, ...]:
        """Itself, and the file of older forms beside it."""
        return (self,) if self.older_forms is None else (self, self.older_forms)


class OutlineTable(_Part):
    """What is said of a table in the clear."""

    name: str
    uuid: str
    rows: int
    files: tuple[ManifestFile, ...]

    @property
    def bytes(self) -> int:
        """Size of all files."""
        return sum(part.size for file in self.files for part in file.with_older_forms())


class ManifestTable(OutlineTable):
    """A table. `digest` is the order-free digest of the stored rows; `definition` HerdDB's own, in hexadecimal."""

    columns: tuple[ManifestColumn, ...]
    primary_key: tuple[str, ...]
    auto_increment: bool
    highest_auto_increment: int | None
    digest: str
    definition: str


class ManifestIndex(_Part):
    """An index."""

    name: str
    table: str
    type: str
    unique: bool
    columns: tuple[str, ...]


class ManifestTransaction(_Part):
    """A transaction that was open at the LSN; its changes are not in the checkpoint."""

    transaction_id: int
    begin: Position


class Verification(_Part):
    """How the checkpoint was verified, and by whom: `Reread` by the job itself, `Follower` by a follower's digest at the LSN as well,
    `Self` by that of the very follower whose tables it begins with, which can't tell what was wrong in them already, `Beyond` by a
    follower's digest at the later LSN `at`, to which the same entries were folded on."""

    how: str
    by: str
    at: Position | None = None
    leader: str | None = None
    """host:port of the leader that had as many rows of each table; None where that could not be judged."""

    @property
    def words(self) -> str:
        """For people."""
        return self._compared if self.leader is None else f"{self._compared}; rows of each table counted at the leader {self.leader}"

    @property
    def _compared(self) -> str:
        match self.how:
            case "Follower":
                return f"compared with follower {self.by}"
            case "Self":
                return f"compared with the follower {self.by} {ALONE}"
            case "Beyond" if self.at is not None:
                return f"the same log, folded on to {self.at.lsn}, compared there with follower {self.by}"
            case "Reread":
                return REREAD
            case _:
                return f"{self.how}, by {self.by}"


class ManifestBase(_Part):
    """The checkpoint, or the tables of a follower, that this one was made from, with the log behind it. A record only: all rows are in this
    one's own files."""

    manifest: str
    """Its file's name beside this one's; empty for a follower's tables."""
    lsn: Position
    run_id: str
    follower: str | None = None
    """host:port of the follower whose tables it was, at the LSN; None for a checkpoint."""


class Making(_Part):
    """When a checkpoint was committed, by the job's clock, and how long the job had taken by then."""

    at_millis: int
    seconds: float


class Encryption(SealedBy):
    """How a checkpoint is encrypted. `file_key` is the key of its files and `sealed` the whole manifest, each a token of the key that is
    named; `sealed` is empty inside of itself."""

    file_key: str
    sealed: str = ""

    @staticmethod
    def with_file_key(key: FileKey) -> Encryption:
        """Of files that have it."""
        return Encryption(key_name=key.sealed_by.key_name, key_fingerprint=key.sealed_by.key_fingerprint, file_key=key.token)

    def with_sealed(self, sealed: str) -> Encryption:
        """The same with, or without, what was sealed."""
        return self.model_copy(update={"sealed": sealed})


def files_in(folder: StoredPath, encryption: Encryption | None) -> ParquetFolder:
    """The files in a tablespace's folder that a manifest names which says this."""
    if encryption is None:
        return ParquetFolder(folder)
    sealed_by = SealedBy(key_name=encryption.key_name, key_fingerprint=encryption.key_fingerprint)
    return ParquetFolder(folder, FileKey(sealed_by, encryption.file_key))


class Outline(_Part):
    """What a manifest says in the clear, also of an encrypted checkpoint: where its files are, how much they hold, and of which moment.

    Nothing that is made out of it is given to anybody as data: without the key it can't be told whether it was changed.
    """

    schema_version: int = SCHEMA_VERSION
    identity: Identity
    lsn: Position
    lsn_timestamp_millis: int | None
    """Wall time of the last entry, by its leader's clock, taken before it was appended."""
    run_id: str
    entries_read: int
    """Of the log, from `restart_lsn` of the base on if there is one."""
    tables: tuple[OutlineTable, ...]
    open_transactions: tuple[ManifestTransaction, ...]
    restart_lsn: Position
    """From where a later run must read again: the oldest BEGIN that was open, else the LSN itself."""
    verified: Verification
    versions: dict[str, str]
    base: ManifestBase | None = None
    """None for a checkpoint that was made from the whole log."""
    latest_timestamp_millis: int | None = None
    """The latest wall time of all entries up to the LSN: clocks differ between leaders. Where a chain begins with a follower's tables, a
    bound that none of them is behind (checkpoint/follower_base.py). None where an earlier version wrote it, or what it was made from."""
    made: Making | None = None
    """None where an earlier version wrote it. For people: nothing is decided by it."""
    encryption: Encryption | None = None
    """None for a checkpoint in the clear."""
    whole_log_at_millis: int | None = None
    """Of one that has a base: `whole_log_at` of that one."""

    @property
    def whole_log_at(self) -> int | None:
        """When the log was read from its beginning, by the job's clock, for this checkpoint or for the one that its chain of bases begins
        with; None where an earlier version made one of them, or the chain begins with a follower's tables."""
        if self.base is not None:
            return self.whole_log_at_millis
        return None if self.made is None else self.made.at_millis

    @property
    def file_paths(self) -> tuple[str, ...]:
        """All files, below the tablespace's folder, as they are written here: what deletes one looks first where it leads."""
        return tuple(part.path for table in self.tables for file in table.files for part in file.with_older_forms())


class Manifest(Outline):
    """A checkpoint: exactly the commits up to `lsn`."""

    tables: tuple[ManifestTable, ...]
    indexes: tuple[ManifestIndex, ...]
    continuation: Continuation | None = None
    """What a later checkpoint needs to go on from this one; an earlier version wrote none."""

    def logical_content(self) -> dict[str, tuple[str, int, str]]:
        """What must be equal in any two checkpoints at one LSN: per table its uuid, rows and digest."""
        return {table.name: (table.uuid, table.rows, table.digest) for table in self.tables}

    def files_in(self, folder: StoredPath) -> ParquetFolder:
        """Its files, in the tablespace's folder."""
        return files_in(folder, self.encryption)


AnyOutline = TypeVar("AnyOutline", bound=Outline)


@dataclass(frozen=True, slots=True)
class CommittedManifest:
    """The manifest that is now the one for its LSN; `existed` when another run had committed it before."""

    manifest: Manifest
    path: StoredPath
    existed: bool


def tablespace_folder(destination: AnyPath, identity: Identity) -> AnyPath:
    """Where everything of one tablespace of one cluster lies."""
    return below(destination, identity.instance_id, identity.tablespace_uuid)


def manifest_path(folder: AnyPath, lsn: Lsn) -> AnyPath:
    """The manifest of an LSN; names sort in log order."""
    return below(folder, "manifests", f"{lsn.ledger_id:020d}-{lsn.entry_id:020d}.json")


def manifests(destination: AnyPath, instance_id: str = "*", tablespace_uuid: str = "*") -> list[AnyPath]:
    """Manifests below a destination, of one cluster or tablespace when given, each tablespace's in log order."""
    return found_below(destination, f"{instance_id}/{tablespace_uuid}/manifests/[0-9]*.json")


def lsn_of_name(path: StoredPath) -> Lsn:
    """The LSN by which a manifest is named, that of a checkpoint or of a segment of the archive. ValueError for another name."""
    ledger, entry = path.stem.split("-")
    return Lsn(int(ledger), int(entry))


def report_path(folder: AnyPath) -> AnyPath:
    """The report for people on all checkpoints of a tablespace's folder."""
    return below(folder, "report.html")


def read_manifest(path: StoredPath) -> Manifest:
    """A manifest, all of it, with the keys of this process if it is encrypted.

    Raises:
        InvariantViolated: the file is not a manifest of a version that this program knows, or it was changed since it was sealed.
        KeyUnusable: the key is not here.
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
    """What a manifest says in the clear: needs no key. Raises InvariantViolated for a file that is none of a version that is known."""
    return _parsed(Outline, _document(path), path)


def _document(path: StoredPath) -> dict[str, Any]:
    try:
        document: Any = json.loads(path.read_bytes())
        version = document.get("schemaVersion")
    except (ValueError, AttributeError) as error:
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
    """Makes the checkpoint exist, unless one for its LSN exists already. `key` seals the manifest of an encrypted one.

    Raises:
        InvariantViolated: the existing one belongs to another log, or has another content: one of the two is wrong.
        KeyUnusable: the existing one is encrypted, and its key is not here.
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
    for table in sorted(before.keys() | now.keys()):
        if before.get(table) != now.get(table):
            raise InvariantViolated(
                f"{path} exists with another content: table {table!r} is {before.get(table)} there and {now.get(table)} in this run"
            )
