"""Gauges of how much of its retention the readers of a tablespace's log have left."""

from __future__ import annotations

from prometheus_client import Gauge

from herdkeeper.api import Tablespace
from herdkeeper.herddb.log.standing import Needer, Phase, Standing
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.unknown import Unknown

IN_TIME = Gauge(
    "herdkeeper_log_used_in_time",
    "0 when a reader of the log has less than a quarter of the retention left, or its part of the log is gone; else 1.",
    ["namespace", "tablespace"],
)
RETENTION_ENDS = Gauge(
    "herdkeeper_log_retention_ends_timestamp_seconds",
    "When the oldest ledger of the log that is needed is past its retention; absent while that ledger is still written.",
    ["namespace", "tablespace", "needed_by"],
)


def show_log(tablespace: Tablespace, standings: tuple[Standing, ...] | Unknown) -> None:
    """Shows the standings. Unknown ones, and a log that nobody needs, have no gauges."""
    key = tablespace.key
    known = () if isinstance(standings, Unknown) else standings
    for needer in Needer:
        ends = [each.retention_ends for each in known if each.need.by is needer and each.retention_ends is not None]
        if ends:
            RETENTION_ENDS.labels(key.namespace, key.name, needer.value).set(min(ends).timestamp())
        else:
            RETENTION_ENDS.remove(key.namespace, key.name, needer.value)
    if known:
        IN_TIME.labels(key.namespace, key.name).set(all(each.phase is Phase.IN_TIME for each in known))
    else:
        IN_TIME.remove(key.namespace, key.name)


def forget_log(tablespace: ObjectKey) -> None:
    for gauge in (IN_TIME, RETENTION_ENDS):
        gauge.remove_by_labels({"namespace": tablespace.namespace, "tablespace": tablespace.name})
