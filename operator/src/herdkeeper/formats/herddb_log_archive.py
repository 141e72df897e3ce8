"""How far a tablespace's log is archived: `<herd root>/logArchive/<tablespace uuid>`.

Written by herdkeeper_jobs.archive, and only once the segments that it speaks of are committed; read by the operator. JSON; times in
milliseconds since the epoch.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from herdkeeper.formats.java_data import MalformedDataError


@dataclass(frozen=True, slots=True)
class ArchivedRange:
    """What an archive holds: everything from one LSN (ledger id, entry id) to another. `resume`: where the log goes on behind it."""

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
    """What the archiver of a tablespace says."""

    destination: str
    """The volume claim with the archive."""
    held: ArchivedRange | None
    """None while the archive is empty."""
    current_at_millis: int | None
    """All that was confirmed at this time is archived; None before the first run that came to the log's end."""
    lag_seconds: float | None
    """For how long the newest entry that a run archived may have been waiting for it; None as above."""
    trouble: str = ""
    """Why the last run failed; empty when it did not."""


def archive_progress_path(herd_root: str, tablespace_uuid: str) -> str:
    """Path of the znode of a tablespace."""
    return f"{herd_root}/logArchive/{tablespace_uuid}"


def encode_archive_progress(progress: ArchiveProgress) -> bytes:
    """The znode's bytes."""
    held = progress.held
    document: dict[str, Any] = {
        "destination": progress.destination,
        "currentAt": progress.current_at_millis,
        "lagSeconds": progress.lag_seconds,
        "trouble": progress.trouble,
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


def decode_archive_progress(data: bytes) -> ArchiveProgress:
    """From the znode's bytes.

    Raises:
        MalformedDataError: no JSON object with these fields.
    """
    try:
        document = json.loads(data)
        current, lag, held = document["currentAt"], document["lagSeconds"], document["held"]
        return ArchiveProgress(
            destination=str(document["destination"]),
            held=None if held is None else _held(held),
            current_at_millis=None if current is None else int(current),
            lag_seconds=None if lag is None else float(lag),
            trouble=str(document["trouble"]),
        )
    except (ValueError, TypeError, KeyError) as error:
        raise MalformedDataError(f"progress of an archive {data[:200]!r}: {type(error).__name__} {error}") from error


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
