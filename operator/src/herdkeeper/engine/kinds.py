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
from herdkeeper.jobs.audit.state import AuditRun
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
from herdkeeper.planning.network_policies import admit_moved_operator, with_network_policies
from herdkeeper.planning.pruning import safe_from_pruning
from herdkeeper.planning.refusal import Refusal
from herdkeeper.planning.summary import Summary
from herdkeeper.settings import Settings
from herdkeeper.shared.names import ObjectKey
from herdkeeper.zookeeper.deletion import plan_zookeeper_deletion
from herdkeeper.zookeeper.observe import observe_zookeeper
from herdkeeper.zookeeper.plan import plan_zookeeper
from herdkeeper.zookeeper.status import summarize_zookeeper
from herdkeeper.zookeeper.validate import zookeeper_refusals

KIND_OF: Mapping[str, type[Resource]] = {kind.KIND: kind for kind in KINDS}


@dataclass(frozen=True)
class Steps:
    """How one kind is reconciled. What was observed holds the resource, too.

    `summarize` also takes the status fields that the plan decides. `plan_refused` is the plan of a refused resource, which uses nothing of
    its spec. `plan_deletion` also takes the seconds that the deletion has waited for a silent backend; it is None for kinds without data of
    their own. `observe_ledgers` adds what a plan needs rarely. `show_gauges` sets the kind's own gauges; it also takes the fields of the
    new status. `remove_gauges` removes those of a resource that is gone.
    """

    observe: Callable[[Any, ClusterReader], Any]
    refusals: Callable[[Any], tuple[Refusal, ...]]
    plan: Callable[[Any], Plan]
    summarize: Callable[[Any, Mapping[str, Any]], Summary]
    plan_deletion: Callable[[Any, float], Plan] | None = None
    plan_refused: Callable[[Any], Plan] = lambda _: Plan()
    observe_ledgers: Callable[[Any, ClusterReader], Any] | None = None
    show_gauges: Callable[[Any, Mapping[str, Any]], None] = lambda *_: None
    remove_gauges: Callable[[ObjectKey], None] = lambda _: None


def steps_by_kind(settings: Settings) -> Mapping[str, Steps]:
    """A row for each kind."""
    spark, driver_role = settings.images.spark, settings.driver_role

    def servers_plan(plan: Plan, seen: Any) -> Plan:
        """Certificates come first, since pods mount them. NetworkPolicies come last, since nothing waits for them."""
        plan = safe_from_pruning(with_identities(plan, seen.cluster, seen.identities), seen.objects)
        return with_network_policies(plan, seen.cluster, seen.objects, settings.namespace)

    def refused_plan(seen: Any) -> Plan:
        """Without access to its servers, the operator could not even replace a lost leader of a refused database."""
        return Plan(admit_moved_operator(seen.objects, settings.namespace))

    return {
        ZooKeeperCluster.KIND: Steps(
            observe_zookeeper,
            zookeeper_refusals,
            lambda ensemble: servers_plan(plan_zookeeper(ensemble), ensemble),
            lambda ensemble, _: summarize_zookeeper(ensemble),
            lambda ensemble, _: plan_zookeeper_deletion(ensemble),
            refused_plan,
        ),
        BookKeeperCluster.KIND: Steps(
            observe_bookkeeper,
            lambda fleet: bookkeeper_refusals(fleet.cluster),
            lambda fleet: servers_plan(plan_bookkeeper(fleet, spark), fleet),
            lambda fleet, _: summarize_bookkeeper(fleet),
            plan_bookkeeper_deletion,
            refused_plan,
            observe_ledgers,
            show_gauges=lambda fleet, _: LAST_AUDITS.show_cluster(fleet.cluster),
            remove_gauges=LAST_AUDITS.forget,
        ),
        HerdDBCluster.KIND: Steps(
            observe_herddb,
            lambda fleet: herddb_refusals(fleet.cluster, fleet.bookkeeper),
            lambda fleet: servers_plan(plan_herddb(fleet), fleet),
            lambda fleet, _: summarize_herddb(fleet),
            plan_herddb_deletion,
            refused_plan,
        ),
        Tablespace.KIND: Steps(
            observe_tablespace,
            lambda seen: tablespace_refusals(seen.tablespace, seen.herddb, seen.others, seen.unread_others),
            lambda seen: plan_tablespace(seen, spark, driver_role),
            lambda seen, _: summarize_tablespace(seen),
            plan_tablespace_deletion,
            show_gauges=lambda seen, _: show_log(seen.tablespace, seen.standings),
            remove_gauges=forget_log,
        ),
        Checkpoint.KIND: Steps(
            observe_checkpoint,
            lambda seen: checkpoint_refusals(seen.checkpoint, seen.tablespace),
            lambda seen: plan_checkpoint(seen, spark, driver_role),
            lambda seen, _: summarize_checkpoint(seen),
            lambda seen, waited: plan_removal(seen, spark, waited),
        ),
        ScheduledCheckpoint.KIND: Steps(
            observe_schedule,
            lambda series: schedule_refusals(series.schedule),
            lambda series: plan_scheduled_checkpoint(series, spark),
            summarize_scheduled_checkpoint,
            show_gauges=lambda series, fields: show_drill(series.schedule, own_drill(series, fields)),
            remove_gauges=forget_drill,
        ),
        ReplicationAudit.KIND: Steps(
            observe_audit,
            lambda seen: audit_refusals(seen.audit),
            lambda seen: plan_audit(seen, spark, driver_role),
            lambda seen, _: summarize_audit(seen),
            show_gauges=_show_audit,
        ),
        ScheduledReplicationAudit.KIND: Steps(
            observe_schedule,
            lambda series: schedule_refusals(series.schedule),
            plan_schedule,
            lambda series, _: summarize_scheduled_audit(series),
        ),
    }


def _show_audit(seen: AuditRun, fields: Mapping[str, Any]) -> None:
    """Not of a cluster that is gone: nobody would take the gauges away."""
    if seen.bookkeeper is not None:
        LAST_AUDITS.show(seen.audit, fields, seen.bookkeeper)
