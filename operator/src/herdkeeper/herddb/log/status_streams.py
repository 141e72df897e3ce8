"""The change streams for which a tablespace's log is kept: status.streams, the one that needs most of it first."""

from __future__ import annotations

import datetime
from typing import Any

from herdkeeper.herddb.log.seen import SeenStream
from herdkeeper.herddb.tablespace.state import TablespaceObserved
from herdkeeper.shared.lsn import lsn_fields
from herdkeeper.shared.time import text_of
from herdkeeper.shared.unknown import Unknown

MOST_STREAMS = 50
"""Bounds the status: endless names of streams must not make it too large to store."""
_NOWHERE = (-1, -2)
"""Before all LSNs: an unreadable pin keeps everything."""


def stream_fields(seen: TablespaceObserved) -> dict[str, Any]:
    """Returns the status field; the previous one while unknown. For a moving stream it has nothing that changes as it moves."""
    if isinstance(seen.streams, Unknown):
        before = seen.tablespace.status.streams if seen.tablespace.status is not None else ()
        return {"streams": [each.document() for each in before]}
    ordered = sorted(seen.streams, key=lambda each: (each.pin.lsn if each.pin is not None else _NOWHERE, each.name))
    return {"streams": [_field(each, seen.now) for each in ordered[:MOST_STREAMS]]}


def _field(stream: SeenStream, now: datetime.datetime) -> dict[str, Any]:
    if stream.pin is None:
        return {"name": stream.name, "state": "Unreadable", "standsSince": text_of(stream.moved_at)}
    if now <= stream.stands_at:
        return {"name": stream.name, "state": "Moves"}
    until = stream.counts_until
    return {
        "name": stream.name,
        "state": "Abandoned" if stream.is_abandoned(now) else "Stands",
        "standsSince": text_of(stream.moved_at),
        **({} if until is None else {"countsUntil": text_of(until)}),
        **({"lsn": lsn_fields(stream.pin.lsn)} if stream.pin.lsn[0] >= 0 else {}),
    }
