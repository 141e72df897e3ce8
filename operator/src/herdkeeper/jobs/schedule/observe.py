"""Observes a schedule and its runs."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator
from dataclasses import replace

from herdkeeper.api import (
    BookKeeperCluster,
    Checkpoint,
    HerdDBCluster,
    ReplicationAudit,
    ScheduledCheckpoint,
    ScheduledReplicationAudit,
    Tablespace,
)
from herdkeeper.api.resource import API_VERSION
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.clients.kubernetes import Unreadable
from herdkeeper.herddb.log.checkpoint_base import is_made_for_a_drill
from herdkeeper.herddb.log.identity import instance_of
from herdkeeper.herddb.tablespace.observe import checkpoints_of
from herdkeeper.jobs.drill.state import CheckpointSeries, DrillObserved, drilled_checkpoint
from herdkeeper.jobs.schedule.build import kind_of_runs
from herdkeeper.jobs.schedule.state import Run, RunSeries, run_of
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.objects import Objects, is_owned_by
from herdkeeper.shared.problem import Problem
from herdkeeper.shared.unknown import Unknown
from herdkeeper.spark.observe_places import observe_destination

DRILL_OBJECTS = (("batch/v1", "Job"), ("v1", "Pod"))


def observe_schedule(schedule: ScheduledCheckpoint | ScheduledReplicationAudit, reader: ClusterReader) -> RunSeries:
    """Returns the schedule with its runs (not those of an earlier one of its name), the time, and whose archive may need them."""
    kind, _ = kind_of_runs(schedule)
    found = reader.kubernetes.owned(schedule.KIND, schedule.key, ((API_VERSION, kind.KIND),))
    mine = [document for document in found.of_kind(kind.KIND) if is_owned_by(document, schedule.metadata.uid)]
    now = datetime.datetime.now(datetime.UTC)
    # Of one that is over the status tells enough, e.g. if an earlier version's schema let its spec in, and it can't be corrected.
    unread = (each.rest for each in (reader.kubernetes.model(kind, document) for document in mine) if isinstance(each, Unreadable))
    over = {each.metadata.name: each for each in unread if each.is_over and not each.unread_fields}
    made = reader.kubernetes.models(kind, (document for document in mine if document["metadata"]["name"] not in over))
    runs: tuple[Run, ...] | Unknown = made if isinstance(made, Unknown) else _runs((*made, *over.values()))
    # A run of its own that lost its labels is none of theirs: its time must have no second run.
    others = (one for one in reader.kubernetes.documents(kind, schedule.key.namespace) if not is_owned_by(one, schedule.metadata.uid))
    taken = frozenset(one["metadata"]["name"] for one in others)
    if not isinstance(schedule, ScheduledCheckpoint):
        key = ObjectKey(schedule.metadata.namespace, schedule.spec.template.book_keeper_ref.name)
        return RunSeries(schedule, runs, now, audited=reader.kubernetes.readable(BookKeeperCluster, key), taken=taken)
    series = CheckpointSeries(schedule, runs, now, taken=taken, restored=frozenset(_restored(schedule.metadata.namespace, reader)))
    if isinstance(made, Unknown):
        return series
    return _with_drill(_with_tablespace(series, reader), tuple(each for each in made if isinstance(each, Checkpoint)), reader)


def _runs(made: Iterable[Checkpoint | ReplicationAudit]) -> tuple[Run, ...]:
    runs = (run_of(each) for each in made if not (isinstance(each, Checkpoint) and is_made_for_a_drill(each)))
    return tuple(sorted(runs, key=lambda run: (run.due, run.name)))


def _restored(namespace: str, reader: ClusterReader) -> Iterator[str]:
    """A restore that has not begun finds its Checkpoint by name. A Tablespace that can't be read may still be made from that."""
    for document in reader.kubernetes.documents(Tablespace, namespace):
        bootstrap = (document.get("spec") or {}).get("bootstrap") or {}
        named = (bootstrap.get("checkpoint") or {}).get("name")
        found = reader.kubernetes.model(Tablespace, document)
        if named is not None and (isinstance(found, Unreadable) or found.is_restoring):
            yield named


def _with_tablespace(series: CheckpointSeries, reader: ClusterReader) -> CheckpointSeries:
    """It is needed to know which checkpoints its archive needs."""
    key = ObjectKey(series.schedule.metadata.namespace, series.schedule.spec.template.tablespace_ref.name)
    document = reader.kubernetes.document(API_VERSION, Tablespace.KIND, key)
    if document is None:
        return series
    found = reader.kubernetes.models(Tablespace, [document])
    if isinstance(found, Unknown):
        return replace(series, tablespace=found)
    (tablespace,) = found
    if tablespace.spec.log.archive is None:
        return replace(series, tablespace=tablespace)
    checkpoints, unread = checkpoints_of(tablespace, reader)
    known = checkpoints if unread is None else unread
    return replace(series, tablespace=tablespace, checkpoints=known, instance_id=_instance(tablespace, reader))


def _instance(tablespace: Tablespace, reader: ClusterReader) -> str | Unknown:
    namespace, name = tablespace.metadata.namespace, tablespace.spec.herd_db_ref.name
    herddb = reader.kubernetes.readable(HerdDBCluster, ObjectKey(namespace, name))
    if herddb is None:
        return Unknown(f"the HerdDBCluster {name} does not exist or can't be read, so the log's owner is unknown")
    bookkeeper = herddb.spec.book_keeper_ref.name
    return instance_of(reader.kubernetes.readable(BookKeeperCluster, ObjectKey(namespace, bookkeeper)), bookkeeper)


def _with_drill(series: CheckpointSeries, checkpoints: tuple[Checkpoint, ...], reader: ClusterReader) -> CheckpointSeries:
    """Jobs are read while a drill is declared or remembered: one that is no longer declared is stopped."""
    schedule, tablespace = series.schedule, series.tablespace
    if schedule.spec.drill is None and (schedule.status is None or schedule.status.drills_since is None):
        return replace(series, drill=DrillObserved(Objects({}), checkpoints))
    found = reader.kubernetes.owned(schedule.KIND, schedule.key, DRILL_OBJECTS)
    mine = {of: item for of, item in found.items.items() if of[0] != "Job" or is_owned_by(item, schedule.metadata.uid)}
    herddb = None
    if schedule.spec.drill is not None and isinstance(tablespace, Tablespace):
        herddb = reader.kubernetes.readable(HerdDBCluster, ObjectKey(schedule.key.namespace, tablespace.spec.herd_db_ref.name))
    return replace(series, drill=DrillObserved(Objects(mine), checkpoints, herddb, _unusable(schedule, checkpoints, reader)))


def _unusable(schedule: ScheduledCheckpoint, checkpoints: tuple[Checkpoint, ...], reader: ClusterReader) -> Problem | None:
    """Returns why the drilled Checkpoint can't be read, as far as its Secrets show."""
    name = drilled_checkpoint(schedule)
    drilled = next((each for each in checkpoints if each.metadata.name == name), None)
    destination = drilled.spec.destination if drilled is not None else None
    field = f"the Checkpoint {name}: spec.destination."
    return observe_destination(destination, field, reader, namespace=schedule.metadata.namespace, writes=False)
