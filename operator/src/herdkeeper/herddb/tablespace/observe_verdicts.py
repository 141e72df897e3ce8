"""Collects verdicts on the rows of each SQL node's replicas, from Tablespaces and Checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from herdkeeper.api import Checkpoint, HerdDBCluster, Tablespace
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.clients.kubernetes import Unreadable
from herdkeeper.codecs.herddb.tablespace import DEFAULT_TABLESPACE
from herdkeeper.herddb.state.cluster import NodeTablespace, NodeView
from herdkeeper.herddb.tablespace.verdicts import judged, verdicts_in_force
from herdkeeper.shared.unknown import Unknown

_TOLD_IN = frozenset({"status.uuid", "status.replicas"})


@dataclass(frozen=True)
class Declared:
    """A Tablespace resource and its name in SQL. Without a spec if not `readable`."""

    sql_name: str
    tablespace: Tablespace
    readable: bool

    @property
    def tells(self) -> bool:
        """Whether its status, which stores verdicts, can be read."""
        return not _TOLD_IN.intersection(self.tablespace.unread_fields)


def declared_tablespaces(cluster: HerdDBCluster, reader: ClusterReader) -> tuple[Declared, ...]:
    """Returns those of a HerdDBCluster, by resource name. One that does not name its cluster may belong to this one."""
    declared = []
    for document in reader.kubernetes.documents(Tablespace, cluster.metadata.namespace):
        spec, found = document.get("spec") or {}, reader.kubernetes.model(Tablespace, document)
        if ((spec.get("herdDBRef") or {}).get("name") or cluster.metadata.name) != cluster.metadata.name:
            continue
        name = spec.get("tablespaceName") or str(document["metadata"]["name"]).replace("-", "_")
        readable = not isinstance(found, Unreadable)
        declared.append(Declared(name, found.rest if isinstance(found, Unreadable) else found, readable))
    return tuple(declared)


def judged_nodes(
    cluster: HerdDBCluster, nodes: Mapping[str, NodeView | Unknown], declared: Sequence[Declared], reader: ClusterReader
) -> dict[str, NodeView | Unknown]:
    """Returns the nodes' views, with the known verdicts on their rows. A status may be lost, older than the newest Checkpoint, or gone with
    its resource, so Checkpoints are read, too.
    """

    @cache
    def checkpoints() -> tuple[Checkpoint, ...]:
        return reader.kubernetes.resources(Checkpoint, cluster.metadata.namespace)

    found = dict(nodes)
    for uuid, name in _named_copies(nodes).items():
        telling = [each for each in declared if each.tells and each.tablespace.made_uuid == uuid]
        for each in telling:
            found = judged(found, uuid, verdicts_in_force(each.tablespace, uuid, checkpoints(), nodes))
        if telling:
            continue
        namesakes = [each for each in declared if each.sql_name == name]
        for tablespace in (*(each.tablespace for each in namesakes), *(() if namesakes else (None,))):
            found = judged(found, uuid, verdicts_in_force(tablespace, uuid, checkpoints(), nodes))
        if mute := [each.tablespace for each in namesakes if not each.tells]:
            found = _untold(found, uuid, mute[0])
    return found


def _named_copies(nodes: Mapping[str, NodeView | Unknown]) -> dict[str, str]:
    """Returns the names of the tablespaces that Tablespace resources can declare, by uuid."""
    copies = (copy for view in nodes.values() if not isinstance(view, Unknown) for copy in view)
    return {copy.uuid: copy.name for copy in copies if copy.name != DEFAULT_TABLESPACE}


def _untold(nodes: Mapping[str, NodeView | Unknown], uuid: str, mute: Tablespace) -> dict[str, NodeView | Unknown]:
    why = Unknown(
        f"it is unknown whether its rows match the log: the status of the Tablespace {mute.metadata.name} can't be read "
        f"({', '.join(sorted(_TOLD_IN.intersection(mute.unread_fields)))}): correct it, or run the operator version that wrote it"
    )

    def doubted(copy: NodeTablespace) -> NodeTablespace:
        return replace(copy, differs=why) if copy.uuid == uuid and copy.differs is None else copy

    return {node: view if isinstance(view, Unknown) else tuple(map(doubted, view)) for node, view in nodes.items()}
