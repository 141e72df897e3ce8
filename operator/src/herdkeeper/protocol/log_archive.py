"""How far a tablespace's log is archived (`<herd root>/logArchive/<tablespace uuid>`), and what may expire (its child `expiry`).

herdkeeper_jobs.archive writes the first after it has committed segments, and before it deletes any; the operator reads it. The operator
writes the second, herdkeeper_jobs.archive reads it. JSON; times in milliseconds since the epoch.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, TypeVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from herdkeeper.codecs.java_data import MalformedDataError
from herdkeeper.protocol.faults import faults_of

Report = TypeVar("Report")

_CONFIG = ConfigDict(alias_generator=to_camel, strict=True)


@dataclass(frozen=True, slots=True)
class ArchivedRange:
    """The content of an archive: everything between two LSNs (ledger id, entry id). `resume`: where the log continues."""

    __pydantic_config__: ClassVar[ConfigDict] = _CONFIG

    first: tuple[int, int]
    first_millis: int
    """The earliest stamp of the first segment."""
    begins_log: bool
    """Whether the log began there."""
    last: tuple[int, int]
    last_millis: int
    """The latest stamp of the last segment."""
    resume: tuple[int, int]


@dataclass(frozen=True, slots=True)
class ArchiveProgress:
    """The report of a tablespace's archiver."""

    __pydantic_config__: ClassVar[ConfigDict] = _CONFIG

    destination: str
    """Place of the archive: the name of a volume claim, or the address of an object store."""
    held: ArchivedRange | None
    """None while the archive is empty."""
    current_at_millis: Annotated[int | None, Field(alias="currentAt")]
    """Everything that was confirmed at this time is archived; None before the first run that reached the log's end."""
    lag_seconds: float | None
    """Maximum seconds that the newest archived entry may have waited; None as above."""
    trouble: str = ""
    """Why the last run failed, or empty."""
    expiry_trouble: str = ""
    """Why segments that should expire did not, or empty. Archivers of an earlier version expire nothing."""
    locked: str = ""
    """Why the oldest segment can't be read, or empty: its key is missing, while the archive goes on with a newer one."""


@dataclass(frozen=True, slots=True)
class ExpiryOrder:
    """In the archive at `destination`, segments that end before `keep_from` may expire."""

    __pydantic_config__: ClassVar[ConfigDict] = _CONFIG

    destination: str
    keep_from: tuple[int, int]
    """The base's restart position: its oldest open transaction, or its LSN."""
    manifest: str = ""
    """The base's manifest, below the same destination; empty if the base is elsewhere."""


_PROGRESS, _ORDER = TypeAdapter(ArchiveProgress), TypeAdapter(ExpiryOrder)


def archive_progress_path(herd_root: str, tablespace_uuid: str) -> str:
    return f"{herd_root}/logArchive/{tablespace_uuid}"


def expiry_order_path(herd_root: str, tablespace_uuid: str) -> str:
    """Returns the path of the znode with the order to expire."""
    return f"{archive_progress_path(herd_root, tablespace_uuid)}/expiry"


def encode_archive_progress(progress: ArchiveProgress) -> bytes:
    return _encoded(_PROGRESS, progress)


def decode_archive_progress(data: bytes, written_at: float | None = None) -> ArchiveProgress:
    """Returns the report. `written_at` is when it was written, in Unix seconds by ZooKeeper's clock: nothing that was confirmed later is
    archived, whatever the archiver's clock said. Raises MalformedDataError unless it is a JSON object with these fields.
    """
    told = _decoded(_PROGRESS, data, "progress of an archive")
    if told.current_at_millis is None or written_at is None:
        return told
    return replace(told, current_at_millis=min(told.current_at_millis, int(written_at * 1000)))


def encode_expiry_order(order: ExpiryOrder) -> bytes:
    return _encoded(_ORDER, order)


def decode_expiry_order(data: bytes) -> ExpiryOrder:
    """Raises MalformedDataError unless it is a JSON object with these fields."""
    return _decoded(_ORDER, data, "the order to expire parts of an archive")


def _encoded(adapter: TypeAdapter[Report], report: Report) -> bytes:
    return json.dumps(adapter.dump_python(report, by_alias=True), separators=(",", ":")).encode()


def _decoded(adapter: TypeAdapter[Report], data: bytes, what: str) -> Report:
    try:
        return adapter.validate_json(data)
    except ValidationError as error:
        raise MalformedDataError(f"{what} {data[:200]!r}: {faults_of(error, 'document')}") from error
