"""How far a tablespace's log is archived (`<herd root>/logArchive/<tablespace uuid>`), and what may expire (its child `expiry`).

herdkeeper_jobs.archive writes the first after it has committed segments, and before it deletes any; the operator reads it. The operator
writes the second, herdkeeper_jobs.archive reads it. JSON; times in milliseconds since the epoch.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from herdkeeper.codecs.java_data import MalformedDataError

Decoded = TypeVar("Decoded")


@dataclass(frozen=True, slots=True)
class ArchivedRange:
    """The content of an archive: everything between two LSNs (ledger id, entry id). `resume`: where the log continues."""

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

    destination: str
    """Place of the archive: the name of a volume claim, or the address of an object store."""
    held: ArchivedRange | None
    """None while the archive is empty."""
    current_at_millis: int | None
    """Everything that was confirmed at this time is archived; None before the first run that reached the log's end."""
    lag_seconds: float | None
    """Maximum seconds that the newest archived entry may have waited; None as above."""
    trouble: str = ""
    """Why the last run failed, or empty."""
    expiry_trouble: str = ""
    """Why segments that should expire did not, or empty."""


@dataclass(frozen=True, slots=True)
class ExpiryOrder:
    """In the archive at `destination`, segments that end before `keep_from` may expire."""

    destination: str
    keep_from: tuple[int, int]
    """The base's restart position: its oldest open transaction, or its LSN."""
    manifest: str = ""
    """The base's manifest, below the same destination; empty if the base is elsewhere."""


def archive_progress_path(herd_root: str, tablespace_uuid: str) -> str:
    """Returns the path of a tablespace's znode."""
    return f"{herd_root}/logArchive/{tablespace_uuid}"


def expiry_order_path(herd_root: str, tablespace_uuid: str) -> str:
    """Returns the path of the znode with the order to expire."""
    return f"{archive_progress_path(herd_root, tablespace_uuid)}/expiry"


def encode_archive_progress(progress: ArchiveProgress) -> bytes:
    """Returns the znode's bytes."""
    held = progress.held
    document: dict[str, Any] = {
        "destination": progress.destination,
        "currentAt": progress.current_at_millis,
        "lagSeconds": progress.lag_seconds,
        "trouble": progress.trouble,
        "expiryTrouble": progress.expiry_trouble,
        "held": None
        if held is None
        else {
            "first": list(held.first),
            "firstMillis": held.first_millis,
            "beginsLog": held.begins_log,
            "last": list(held.last),
            "lastMillis": held.last_millis,
            "resume": list(held.resume),
        },
    }
    return json.dumps(document, separators=(",", ":")).encode()


def decode_archive_progress(data: bytes, written_at: float | None = None) -> ArchiveProgress:
    """Returns the report. `written_at` is when it was written, in Unix seconds by ZooKeeper's clock: nothing that was confirmed later is
    archived, whatever the archiver's clock said. Raises MalformedDataError unless it is a JSON object with these fields.
    """
    told = _decoded(data, "progress of an archive", _progress)
    if told.current_at_millis is None or written_at is None:
        return told
    return replace(told, current_at_millis=min(told.current_at_millis, int(written_at * 1000)))


def encode_expiry_order(order: ExpiryOrder) -> bytes:
    """Returns the znode's bytes."""
    document = {"destination": order.destination, "keepFrom": list(order.keep_from), "manifest": order.manifest}
    return json.dumps(document, separators=(",", ":")).encode()


def decode_expiry_order(data: bytes) -> ExpiryOrder:
    """Raises MalformedDataError unless it is a JSON object with these fields."""
    return _decoded(data, "the order to expire parts of an archive", _order)


def _decoded(data: bytes, what: str, read: Callable[[Any], Decoded]) -> Decoded:
    try:
        return read(json.loads(data))
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise MalformedDataError(f"{what} {data[:200]!r}: {type(error).__name__} {error}") from error


def _progress(document: Any) -> ArchiveProgress:
    current, lag, held = document["currentAt"], document["lagSeconds"], document["held"]
    return ArchiveProgress(
        destination=str(document["destination"]),
        held=None if held is None else _held(held),
        current_at_millis=None if current is None else int(current),
        lag_seconds=None if lag is None else float(lag),
        trouble=str(document["trouble"]),
        expiry_trouble=str(document.get("expiryTrouble", "")),  # archivers of an earlier version expire nothing
    )


def _order(document: Any) -> ExpiryOrder:
    destination, manifest = document["destination"], document["manifest"]
    if type(destination) is not str or type(manifest) is not str:
        raise ValueError("destination or manifest is not text")
    return ExpiryOrder(destination, _lsn(document["keepFrom"]), manifest)


def _held(document: Any) -> ArchivedRange:
    if type(document["beginsLog"]) is not bool:
        raise ValueError("beginsLog is neither true nor false")
    return ArchivedRange(
        first=_lsn(document["first"]),
        first_millis=int(document["firstMillis"]),
        begins_log=document["beginsLog"],
        last=_lsn(document["last"]),
        last_millis=int(document["lastMillis"]),
        resume=_lsn(document["resume"]),
    )


def _lsn(numbers: Any) -> tuple[int, int]:
    ledger, entry = numbers
    if type(ledger) is not int or type(entry) is not int:
        raise ValueError(f"{numbers} is no LSN")
    return ledger, entry
