"""The Services that follow the leaders of a HerdDBCluster's tablespaces. The cluster's key alone writes them, as it alone moves leaders."""

from __future__ import annotations

from collections.abc import Iterable

from herdkeeper.api import Tablespace
from herdkeeper.codecs.herddb.tablespace import TablespaceRecord
from herdkeeper.herddb.state.cluster import HerdDBObserved
from herdkeeper.herddb.tablespace.build import build_leader_service
from herdkeeper.planning.actions import Apply
from herdkeeper.planning.intent import settle


def leader_services(seen: HerdDBObserved, records: Iterable[TablespaceRecord]) -> tuple[Apply, ...]:
    """What must be applied so that the Service of each declared tablespace selects the leader that its record names.

    None under a name that somebody else's Service has: the Tablespace tells of that.
    """
    manifests = [build_leader_service(tablespace, record.leader) for record in records if (tablespace := _followed(seen, record))]
    return tuple(apply for apply in settle(manifests, seen.objects) if apply.manifest["metadata"]["name"] not in seen.taken_services)


def declaring(seen: HerdDBObserved, name: str) -> Tablespace | None:
    """The resource that declares a tablespace; the oldest, as validation has it. None when there is none."""
    mine = [each for each in seen.tablespaces if each.sql_name == name]
    return min(mine, key=lambda each: (each.metadata.creation_timestamp, each.metadata.name), default=None)


def _followed(seen: HerdDBObserved, record: TablespaceRecord) -> Tablespace | None:
    """The resource whose Service follows this record: one that lives and made this tablespace. A paused one too: its leader moves."""
    tablespace = declaring(seen, record.name)
    if tablespace is None or tablespace.metadata.deletion_timestamp is not None:
        return None
    return tablespace if tablespace.made_uuid in (None, record.uuid) else None
