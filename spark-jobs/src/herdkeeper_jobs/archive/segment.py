"""A segment of an archive: consecutive entries of a log in one file, and the manifest that commits it.

The manifest `<destination>/<INSTANCEID>/<tablespace uuid>/log/segments/<ledger>-<entry>.json` (the first LSN, 20 digits each) is only
created if absent. Its file is below `log/data/<run>/`, and fsynced and read back before. Each segment names the LSN that it follows. So two
archivers can't both continue, and gaps are noticed; only the oldest segment may be deleted. Files are Parquet with `SEGMENT_SCHEMA`.

An encrypted segment's manifest has `schemaVersion` 2. It has the same plain part, which is only positions and times, with a sealed copy:
see `prove`.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import pyarrow as pa
import pyarrow.compute as pc
from xxhash import xxh3_128_hexdigest

from herdkeeper_jobs.encryption.keys import Key, keyring
from herdkeeper_jobs.encryption.parquet_folder import FileKey
from herdkeeper_jobs.errors import InvariantViolated
from herdkeeper_jobs.manifests.continuation import Part
from herdkeeper_jobs.manifests.manifest import Encryption, Identity, Position, files_in, is_lsn_name, lsn_of_name
from herdkeeper_jobs.storage.stored_path import (
    ASKED_AT_ONCE,
    AnyPath,
    StoredPath,
    asked_of_each,
    below,
    create_if_absent,
    names_from,
    new_file,
    remove_file,
    sync_folder,
)
from herdkeeper_jobs.wal.lsn import Lsn

SCHEMA_VERSION = 1
ENCRYPTED_VERSION = 2
_VERSIONS = (SCHEMA_VERSION, ENCRYPTED_VERSION)
SEGMENT_SCHEMA = pa.schema(
    [
        pa.field("ledger_id", pa.int64(), nullable=False),
        pa.field("entry_id", pa.int64(), nullable=False),
        pa.field("timestamp", pa.int64(), nullable=False),
        pa.field("payload", pa.binary(), nullable=False),
    ]
)
"""One row per entry, in log order. `timestamp`: milliseconds, by its leader's clock; `payload`: the entry's bytes as in the ledger."""


class ArchiveBroken(InvariantViolated):
    """A segment does not follow its predecessor: entries are missing in between."""


class SegmentManifest(Part):
    """The manifest of a segment. Keys are camelCase in the file."""

    schema_version: int = SCHEMA_VERSION
    identity: Identity
    first: Position
    last: Position
    follows: Position | None
    """The last entry of the previous segment; None for the first one."""
    begins_log: bool
    """Whether it begins with the log's very first entry."""
    next_ledger: int | None
    """The next ledger, if the segment ends with the last entry of a closed one. None if that ledger continues, or no next one is known."""
    entries: int
    lowest_timestamp_millis: int
    highest_timestamp_millis: int
    path: str
    """The file, below the tablespace's folder."""
    size: int
    hash: str
    """XXH3-128 of the file's bytes."""
    run_id: str
    encryption: Encryption | None = None
    """None for a plain segment."""

    @property
    def resume(self) -> Lsn:
        """Where the log continues after it."""
        return Lsn(self.last.ledger_id, self.last.entry_id + 1) if self.next_ledger is None else Lsn(self.next_ledger, 0)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a segment belongs: the tablespace's folder, the log's identity, and the run that writes it."""

    folder: StoredPath
    identity: Identity
    run_id: str
    key: Key | None = None
    """Encrypts segments; None: no encryption."""
    known: Lsn | None = None
    """Where a recent segment begins: the search for the newest one starts there."""


@dataclass(frozen=True, slots=True)
class Link:
    """How a segment is linked: see the fields of its manifest."""

    before: SegmentManifest | None
    begins_log: bool
    next_ledger: int | None


def segments(folder: StoredPath, identity: Identity, since: Lsn | None = None, until: Lsn | None = None) -> tuple[SegmentManifest, ...]:
    """Returns a tablespace's archive in log order, or those segments that may hold entries between two LSNs.

    Raises:
        InvariantViolated: a manifest can't be read, belongs to another log, or does not follow its predecessor.
    """
    paths = _paths(folder)
    starts = [lsn_of_name(path) for path in paths]
    behind = len(paths) if until is None else bisect_right(starts, until)
    return _chain(paths[_position(starts, since) : behind], folder, identity)


def segments_one_by_one(folder: StoredPath, identity: Identity, since: Lsn | None) -> Iterator[SegmentManifest]:
    """Yields the segments from an LSN on. Each is only checked when consumed, so later damage does not matter. Some manifests are read
    ahead, since stores answer in parallel. Raises as `segments`."""
    paths = _paths(folder)
    begin = _position([lsn_of_name(path) for path in paths], since)
    yield from _linked((_decoded(path, content) for path, content in _read_ahead(paths[begin:])), folder, identity)


def _read_ahead(paths: Sequence[StoredPath]) -> Iterator[tuple[StoredPath, bytes]]:
    for first in range(0, len(paths), ASKED_AT_ONCE):
        next_ones = paths[first : first + ASKED_AT_ONCE]
        for path, content in zip(next_ones, asked_of_each(next_ones, _content_or_error), strict=True):
            if isinstance(content, OSError):
                raise content
            yield path, content


def _content_or_error(path: StoredPath) -> bytes | OSError:
    try:
        return path.read_bytes()
    except OSError as error:
        return error


def readable_segments(folder: StoredPath, identity: Identity) -> Iterator[SegmentManifest]:
    """Yields the readable segments of an archive in log order, with or without gaps. Raises OSError."""
    for path, content in _read_ahead(_paths(folder)):
        with contextlib.suppress(InvariantViolated):
            yield from _linked((_decoded(path, content),), folder, identity)


def holds(segment: SegmentManifest, folder: StoredPath, lsn: Lsn) -> bool:
    """Whether an LSN within a segment is one of its entries: there is a gap between a ledger's end and the next ledger.

    Raises as `read_segment`, which is only read if the manifest can't decide.
    """
    if not segment.first.lsn <= lsn <= segment.last.lsn:
        return False
    if lsn.ledger_id == segment.last.ledger_id:
        return True
    return len(entry_at(read_segment(segment, folder), lsn)) > 0


def entry_at(rows: pa.Table, lsn: Lsn) -> pa.Table:
    """Those rows with `ledger_id` and `entry_id` that are at an LSN: one or none."""
    return rows.filter(pc.and_(pc.equal(rows.column("ledger_id"), lsn.ledger_id), pc.equal(rows.column("entry_id"), lsn.entry_id)))


def _position(starts: Sequence[Lsn], since: Lsn | None) -> int:
    """The index of the segment that holds an LSN or follows it, by where segments begin."""
    return 0 if since is None else max(bisect_right(starts, since) - 1, 0)


def newest_segment(folder: StoredPath, identity: Identity, known: Lsn | None = None) -> SegmentManifest | None:
    """Returns the archive's last segment, None if empty. `known` saves listing the names before it, and may be outdated. Raises as
    `segments`."""
    paths = _paths(folder, known) or (_paths(folder) if known is not None else [])
    found = _chain(paths[-1:], folder, identity)
    return found[0] if found else None


def oldest_segment(folder: StoredPath, identity: Identity) -> SegmentManifest | None:
    """Returns the archive's first segment, None if empty. Raises as `segments`."""
    first = oldest_manifest(folder)
    return None if first is None else _chain((first,), folder, identity)[0]


def oldest_manifest(folder: StoredPath) -> StoredPath | None:
    """Returns the manifest of the archive's first segment, by name only, None if empty. Raises OSError."""
    return next(_all_paths(folder), None)


def ends(folder: StoredPath, identity: Identity) -> tuple[SegmentManifest, SegmentManifest] | None:
    """Returns the first and the last segment, which may be the same; None if empty. Raises as `segments`."""
    if not (paths := _paths(folder)):
        return None
    return _chain(paths[:1], folder, identity)[0], _chain(paths[-1:], folder, identity)[0]


def _chain(paths: Sequence[StoredPath], folder: StoredPath, identity: Identity) -> tuple[SegmentManifest, ...]:
    found = [_decoded(path, content) for path, content in zip(paths, asked_of_each(paths, lambda path: path.read_bytes()), strict=True)]
    return tuple(_linked(found, folder, identity))


def _linked(found: Iterable[SegmentManifest], folder: StoredPath, identity: Identity) -> Iterator[SegmentManifest]:
    before: SegmentManifest | None = None
    for segment in found:
        name = manifest_path(folder, segment.first.lsn)
        if segment.identity.path != identity.path:
            raise InvariantViolated(f"{name} belongs to {segment.identity}, this run reads {identity}")
        if before is not None and segment.follows != before.last:
            shown = "nothing" if segment.follows is None else segment.follows.lsn
            raise ArchiveBroken(f"{name} follows {shown}, but the segment before it ends with {before.last.lsn}")
        before = segment
        yield segment


def _paths(folder: StoredPath, since: Lsn | None = None) -> list[StoredPath]:
    return sorted(_all_paths(folder, since))


def _all_paths(folder: StoredPath, since: Lsn | None = None) -> Iterator[StoredPath]:
    """Yields the manifests in ascending order, optionally only of segments that begin at an LSN or later."""
    place = folder / "log" / "segments"
    first = "" if since is None else manifest_path(folder, since).name
    return (place / name for name in names_from(place, first) if is_lsn_name(name))


def commit_segment(rows: pa.Table, place: Place, link: Link) -> SegmentManifest | None:
    """Writes rows of SEGMENT_SCHEMA and commits them to the archive. Returns None if another segment is already there.

    Raises InvariantViolated if the written file can't be read back.
    """
    sink = pa.BufferOutputStream()
    path = f"log/data/{place.run_id}/{uuid.uuid4().hex}.parquet"
    encryption = None if place.key is None else Encryption.with_file_key(FileKey.new(place.key))
    with files_in(place.folder, encryption).writer(path, sink, rows.schema) as writer:
        writer.write_table(rows)
    content = sink.getvalue().to_pybytes()
    stamps = rows.column("timestamp").to_pylist()
    first, *_, last = [*_positions(rows.slice(0, 1)), *_positions(rows.slice(len(rows) - 1))]
    segment = SegmentManifest(
        schema_version=SCHEMA_VERSION if encryption is None else ENCRYPTED_VERSION,
        identity=place.identity,
        first=first,
        last=last,
        follows=None if link.before is None else link.before.last,
        begins_log=link.begins_log,
        next_ledger=link.next_ledger,
        entries=len(rows),
        lowest_timestamp_millis=min(stamps),
        highest_timestamp_millis=max(stamps),
        path=path,
        size=len(content),
        hash=xxh3_128_hexdigest(content),
        run_id=place.run_id,
        encryption=encryption,
    )
    try:
        _write(place.folder, path, content)
        if read_segment(segment, place.folder) != rows:
            raise InvariantViolated(f"{place.folder / path} returns other entries than were written")
    except BaseException:
        with contextlib.suppress(OSError):
            remove_file(place.folder / path)  # no manifest names it, and each look would take more of a full volume
        raise
    whole = segment if place.key is None or encryption is None else _with_sealed(segment, encryption, place.key)
    document = whole.model_dump_json(by_alias=True, indent=1).encode()
    return whole if create_if_absent(manifest_path(place.folder, first.lsn), document) else None


def _with_sealed(segment: SegmentManifest, encryption: Encryption, key: Key) -> SegmentManifest:
    sealed = key.seal(segment.model_dump_json(by_alias=True).encode())
    return segment.model_copy(update={"encryption": encryption.with_sealed(sealed)})


def prove(segment: SegmentManifest, folder: StoredPath) -> None:
    """Checks that an encrypted segment's manifest equals the sealed one.

    Raises:
        InvariantViolated: it was changed.
        KeyUnusable: its key is missing.
    """
    if (encryption := segment.encryption) is None:
        return
    path = manifest_path(folder, segment.first.lsn)
    sealed = keyring().open(encryption.sealed, encryption, str(path))
    if SegmentManifest.model_validate_json(sealed) != segment.model_copy(update={"encryption": encryption.with_sealed("")}):
        raise InvariantViolated(f"{path} was changed: its content differs from what the key {encryption.key_name!r} sealed")


def read_segment(segment: SegmentManifest, folder: StoredPath) -> pa.Table:
    """Returns its entries, as SEGMENT_SCHEMA.

    Raises:
        InvariantViolated: the file has other bytes than were committed, does not decrypt, or is elsewhere.
        KeyUnusable: its key is missing.
    """
    files = files_in(folder, segment.encryption)
    path = files / segment.path
    content = path.read_bytes()
    if (found := xxh3_128_hexdigest(content)) != segment.hash:
        raise InvariantViolated(f"{path} has other bytes than were committed: {found} instead of {segment.hash}")
    return files.parse_parquet(segment.path, content).cast(SEGMENT_SCHEMA)


def _write(folder: StoredPath, name: str, content: bytes) -> None:
    with contextlib.closing(new_file(folder / name)) as file:
        file.write(content)
    for above in PurePosixPath(name).parents:
        sync_folder(folder / str(above))


def read_segment_manifest(path: StoredPath) -> SegmentManifest:
    """Raises InvariantViolated if the file is no manifest of a known version."""
    return _decoded(path, path.read_bytes())


def _decoded(path: StoredPath, content: bytes) -> SegmentManifest:
    try:
        document = json.loads(content)
        version = document.get("schemaVersion")
        if version not in _VERSIONS:
            raise InvariantViolated(f"{path}: schemaVersion {version}, this program knows {' and '.join(map(str, _VERSIONS))}")
        segment = SegmentManifest.model_validate(document)
        if (version == ENCRYPTED_VERSION) != (segment.encryption is not None):
            raise InvariantViolated(
                f"{path} is not a manifest of a segment: its schemaVersion {version} and its encryption contradict each other"
            )
        return segment
    except (ValueError, AttributeError, RecursionError) as error:
        raise InvariantViolated(f"{path} is not a manifest of a segment: {error}") from error


def manifest_path(folder: AnyPath, first: Lsn) -> AnyPath:
    """The manifest of the segment that begins with an LSN; names sort in log order."""
    return below(folder, "log", "segments", f"{first.ledger_id:020d}-{first.entry_id:020d}.json")


def _positions(rows: pa.Table) -> Sequence[Position]:
    columns = (rows.column(name).to_pylist() for name in ("ledger_id", "entry_id"))
    return [Position(ledger_id=ledger, entry_id=entry) for ledger, entry in zip(*columns, strict=True)]
