"""Which BookKeeper cluster an audit was of: a cluster that was deleted and made anew has the same name and other ledgers."""

from __future__ import annotations

import datetime

from herdkeeper.api import BookKeeperCluster
from herdkeeper.shared.time import moment_of


def is_of(cluster: BookKeeperCluster, instance_id: str | None, ended: datetime.datetime | None) -> bool:
    """Returns whether an ended audit was of this cluster, not of an earlier one of its name, by the status of both.

    `instance_id` is the audit's; an audit of an earlier version has none, and counts if it ended after the cluster was created.
    """
    if instance_id is not None:
        return cluster.status is not None and cluster.status.instance_id == instance_id
    created = moment_of(cluster.metadata.creation_timestamp)
    return created is None or (ended is not None and ended >= created)
