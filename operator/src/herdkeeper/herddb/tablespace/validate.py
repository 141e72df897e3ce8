"""Refuses an invalid Tablespace."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from herdkeeper.api import HerdDBCluster, Tablespace
from herdkeeper.herddb.tablespace.full_check import timing_of
from herdkeeper.herddb.tablespace.judged_nodes import Declared
from herdkeeper.planning.refusal import Refusal, name_refusals, timetable_refusals
from herdkeeper.shared import names

_SQL_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")


def tablespace_refusals(
    tablespace: Tablespace, herddb: HerdDBCluster | None, others: Iterable[Tablespace] = (), unread: Iterable[Declared] = ()
) -> tuple[Refusal, ...]:
    """Returns what is invalid in a Tablespace.

    `herddb` is the HerdDBCluster that it refers to (or None). `others` are the Tablespaces of the namespace, `unread` those of the
    HerdDBCluster that can't be read. One of them may already use the SQL name: of the latter not one that made nothing, if this one did.
    """
    same = (other for other in others if other.spec.herd_db_ref == tablespace.spec.herd_db_ref and other.sql_name == tablespace.sql_name)
    mine = tablespace.made_uuid is not None
    unread = (each for each in unread if each.sql_name == tablespace.sql_name and (not mine or each.may_have_made_it))
    holders = (*same, *(each.tablespace for each in unread))
    return (
        *_sql_name_refusals(tablespace),
        *name_refusals(tablespace.spec),
        *_taken_sql_name(tablespace, holders),
        *_replicas_beyond_nodes(tablespace, herddb),
        *_preferred_leader_refusals(tablespace, herddb),
        *(timetable_refusals(timing, "spec.fullCheck") if (timing := timing_of(tablespace)) is not None else ()),
    )


def _sql_name_refusals(tablespace: Tablespace) -> Iterator[Refusal]:
    name = tablespace.sql_name
    path = "spec.tablespaceName" if tablespace.spec.tablespace_name else "metadata.name"
    if not _SQL_NAME.fullmatch(name):
        yield Refusal(path, name, "it is not a valid SQL name", "use small letters, digits and `_`, beginning with a letter, at most 63")


def _taken_sql_name(tablespace: Tablespace, holders: Iterable[Tablespace]) -> Iterator[Refusal]:
    """The older resource keeps the name. Both conclude that, in whatever order they are reconciled."""
    mine = tablespace.metadata
    for other in holders:
        # a tablespace that is being dropped keeps its name until it is gone: a new owner would lose it
        holds = other.metadata.deletion_timestamp is None or names.FINALIZER in other.metadata.finalizers
        older = (other.metadata.creation_timestamp, other.metadata.name) < (mine.creation_timestamp, mine.name)
        if other.metadata.name != mine.name and holds and older:
            yield Refusal(
                "spec.tablespaceName",
                tablespace.sql_name,
                f"the Tablespace {other.metadata.name} already declares it in the HerdDBCluster {tablespace.spec.herd_db_ref.name}",
                "delete this resource and create one with another tablespaceName",
            )


def _replicas_beyond_nodes(tablespace: Tablespace, herddb: HerdDBCluster | None) -> Iterator[Refusal]:
    """Leaving nodes count: the HerdDBCluster waits then, and a serving tablespace is not refused."""
    if herddb is not None and tablespace.spec.replicas > (nodes := len(herddb.known_nodes)):
        yield Refusal(
            "spec.replicas",
            str(tablespace.spec.replicas),
            f"the HerdDBCluster {herddb.metadata.name} has {nodes} SQL nodes, and each holds one replica",
            f"lower it to at most {nodes}, or raise spec.replicas of {herddb.metadata.name}",
        )


def _preferred_leader_refusals(tablespace: Tablespace, herddb: HerdDBCluster | None) -> Iterator[Refusal]:
    preferred, failback = tablespace.spec.preferred_leader, tablespace.spec.failback
    if preferred is None and failback != "Never":
        yield Refusal("spec.failback", failback, "no leader is preferred", "set spec.preferredLeader, or failback: Never")
    if preferred is None or herddb is None:
        return
    nodes = herddb.known_nodes
    if preferred not in nodes:
        yield Refusal(
            "spec.preferredLeader",
            preferred,
            f"it is not a SQL node of the HerdDBCluster {herddb.metadata.name}",
            f"name one of {', '.join(nodes)}",
        )
