"""Decides which SQL nodes must not promote themselves, as they do without an operator, and which may again.

HerdDB's own failover ignores verdicts. A replica that differs is removed, but only once the leader leads and the others are settled. Until
then its node keeps a bar on its disk, with the LSN at which it differed. A leader gets one, too: it leads on, but follows one day. Only a
Checkpoint's verdict about a later LSN, or the end of the replica, lifts it.
"""

from __future__ import annotations

from collections.abc import Mapping

from herdkeeper.codecs.herddb.tablespace import TablespaceRecord
from herdkeeper.herddb.state.cluster import NodeTablespace
from herdkeeper.herddb.tablespace.verdicts import Verdict
from herdkeeper.planning.actions import BarPromotion
from herdkeeper.shared.unknown import Unknown


def promotion_bars(
    herddb: str,
    record: TablespaceRecord,
    copies: Mapping[str, NodeTablespace | Unknown | None],
    verdicts: Mapping[str, Verdict],
) -> tuple[BarPromotion, ...]:
    """Returns the orders to the nodes of the HerdDBCluster `herddb`.

    `copies` is their view of the tablespace (None: nothing), `verdicts` what is known of their rows. Nodes that don't answer, or whose
    program reports no bar, get no order.
    """
    asked = (_order(herddb, record, copies.get(node), verdict) for node, verdict in sorted(verdicts.items()))
    return tuple(order for order in asked if order is not None)


def _order(herddb: str, record: TablespaceRecord, copy: NodeTablespace | Unknown | None, verdict: Verdict) -> BarPromotion | None:
    if not isinstance(copy, NodeTablespace) or copy.uuid != record.uuid:
        return None
    bar = verdict.node in (record.leader, *record.replicas) and not verdict.equal and (copy.barred is False or _tells_less(copy, verdict))
    if bar:
        return BarPromotion(herddb, verdict.node, record.name, record.uuid, True, verdict.outlives, f"it {verdict.sentence}")
    if copy.barred is True and verdict.equal and not isinstance(copy.barred_until, Unknown):
        return BarPromotion(herddb, verdict.node, record.name, record.uuid, False, copy.barred_until, f"it {verdict.sentence}")
    return None


def _tells_less(copy: NodeTablespace, verdict: Verdict) -> bool:
    """Whether the bar on the node's disk would fall to an equal verdict that this one outlives."""
    return isinstance(copy.barred_until, Unknown) or (copy.barred_until is not None and copy.barred_until < verdict.outlives)
