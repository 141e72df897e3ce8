"""What a reconcile does for each kind of resource: one row a kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from herdkeeper.api import (
    KINDS,
    BookKeeperCluster,
    Checkpoint,
    HerdDBCluster,
    ReplicationAudit,
    ScheduledCheckpoint,
    ScheduledReplicationAudit,
    Tablespace,
    ZooKeeperCluster,
)
from herdkeeper.api.resource import Resource
from herdkeeper.bookkeeper.deletion import plan_bookkeeper_deletion
from herdkeeper.bookkeeper.observe.bookies import observe_bookkeeper, observe_ledgers
from herdkeeper.bookkeeper.plan.bookies import plan_bookkeeper
from herdkeeper.bookkeeper.status import summarize_bookkeeper
from herdkeeper.bookkeeper.validate import bookkeeper_refusals
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.engine.gauges.audits import LAST_AUDITS
from herdkeeper.engine.gauges.drills import forget_drill, show_drill
from herdkeeper.engine.gauges.logs import forget_log, show_log
from herdkeeper.herddb.deletion import plan_herddb_deletion
from herdkeeper.herddb.observe.cluster import observe_herddb
from herdkeeper.herddb.plan.cluster import plan_herddb
from herdkeeper.herddb.status import summarize_herddb
from herdkeeper.herddb.tablespace.deletion import plan_tablespace_deletion
from herdkeeper.herddb.tablespace.observe import observe_tablespace
from herdkeeper.herddb.tablespace.plan import plan_tablespace
from herdkeeper.herddb.tablespace.status import summarize_tablespace
from herdkeeper.herddb.tablespace.validate import tablespace_refusals
from herdkeeper.herddb.validate import herddb_refusals
from herdkeeper.jobs.drill.plan import plan_scheduled_checkpoint
from herdkeeper.jobs.drill.status import own_drill
from herdkeeper.jobs.observe import observe_audit, observe_checkpoint
from herdkeeper.jobs.plan import plan_audit, plan_checkpoint
from herdkeeper.jobs.removal.plan import plan_removal
from herdkeeper.jobs.schedule.observe import observe_schedule
from herdkeeper.jobs.schedule.plan import plan_schedule
from herdkeeper.jobs.schedule.status import summarize_scheduled_audit, summarize_scheduled_checkpoint
from herdkeeper.jobs.status import summarize_audit, summarize_checkpoint
from herdkeeper.jobs.validate import audit_refusals, checkpoint_refusals, schedule_refusals
from herdkeeper.planning.actions import Plan
from herdkeeper.planning.identities import with_identities
from herdkeeper.planning.network_policies import with_network_policies
from herdkeeper.planning.pruning import safe_from_pruning
from herdkeeper.planning.refusal import Refusal
from herdkeeper.planning.summary import Summary
from herdkeeper.settings import Settings
from herdkeeper.shared import names
from herdkeeper.shared.names import ObjectKey
from herdkeeper.zookeeper.deletion import plan_zookeeper_deletion
from herdkeeper.zookeeper.observe import observe_zookeeper
from herdkeeper.zookeeper.plan import plan_zookeeper
from herdkeeper.zookeeper.status import summarize_zookeeper
from herdkeeper.zookeeper.validate import zookeeper_refusals

KIND_OF: Mapping[str, type[Resource]] = {kind.KIND: kind for kind in KINDS}


@dataclass(frozen=True)
class Steps:
    """How one kind is reconciled. Each function takes the resource and what was observed of it.

    `summarize` also takes the status fields that the plan decides. `plan_deletion` also takes the seconds that the deletion has waited for
    a silent backend; it is None for kinds without data of their own. `observe_ledgers` adds what a plan needs rarely. `show_gauges`
    sets the kind's own gauges; it also takes the fields of the new status. `remove_gauges` removes those of a resource that is gone.
    """

    observe: Callable[[Any, ClusterReader], Any]
    refusals: Callable[[Any, Any], tuple[Refusal, ...]]
    plan: Callable[[Any, Any], Plan]
    summarize: Callable[[Any, Any, Mapping[str, Any]], Summary]
    plan_deletion: Callable[[Any, Any, float], Plan] | None = None
    observe_ledgers: Callable[[Any, ClusterReader], Any] | None = None
    show_gauges: Callable[[Any, Any, Mapping[str, Any]], None] = lambda *_: None
    remove_gauges: Callable[[ObjectKey], None] = lambda _: None


def steps_by_kind(settings: Settings) -> Mapping[str, Steps]:
    """A row for each kind."""
    spark, driver_role = settings.images.spark, settings.driver_role

    def servers_plan(plan: Plan, cluster: Any, seen: Any, component: str) -> Plan:
        """Certificates come first, since pods mount them. NetworkPolicies come last, since nothing waits for them."""
        plan = safe_from_pruning(with_identities(plan, cluster, component, seen.identities), seen.objects)
        return with_network_policies(plan, cluster, seen.objects, settings.namespace)

    return {
        ZooKeeperCluster.KIND: Steps(
            observe_zookeeper,
            lambda _, ensemble: zookeeper_refusals(ensemble),
            lambda cluster, ensemble: servers_plan(plan_zookeeper(ensemble), cluster, ensemble, names.ZOOKEEPER_COMPONENT),
            lambda _, ensemble, __: summarize_zookeeper(ensemble),
            lambda _, ensemble, __: plan_zookeeper_deletion(ensemble),
        ),
        BookKeeperCluster.KIND: Steps(
            observe_bookkeeper,
            lambda cluster, _: bookkeeper_refusals(cluster),
            lambda cluster, fleet: servers_plan(plan_bookkeeper(fleet, spark), cluster, fleet, names.BOOKIE_COMPONENT),
            lambda _, fleet, __: summarize_bookkeeper(fleet),
            lambda _, fleet, waited: plan_bookkeeper_deletion(fleet, waited),
            observe_ledgers,
            show_gauges=lambda cluster, *_: LAST_AUDITS.show_cluster(cluster),
            remove_gauges=LAST_AUDITS.forget,
        ),
        HerdDBCluster.KIND: Steps(
            observe_herddb,
            lambda cluster, fleet: herddb_refusals(cluster, fleet.bookkeeper),
            lambda cluster, fleet: servers_plan(plan_herddb(fleet), cluster, fleet, names.HERDDB_COMPONENT),
            lambda _, fleet, __: summarize_herddb(fleet),
            lambda _, fleet, waited: plan_herddb_deletion(fleet, waited),
        ),
        Tablespace.KIND: Steps(
            observe_tablespace,
            lambda tablespace, seen: tablespace_refusals(tablespace, seen.herddb, seen.others, seen.unread_others),
            lambda _, seen: plan_tablespace(seen, spark, driver_role),
            lambda _, seen, __: summarize_tablespace(seen),
            lambda _, seen, waited: plan_tablespace_deletion(seen, waited),
            show_gauges=lambda tablespace, seen, _: show_log(tablespace, seen.standings),
            remove_gauges=forget_log,
        ),
        Checkpoint.KIND: Steps(
            observe_checkpoint,
            lambda checkpoint, seen: checkpoint_refusals(checkpoint, seen.tablespace),
            lambda _, seen: plan_checkpoint(seen, spark, driver_role),
            lambda _, seen, __: summarize_checkpoint(seen),
            lambda _, seen, waited: plan_removal(seen, spark, waited),
        ),
        ScheduledCheckpoint.KIND: Steps(
            observe_schedule,
            lambda schedule, _: schedule_refusals(schedule),
            lambda _, series: plan_scheduled_checkpoint(series, spark),
            lambda _, series, decided: summarize_scheduled_checkpoint(series, decided),
            show_gauges=lambda schedule, series, fields: show_drill(schedule, own_drill(series, fields)),
            remove_gauges=forget_drill,
        ),
        ReplicationAudit.KIND: Steps(
            observe_audit,
            lambda audit, _: audit_refusals(audit),
            lambda _, seen: plan_audit(seen, spark, driver_role),
            lambda _, seen, __: summarize_audit(seen),
            show_gauges=_show_audit,
        ),
        ScheduledReplicationAudit.KIND: Steps(
            observe_schedule,
            lambda schedule, _: schedule_refusals(schedule),
            lambda _, series: plan_schedule(series),
            lambda _, series, __: summarize_scheduled_audit(series),
        ),
    }


def _show_audit(audit: ReplicationAudit, seen: Any, fields: Mapping[str, Any]) -> None:
    """Not of a cluster that is gone: nobody would take the gauges away."""
    if seen.bookkeeper is not None:
        LAST_AUDITS.show(audit, fields, seen.bookkeeper)
