"""The Services that follow the leaders of a HerdDBCluster's tablespaces. Only the cluster's key writes them, since only it
moves leaders.
"""

from __future__ import annotations

from collections.abc import Iterable

from herdkeeper.api import Tablespace
from herdkeeper.codecs.herddb.tablespace import TablespaceRecord
from herdkeeper.herddb.state.fleet import SqlFleet
from herdkeeper.herddb.tablespace.build import build_leader_service
from herdkeeper.planning.actions import Apply
from herdkeeper.planning.intent import needed_applies


def leader_services(fleet: SqlFleet, records: Iterable[TablespaceRecord]) -> tuple[Apply, ...]:
    """Returns the applies that make the Service of each declared tablespace select the recorded leader.

    None for a name that another owner's Service has; the Tablespace reports that.
    """
    built = (build_leader_service(tablespace, record.leader) for record in records if (tablespace := _followed(fleet, record)))
    return needed_applies((service for service in built if service["metadata"]["name"] not in fleet.taken_services), fleet.objects)


def declaring(fleet: SqlFleet, name: str) -> Tablespace | None:
    """Returns the oldest resource that declares a tablespace, as the validation does. None if there is none, or it can't be read."""
    mine = [each for each in fleet.declared if each.sql_name == name]
    if any(each.tablespace.made_uuid for each in mine):
        mine = [each for each in mine if each.may_have_made_it]
    oldest = min(mine, key=lambda each: (each.tablespace.metadata.creation_timestamp, each.tablespace.metadata.name), default=None)
    return oldest.tablespace if oldest is not None and oldest.readable else None


def _followed(fleet: SqlFleet, record: TablespaceRecord) -> Tablespace | None:
    """Returns the resource whose Service follows this record: it is not being deleted and created this tablespace. A paused one counts,
    since its leader moves, too.
    """
    tablespace = declaring(fleet, record.name)
    if tablespace is None or tablespace.metadata.deletion_timestamp is not None:
        return None
    return tablespace if tablespace.made_uuid in (None, record.uuid) else None
