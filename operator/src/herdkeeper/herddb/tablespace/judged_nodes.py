"""Adds the known verdicts on rows, from Tablespaces and Checkpoints, to the SQL nodes' views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from herdkeeper.api import Checkpoint, Tablespace
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
    def status_readable(self) -> bool:
        """Whether its status, which stores verdicts, can be read."""
        return not _TOLD_IN.intersection(self.tablespace.unread_fields)

    @property
    def may_have_made_it(self) -> bool:
        """Whether it can be the resource that made its tablespace. Only one that can't be read, and has a status that names none, can't."""
        return self.readable or not self.status_readable or self.tablespace.made_uuid is not None


def judged_nodes(
    nodes: Mapping[str, NodeView | Unknown], declared: Sequence[Declared], checkpoints: Sequence[Checkpoint]
) -> dict[str, NodeView | Unknown]:
    """Returns the nodes' views with the known verdicts on their rows. Checkpoints count beside the status, which may be lost or old."""
    found = dict(nodes)
    for uuid, name in _named_copies(nodes).items():
        makers = [each for each in declared if each.tablespace.made_uuid == uuid and each.status_readable]
        about = makers or [each for each in declared if each.sql_name == name]
        for tablespace in [each.tablespace for each in about] or (None,):
            found = judged(found, uuid, verdicts_in_force(tablespace, uuid, checkpoints, nodes))
        if unreadable := [each.tablespace for each in about if not each.status_readable]:
            found = _unknown(found, uuid, unreadable[0])
    return found


def _named_copies(nodes: Mapping[str, NodeView | Unknown]) -> dict[str, str]:
    """Returns the names of the tablespaces that Tablespace resources can declare, by uuid."""
    copies = (copy for view in nodes.values() if not isinstance(view, Unknown) for copy in view)
    return {copy.uuid: copy.name for copy in copies if copy.name != DEFAULT_TABLESPACE}


def _unknown(nodes: Mapping[str, NodeView | Unknown], uuid: str, unreadable: Tablespace) -> dict[str, NodeView | Unknown]:
    why = Unknown(
        f"it is unknown whether its rows match the log: the status of the Tablespace {unreadable.metadata.name} can't be read "
        f"({', '.join(sorted(_TOLD_IN.intersection(unreadable.unread_fields)))}): correct it, or run the operator version that wrote it"
    )

    def doubted(copy: NodeTablespace) -> NodeTablespace:
        return replace(copy, differs=why) if copy.uuid == uuid and copy.differs is None else copy

    return {node: view if isinstance(view, Unknown) else tuple(map(doubted, view)) for node, view in nodes.items()}
