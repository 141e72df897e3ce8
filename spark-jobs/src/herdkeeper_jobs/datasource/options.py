"""The options of the data source, parsed. docs/change-data-capture.md lists them for users."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from herdkeeper.protocol.log_pin import stream_pin
from herdkeeper_jobs.bookkeeper.reader import DEFAULT_SETTINGS, ReadSettings
from herdkeeper_jobs.wal.lsn import Lsn

METADATA_SERVICE_URI = "metadataServiceUri"
LEDGERS = "ledgers"
TABLESPACE = "tablespace"
HERD_ROOT = "herdRoot"
AFTER_LSN = "afterLsn"
UP_TO_LSN = "upToLsn"
RESTART_LSN = "restartLsn"
VERIFY = "verify"
BYTES_PER_SECOND_PER_BOOKIE = "bytesPerSecondPerBookie"
PARTITIONS = "partitions"
TASKS_AT_ONCE = "tasksAtOnce"
TIMEOUT_SECONDS = "timeoutSeconds"
SPECULATIVE_READ_SECONDS = "speculativeReadSeconds"
MAX_ENTRIES_PER_BATCH = "maxEntriesPerBatch"
MAX_BYTES_PER_BATCH = "maxBytesPerBatch"
POLL_SECONDS = "pollSeconds"
PIN = "pin"
PIN_MAX_AGE_HOURS = "pinMaxAgeHours"

_PIN_HOURS, _MOST_PIN_HOURS = 72.0, 720.0
"""More than a weekend; and a month, since a forgotten pin fills the bookies that long."""
_BYTES_PER_BATCH = 32 * 1024 * 1024
"""The size of 100,000 entries of some 300 bytes. The planning process holds three batches, and Spark's driver one or two."""
_PARTITIONS_PER_TASK = 3
_PARTITIONS = 8
"""The default if the number of parallel tasks is unknown."""
_MOST_LEDGERS = 1_000_000
"""The planning process holds the metadata of all of them, about 1 KB each."""
_URI = re.compile(r"zk(?:\+(?:hierarchical|longhierarchical|flat|null))?://([^/\s]+)(/\S*[^/\s])/?")
Value = TypeVar("Value")


class OptionError(ValueError):
    """An option is missing or wrong; the message names it, its value and the fix."""


@dataclass(frozen=True, slots=True)
class Range:
    """The wanted part: after `after` (None: from the beginning) and not after `up_to` (None: all that is confirmed)."""

    after: Lsn | None = None
    up_to: Lsn | None = None
    restart: Lsn | None = None
    """BEGIN of the oldest transaction that was open at `after`, if the caller knows it."""


@dataclass(frozen=True, slots=True)
class PinOptions:
    """The pin that keeps the log for a stream: its name, and how long it counts after its last write."""

    stream: str
    max_age_seconds: int


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The user's options. Either `ledger_ids` or `tablespace` is set."""

    zookeeper: str
    ledgers_root: str
    ledger_ids: tuple[int, ...]
    tablespace: str
    herd_root: str
    range: Range
    verify: bool
    partitions: int
    read: ReadSettings
    max_entries_per_batch: int
    max_bytes_per_batch: int
    poll_seconds: float
    pin: PinOptions | None = None


def parse_options(options: Mapping[str, str], tasks_at_once: int | None = None) -> SourceOptions:
    """Parses the options; names are compared as the mapping does (Spark's ignores case). Raises OptionError.

    `tasks_at_once`: the session's maximum, if the options don't set it; None: unknown.
    """
    zookeeper, ledgers_root = _metadata_service(options.get(METADATA_SERVICE_URI, ""))
    ledger_ids = _ledger_ids(options.get(LEDGERS, ""))
    tablespace, herd_root = options.get(TABLESPACE, ""), options.get(HERD_ROOT, "")
    if bool(ledger_ids) == bool(tablespace):
        found = f"{LEDGERS} and {TABLESPACE} are both set" if tablespace else f"neither {LEDGERS} nor {TABLESPACE} is set"
        raise OptionError(f"{found}: give exactly one of {LEDGERS} (ids and ranges, like 1,2,5-9) and {TABLESPACE} (its name)")
    if tablespace and not herd_root.startswith("/"):
        raise OptionError(f"{HERD_ROOT} is {herd_root!r}: with {TABLESPACE} give HerdDB's root in ZooKeeper, like /shop/db/herd")
    if ledger_ids and options.get(PIN) is not None:
        raise OptionError(f"{PIN} is {options[PIN]!r}: it keeps a tablespace's log, and {LEDGERS} are none; leave it out")
    at_once = _number(options, TASKS_AT_ONCE, int, tasks_at_once or 0)
    partitions = _number(options, PARTITIONS, int, _PARTITIONS_PER_TASK * at_once or _PARTITIONS)
    # Each task keeps to its share, so that all parallel tasks stay within a bookie's budget.
    sharing = (min(partitions, at_once) if at_once else partitions) if ledger_ids else 1
    rate = _number(options, BYTES_PER_SECOND_PER_BOOKIE, float, float("inf")) / sharing
    bytes_per_batch = _number(options, MAX_BYTES_PER_BATCH, int, _BYTES_PER_BATCH)
    return SourceOptions(
        zookeeper=zookeeper,
        ledgers_root=ledgers_root,
        ledger_ids=ledger_ids,
        tablespace=tablespace,
        herd_root=herd_root,
        range=_range(options),
        verify=_truth(options, VERIFY),
        partitions=partitions,
        read=ReadSettings(
            timeout_seconds=_number(options, TIMEOUT_SECONDS, float, 15.0),
            speculative_read_seconds=_number(options, SPECULATIVE_READ_SECONDS, float, 0.5),
            bytes_per_second_per_bookie=rate,
            # A micro-batch ends with a whole record batch.
            batch_bytes=min(bytes_per_batch, DEFAULT_SETTINGS.batch_bytes),
        ),
        max_entries_per_batch=_number(options, MAX_ENTRIES_PER_BATCH, int, 100_000),
        max_bytes_per_batch=bytes_per_batch,
        poll_seconds=_number(options, POLL_SECONDS, float, 1.0),
        pin=_pin(options),
    )


def _pin(options: Mapping[str, str]) -> PinOptions | None:
    stream = options.get(PIN)
    hours = _number(options, PIN_MAX_AGE_HOURS, float, _PIN_HOURS)
    if hours > _MOST_PIN_HOURS:
        raise OptionError(f"{PIN_MAX_AGE_HOURS} is {options[PIN_MAX_AGE_HOURS]!r}: give {_MOST_PIN_HOURS:g} at most")
    if stream is None:
        if options.get(PIN_MAX_AGE_HOURS) is not None:
            raise OptionError(f"{PIN_MAX_AGE_HOURS} is {options[PIN_MAX_AGE_HOURS]!r}, but there is no {PIN}: give its name, or neither")
        return None
    try:
        stream_pin(stream)
    except ValueError as error:
        raise OptionError(f"{PIN}: {error}") from error
    return PinOptions(stream, max(1, int(hours * 3600)))


def _metadata_service(text: str) -> tuple[str, str]:
    match = _URI.fullmatch(text)
    if match is None:
        raise OptionError(f"{METADATA_SERVICE_URI} is {text!r}: give zk+hierarchical://HOST:2181;HOST:2181/PATH/OF/LEDGERS")
    return match.group(1).replace(";", ","), match.group(2)


def _ledger_ids(text: str) -> tuple[int, ...]:
    ids: list[int] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        match = re.fullmatch(r"(\d{1,19})(?:-(\d{1,19}))?", part)
        first, last = (int(match.group(1)), int(match.group(2) or match.group(1))) if match else (1, 0)
        if first > last:
            raise OptionError(f"{LEDGERS}: {part!r} is not a ledger id or a range; write ids and ascending ranges, like 1,2,5-9")
        if len(ids) + last - first >= _MOST_LEDGERS:
            raise OptionError(f"{LEDGERS}: up to {part!r} these are more than {_MOST_LEDGERS} ledgers; read them in several parts")
        ids.extend(range(first, last + 1))
    return tuple(sorted(set(ids)))


def _range(options: Mapping[str, str]) -> Range:
    after, up_to, restart = (_lsn(options, name) for name in (AFTER_LSN, UP_TO_LSN, RESTART_LSN))
    if restart is not None and after is None:
        raise OptionError(f"{RESTART_LSN} is {restart}, and {AFTER_LSN} is not set: give both, as in a checkpoint's manifest, or neither")
    if restart is not None and after is not None and restart > after:
        why = f"the oldest transaction that was open at {AFTER_LSN} began at or before it"
        raise OptionError(f"{RESTART_LSN} is {restart}: {why}; give at most {AFTER_LSN}, which is {after}")
    if after is not None and up_to is not None and up_to < after:
        raise OptionError(f"{UP_TO_LSN} is {up_to}, which comes before {AFTER_LSN}, {after}: give a later one")
    return Range(after, up_to, restart)


def _lsn(options: Mapping[str, str], name: str) -> Lsn | None:
    text = options.get(name)
    if text is None:
        return None
    try:
        return Lsn.parse(text)
    except ValueError as error:
        raise OptionError(f"{name}: {error}") from error


def _number(options: Mapping[str, str], name: str, parse: Callable[[str], Value], default: Value) -> Value:
    text = options.get(name)
    if text is None:
        return default
    try:
        value = parse(text)
    except ValueError:
        raise OptionError(f"{name} is {text!r}: give a number above 0") from None
    if not value > 0:  # type: ignore[operator]
        raise OptionError(f"{name} is {text!r}: give a number above 0")
    return value


def _truth(options: Mapping[str, str], name: str) -> bool:
    text = options.get(name, "true").lower()
    if text not in ("true", "false"):
        raise OptionError(f"{name} is {text!r}: give true or false")
    return text == "true"
