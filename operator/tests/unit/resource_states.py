"""The states that a resource of each kind can be in, as the API server stores them, and what a tool should make of each.

The statuses are made by the operator's own plans and summaries, from the worlds that their tests begin with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from situations import live, member_claims, objects, pods, ready, with_metadata, with_spec, with_status
from test_audit_end import seen as ended_audit
from test_audit_window import AUDIT as AUDIT_BY_NIGHT
from test_audit_window import OPENS
from test_audit_window import seen as by_night
from test_plan_bookkeeper import CLUSTER as BOOKIES
from test_plan_bookkeeper import HEALTHY, STORE, TOKENS, WITHOUT_0, claims, settled
from test_plan_bookkeeper import PODS as BOOKIE_PODS
from test_plan_herddb import CLUSTER as DATABASE
from test_plan_herddb import SEEN as NEW_DATABASE
from test_plan_herddb import SETTLED as DATABASE_SERVES
from test_plan_job import AUDIT, AUDITED, CHECKPOINT
from test_plan_job import SEEN as FOR_RUNS
from test_plan_restore import ABSENT as NOTHING_RESTORED
from test_plan_restore import BEGUN, DECLARED, with_job
from test_plan_schedule import AUDITS, CHECKPOINTS, LAST, at, run
from test_plan_tablespace import NEW as NO_TABLESPACE
from test_plan_tablespace import NODES, TABLESPACE, UNMADE, copy
from test_plan_tablespace import SETTLED as TABLESPACE_SERVES
from test_plan_zookeeper import CLUSTER as ENSEMBLE
from test_plan_zookeeper import members, membership, saw
from test_plan_zookeeper import settled as ensemble_settled

from herdkeeper.api.resource import API_VERSION, NO_STATUS, Resource
from herdkeeper.bookkeeper.build.bookies import build_autorecovery
from herdkeeper.bookkeeper.plan.bookies import plan_bookkeeper
from herdkeeper.bookkeeper.state.bookies import MetadataAbsent
from herdkeeper.bookkeeper.state.fleet import BookieFleet
from herdkeeper.bookkeeper.status import summarize_bookkeeper
from herdkeeper.herddb.plan.cluster import plan_herddb
from herdkeeper.herddb.status import summarize_herddb
from herdkeeper.herddb.tablespace.plan import plan_tablespace
from herdkeeper.herddb.tablespace.status import summarize_tablespace
from herdkeeper.jobs.drill.plan import plan_scheduled_checkpoint
from herdkeeper.jobs.drill.state import CheckpointSeries
from herdkeeper.jobs.plan import plan_audit, plan_checkpoint
from herdkeeper.jobs.schedule.plan import plan_schedule
from herdkeeper.jobs.schedule.state import RunSeries
from herdkeeper.jobs.schedule.status import summarize_scheduled_audit, summarize_scheduled_checkpoint
from herdkeeper.jobs.status import summarize_audit, summarize_checkpoint
from herdkeeper.planning.actions import Plan, Wait
from herdkeeper.planning.refusal import Refusal
from herdkeeper.planning.status import Failed, refused_status, status_document
from herdkeeper.planning.summary import Summary
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown
from herdkeeper.zookeeper.plan import plan_zookeeper
from herdkeeper.zookeeper.status import summarize_zookeeper

NOW = "2026-11-21T12:00:00Z"
Json = dict[str, Any]


class Verdict(Enum):
    """What tools should make of a resource: kstatus' word, and that of Argo CD."""

    CURRENT = "Current", "Healthy"
    SUSPENDED = "Current", "Suspended"
    IN_PROGRESS = "InProgress", "Progressing"
    FAILED = "Failed", "Degraded"
    STOPPED = "Failed", "Suspended"
    TERMINATING = "Terminating", "Progressing"

    @property
    def kstatus(self) -> str:
        return str(self.value[0])

    @property
    def argo(self) -> str:
        return str(self.value[1])


@dataclass(frozen=True)
class State:
    """A resource as it is read from the API server."""

    name: str
    document: Json
    verdict: Verdict

    @property
    def kind(self) -> str:
        return str(self.document["kind"])


@dataclass(frozen=True)
class Kind:
    """How the operator plans and sums up one kind, and a resource of it that declares something new."""

    plan: Callable[[Any, Any], Plan]
    summarize: Callable[[Any, Any], Summary]
    declared: Resource


IMAGE = "spark:1"


def _with(field: str, function: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """The same function of a resource, and of what was observed beside another declaration of it."""
    return lambda declared, seen: function(replace(seen, **{field: declared}))


KINDS = {
    kind.declared.KIND: kind
    for kind in (
        Kind(_with("cluster", plan_zookeeper), _with("cluster", summarize_zookeeper), ENSEMBLE),
        Kind(_with("cluster", lambda fleet: plan_bookkeeper(fleet, IMAGE)), _with("cluster", summarize_bookkeeper), BOOKIES),
        Kind(_with("cluster", plan_herddb), _with("cluster", summarize_herddb), DATABASE),
        Kind(_with("tablespace", lambda seen: plan_tablespace(seen, IMAGE)), _with("tablespace", summarize_tablespace), TABLESPACE),
        Kind(_with("checkpoint", lambda run: plan_checkpoint(run, IMAGE)), _with("checkpoint", summarize_checkpoint), CHECKPOINT),
        Kind(
            _with("schedule", lambda series: plan_scheduled_checkpoint(series, IMAGE)),
            _with("schedule", lambda series: summarize_scheduled_checkpoint(series, {})),
            CHECKPOINTS,
        ),
        Kind(_with("audit", lambda run: plan_audit(run, IMAGE)), _with("audit", summarize_audit), AUDIT),
        Kind(_with("schedule", plan_schedule), _with("schedule", summarize_scheduled_audit), AUDITS),
    )
}


def stored_document(resource: Resource, status: Json) -> Json:
    """The resource with a status, as the API server answers it."""
    metadata = resource.metadata.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {"apiVersion": API_VERSION, "kind": resource.KIND, "metadata": metadata, "status": status}


def reconciled(resource: Resource, seen: Any, plan: Plan | None = None, failed: Failed | None = None) -> Json:
    """The resource after one look at it; with `plan`, after another plan than the one that follows from what was seen."""
    kind = KINDS[resource.KIND]
    planned = kind.plan(resource, seen) if plan is None else plan
    return stored_document(resource, status_document(resource, kind.summarize(resource, seen), planned, failed, NOW))


def states() -> Iterator[State]:
    """Every state of every kind."""
    for kind in KINDS.values():
        yield from _of_each(kind.declared)
    for of_kind in (_of_ensembles, _of_bookies, _of_databases, _of_tablespaces, _of_restores, _of_checkpoints, _of_audits, _of_schedules):
        yield from of_kind()
    yield from _stopped()


def _of_each(declared: Resource) -> Iterator[State]:
    declared = with_metadata(declared, generation=1)
    wrong = (Refusal("spec.x", "4", "even", "set 3"),)
    yield State("nobody has looked at it", stored_document(declared, NO_STATUS), Verdict.IN_PROGRESS)
    yield State("its spec is refused", stored_document(declared, refused_status(declared, wrong, NOW)), Verdict.FAILED)
    changed = with_metadata(ready(declared), generation=2)
    earlier = {"observedGeneration": 1, "conditions": [each.model_dump(by_alias=True) for each in changed.status.conditions]}
    yield State("nobody has looked at its change", stored_document(changed, earlier), Verdict.IN_PROGRESS)
    deleted = with_metadata(changed, deletion_timestamp=NOW)
    yield State("it is being deleted", stored_document(deleted, earlier), Verdict.TERMINATING)


def _of_ensembles() -> Iterator[State]:
    committed = membership()
    founded = with_status(ENSEMBLE, founded=True)
    claimed = member_claims("true", "true", "true")
    serving = saw(claimed, ensemble_settled(committed), members(0, 1, 2), committed=committed)
    yield State("new", reconciled(ENSEMBLE, saw(serving=())), Verdict.IN_PROGRESS)
    yield State("serves", reconciled(founded, serving), Verdict.CURRENT)
    rolls = saw(claimed, ensemble_settled(committed), members(0, 1, 2, revision="zk-zookeeper-old"), committed=committed)
    yield State("serves, and is restarted with another template", reconciled(founded, rolls), Verdict.IN_PROGRESS)
    grown = with_spec(founded, replicas=5)
    yield State("serves, and grows", reconciled(grown, serving), Verdict.IN_PROGRESS)
    away = saw(claimed, ensemble_settled(committed), members(0, 2), serving=(0, 2), committed=committed)
    yield State("a member is away", reconciled(founded, away), Verdict.IN_PROGRESS)
    silent = saw(claimed, ensemble_settled(committed), members(2), serving=(), committed=committed)
    lost = replace(silent, membership=Unknown("no answer"))
    yield State("its quorum is lost", reconciled(founded, lost), Verdict.FAILED)
    unread = replace(serving, membership=Unknown("no answer"))
    yield State("its membership can't be read", reconciled(founded, unread), Verdict.IN_PROGRESS)
    yield State("a step fails", reconciled(founded, serving, failed=Failed("no")), Verdict.IN_PROGRESS)


def _of_bookies() -> Iterator[State]:
    recovery = _running_autorecovery()
    parts = (settled(), *claims(0, 1, 2, 3), pods(BOOKIE_PODS), recovery)
    seen = BookieFleet(BOOKIES, objects(*parts), STORE, HEALTHY, TOKENS)
    known = with_status(BOOKIES, instance_id="an-instance", next_bookie=4)
    missing = replace(seen, objects=objects(), store=Problem(Reason.WAITING_FOR_ZOOKEEPER, "not there"), metadata=MetadataAbsent())
    yield State("its ensemble is missing", reconciled(BOOKIES, missing), Verdict.IN_PROGRESS)
    new = replace(seen, objects=objects(), metadata=MetadataAbsent())
    yield State("new", reconciled(BOOKIES, new), Verdict.IN_PROGRESS)
    yield State("serves", reconciled(known, seen), Verdict.CURRENT)
    yield State("a bookie is away", reconciled(known, replace(seen, metadata=WITHOUT_0)), Verdict.IN_PROGRESS)
    yield State("autorecovery is away", reconciled(known, replace(seen, objects=objects(*parts[:-1]))), Verdict.IN_PROGRESS)
    yield State("its metadata can't be read", reconciled(known, replace(seen, metadata=Unknown("silence"))), Verdict.IN_PROGRESS)
    yield State("its metadata is gone", reconciled(known, replace(seen, metadata=MetadataAbsent())), Verdict.FAILED)
    grown = with_spec(known, bookies=5)
    yield State("serves, and grows", reconciled(grown, seen), Verdict.IN_PROGRESS)
    drains = Plan.waiting(Reason.MOVING_LEDGERS, "12 ledgers are to be moved")
    yield State("serves, and drains a bookie", reconciled(known, seen, drains), Verdict.IN_PROGRESS)
    recovers = Plan.waiting(Reason.RECOVERING, "ledgers of a lost bookie are copied")
    yield State("serves, and recovers what a lost bookie had", reconciled(known, seen, recovers), Verdict.CURRENT)


def _running_autorecovery() -> dict[tuple[str, str], Json]:
    found = live(build_autorecovery(BOOKIES, STORE.address, {}))
    for (kind, _), item in found.items():
        if kind == "Deployment":
            item["status"] = {"readyReplicas": 1, "observedGeneration": 1, "updatedReplicas": 1}
    return found


def _of_databases() -> Iterator[State]:
    yield State("its bookies are missing", reconciled(DATABASE, replace(NEW_DATABASE, bookkeeper=None)), Verdict.IN_PROGRESS)
    yield State("new", reconciled(DATABASE, NEW_DATABASE), Verdict.IN_PROGRESS)
    yield State("serves", reconciled(DATABASE, DATABASE_SERVES, Plan()), Verdict.CURRENT)
    away = replace(DATABASE_SERVES, objects=objects())
    yield State("its nodes are away", reconciled(DATABASE, away), Verdict.IN_PROGRESS)
    bad = Plan.waiting(Reason.INVALID_SECRET, "the Secret mine has no password")
    yield State("its Secret is wrong", reconciled(DATABASE, DATABASE_SERVES, bad), Verdict.FAILED)
    later = Plan.waiting(Reason.WAITING_FOR_OTHERS, "a bookie is restarted")
    yield State("serves, and is restarted after others", reconciled(DATABASE, DATABASE_SERVES, later), Verdict.IN_PROGRESS)


def _of_tablespaces() -> Iterator[State]:
    made = with_status(TABLESPACE, uuid="a-uuid")
    yield State("its database is missing", reconciled(UNMADE, replace(NO_TABLESPACE, herddb=None)), Verdict.IN_PROGRESS)
    yield State("new", reconciled(UNMADE, NO_TABLESPACE), Verdict.IN_PROGRESS)
    yield State("serves", reconciled(made, TABLESPACE_SERVES, Plan()), Verdict.CURRENT)
    keeps = Plan.waiting(Reason.REPLICA_DIFFERS, "a copy is made anew")
    yield State("serves, and repairs a copy", reconciled(made, TABLESPACE_SERVES, keeps), Verdict.CURRENT)
    boots = replace(TABLESPACE_SERVES, nodes={NODES[0]: (copy("booting", settled=False),), NODES[1]: (copy("follower"),)})
    yield State("nobody leads", reconciled(made, boots), Verdict.IN_PROGRESS)
    half = replace(TABLESPACE_SERVES, nodes={**TABLESPACE_SERVES.nodes, NODES[1]: (copy("booting", settled=False),)})
    yield State("a copy is not settled", reconciled(made, half), Verdict.IN_PROGRESS)
    unread = replace(TABLESPACE_SERVES, record=Unknown("silence"))
    yield State("its record can't be read", reconciled(made, unread), Verdict.IN_PROGRESS)
    yield State("its data is lost", reconciled(made, replace(NO_TABLESPACE, log_left=False)), Verdict.FAILED)
    taken = replace(TABLESPACE_SERVES, objects=objects(), taken=("Secret flights-connection",))
    yield State("a name that it needs is taken", reconciled(made, taken), Verdict.FAILED)


def _of_restores() -> Iterator[State]:
    """Of Tablespaces that are made from a checkpoint."""
    without = replace(NOTHING_RESTORED, checkpoint=None)
    yield State("a restore whose checkpoint is missing", reconciled(DECLARED, without), Verdict.IN_PROGRESS)
    yield State("a restore that is due", reconciled(DECLARED, NOTHING_RESTORED), Verdict.IN_PROGRESS)
    yield State("a restore that runs", reconciled(BEGUN, with_job()), Verdict.IN_PROGRESS)
    yield State("a restore that failed", reconciled(BEGUN, with_job("Failed")), Verdict.FAILED)
    yield State("a restore that is done", reconciled(BEGUN, with_job("Complete"), Plan()), Verdict.CURRENT)


def _job(name: str, condition: str | None, *, begun: bool = True) -> dict[tuple[str, str], Json]:
    conditions = [{"type": condition, "status": "True", "reason": "r", "message": "m"}] if condition else []
    status = {"conditions": conditions, **({"startTime": NOW} if begun else {})}
    metadata = {"name": name, "uid": "job", "ownerReferences": [{"uid": CHECKPOINT.metadata.uid}]}
    return {("Job", name): {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "status": status}}


def _of_checkpoints() -> Iterator[State]:
    job = f"{CHECKPOINT.metadata.name}-checkpoint"
    yield State("its tablespace is missing", reconciled(CHECKPOINT, replace(FOR_RUNS, tablespace=None)), Verdict.IN_PROGRESS)
    yield State("it begins", reconciled(CHECKPOINT, FOR_RUNS), Verdict.IN_PROGRESS)
    for name, condition, verdict in (
        ("it runs", None, Verdict.IN_PROGRESS),
        ("it succeeded", "Complete", Verdict.CURRENT),
        ("it failed", "Failed", Verdict.FAILED),
    ):
        yield State(name, reconciled(CHECKPOINT, replace(FOR_RUNS, objects=objects(_job(job, condition)))), verdict)
    for phase, verdict in (("Succeeded", Verdict.CURRENT), ("Failed", Verdict.FAILED)):
        over = with_status(CHECKPOINT, phase=phase)
        yield State(f"it {phase.lower()}, and its Job is gone", reconciled(over, FOR_RUNS), verdict)


def _of_audits() -> Iterator[State]:
    job = f"{AUDIT.metadata.name}-audit"
    yield State("its bookies are missing", reconciled(AUDIT, replace(AUDITED, bookkeeper=None)), Verdict.IN_PROGRESS)
    yield State("it runs", reconciled(AUDIT, replace(AUDITED, objects=objects(_job(job, None)))), Verdict.IN_PROGRESS)
    yield State("it failed", reconciled(AUDIT, replace(AUDITED, objects=objects(_job(job, "Failed")))), Verdict.FAILED)
    yield State("it did not tell what it found", reconciled(AUDIT, ended_audit()), Verdict.FAILED)
    yield State("it succeeded", reconciled(with_status(AUDIT, phase="Succeeded"), AUDITED), Verdict.CURRENT)
    yield State("it waits for its hours", reconciled(AUDIT_BY_NIGHT, by_night(OPENS.replace(hour=12))), Verdict.IN_PROGRESS)


def _of_schedules() -> Iterator[State]:
    failed = run("10T03:00", "10T03:10", "Failed", message="no bookie")
    for schedule, series in ((CHECKPOINTS, CheckpointSeries), (AUDITS, RunSeries)):
        suspended = with_spec(schedule, suspend=True)
        for name, subject, runs, now, verdict in (
            ("it has made no run yet", schedule, (), "01T13:00", Verdict.CURRENT),
            ("its last run succeeded", schedule, (LAST,), "10T02:00", Verdict.CURRENT),
            ("a run is due", schedule, (LAST,), "10T03:00", Verdict.CURRENT),
            ("a run is not over", schedule, (LAST, run("10T03:00")), "10T03:10", Verdict.CURRENT),
            ("its last run failed", schedule, (LAST, failed), "10T03:11", Verdict.FAILED),
            ("it is suspended", suspended, (LAST,), "10T04:00", Verdict.SUSPENDED),
            ("its runs can't be read", schedule, Unknown("silence"), "10T04:00", Verdict.IN_PROGRESS),
        ):
            yield State(name, reconciled(subject, series(subject, runs, at(now))), verdict)
    overdue = reconciled(CHECKPOINTS, CheckpointSeries(CHECKPOINTS, (LAST,), at("20T02:59")))
    yield State("its newest checkpoint is too old", overdue, Verdict.FAILED)
    idle = reconciled(with_spec(CHECKPOINTS, suspend=True), CheckpointSeries(CHECKPOINTS, (LAST,), at("20T04:00")))
    yield State("it is suspended, and its newest checkpoint is too old", idle, Verdict.FAILED)


def _stopped() -> Iterator[State]:
    """Of resources that an annotation stops."""
    serving = with_metadata(TABLESPACE, generation=2)
    for reason in (Reason.PAUSED, Reason.PLANNED):
        stop = Plan(wait=Wait(reason, "an annotation stops every change"))
        carried_out = with_status(serving, uuid="a-uuid", observed_generation=2)
        yield State(f"{reason}, as declared", reconciled(carried_out, TABLESPACE_SERVES, stop), Verdict.SUSPENDED)
        changed = with_status(serving, uuid="a-uuid", observed_generation=1)
        first = reconciled(changed, TABLESPACE_SERVES, stop)
        yield State(f"{reason}, and then changed", first, Verdict.STOPPED)
        again = with_status(serving, uuid="a-uuid", observed_generation=2, conditions=tuple(first["status"]["conditions"]))
        yield State(f"{reason}, changed, and looked at again", reconciled(again, TABLESPACE_SERVES, stop), Verdict.STOPPED)
        yield State(f"{reason} before it was made", reconciled(with_metadata(UNMADE, generation=1), NO_TABLESPACE, stop), Verdict.STOPPED)
