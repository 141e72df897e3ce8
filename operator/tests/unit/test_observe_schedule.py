"""Which runs a schedule takes for its own, and that one that can't be read is never overlooked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import yaml
from situations import EXAMPLES, quickstart, ready, with_metadata, with_spec, with_status

from herdkeeper.api import Checkpoint, HerdDBCluster, Tablespace
from herdkeeper.api.restore_drill import Drill
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.clients.kubernetes import KubernetesReader
from herdkeeper.herddb.log.identity import LogIdentity
from herdkeeper.jobs.observe import observe_checkpoint
from herdkeeper.jobs.schedule.observe import DRILL_OBJECTS, observe_schedule
from herdkeeper.jobs.schedule.plan import plan_schedule
from herdkeeper.shared import names
from herdkeeper.shared.objects import Objects
from herdkeeper.shared.time import text_of
from herdkeeper.shared.unknown import Unknown
from herdkeeper_e2e.defaulting import stored

DOCUMENTS = yaml.safe_load_all((EXAMPLES / "scheduled-checkpoint.yaml").read_text())
SCHEDULE = with_metadata(stored(next(document for document in DOCUMENTS if document["kind"] == "ScheduledCheckpoint")), uid="mine")


BELOW = {
    "HerdDBCluster db": quickstart("HerdDBCluster"),
    "BookKeeperCluster bk": with_status(ready(quickstart("BookKeeperCluster")), instance_id="an-instance"),
}


class Cluster(KubernetesReader):
    """Lists these Checkpoints as the schedule's, and those of others besides; has this Tablespace, and these clusters below it."""

    def __init__(
        self,
        *made: dict[str, Any],
        others: Sequence[dict[str, Any]] = (),
        tablespace: dict[str, Any] | None = None,
        clusters: Mapping[str, Any] = BELOW,
    ) -> None:
        super().__init__(None)
        self.made, self.others, self.tablespace, self.clusters = made, others, tablespace, clusters
        self.restored: tuple[dict[str, Any], ...] = ()

    def readable(self, kind, key):
        assert key.namespace == "demo"
        return self.clusters.get(f"{kind.KIND} {key.name}")

    def document(self, api_version, kind, key):
        assert (kind, key.name) == ("Tablespace", "flights")
        return self.tablespace

    def documents(self, kind, namespace):
        if kind is Tablespace:
            return self.restored
        assert kind is Checkpoint
        return (*self.made, *self.others)

    def owned(self, owner_kind, key, kinds):
        assert (owner_kind, key.name, kinds) == ("ScheduledCheckpoint", "flights-nightly", (("herdkeeper.io/v1alpha1", "Checkpoint"),))
        return Objects({("Checkpoint", document["metadata"]["name"]): document for document in self.made})


def checkpoint(name: str, owner: str = "mine", created: str = "2026-05-10T03:00:00Z", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "demo", "uid": f"uid-{name}", "ownerReferences": [{"uid": owner}], "creationTimestamp": created}
    return {"kind": "Checkpoint", "metadata": metadata, "spec": SCHEDULE.spec.template.model_dump(by_alias=True, exclude_none=True), **more}


def runs(*documents: dict[str, Any]) -> Any:
    return observe_schedule(SCHEDULE, ClusterReader(Cluster(*documents), None, None)).runs


def test_a_checkpoint_that_a_restore_names_is_kept_until_the_restore_is_over():
    def from_checkpoint(name: str, **status: Any) -> dict[str, Any]:
        spec = {"herdDBRef": {"name": "db"}, "bootstrap": {"checkpoint": {"name": name}}}
        return {"kind": "Tablespace", "metadata": {"name": f"of-{name}", "namespace": "demo"}, "spec": spec, "status": status}

    cluster = Cluster(checkpoint("a"), checkpoint("b"))
    done = {"phase": "Succeeded", "completedAt": "2026-05-10T04:00:00Z"}
    cluster.restored = (from_checkpoint("a"), from_checkpoint("b", uuid="u", restore=done))
    assert observe_schedule(SCHEDULE, ClusterReader(cluster, None, None)).needed == {"a"}


def test_a_checkpoint_that_a_tablespace_names_which_can_not_be_read_is_kept():
    """Its restore may not have begun, as where another version stored a field that this one refuses."""
    spec = {"herdDBRef": {"name": "db"}, "bootstrap": {"checkpoint": {"name": "a"}}, "replicas": "many"}
    cluster = Cluster(checkpoint("a"), checkpoint("b"))
    cluster.restored = (
        {"kind": "Tablespace", "metadata": {"name": "odd", "namespace": "demo"}, "spec": spec},
        {"kind": "Tablespace", "metadata": {"name": "empty", "namespace": "demo"}, "spec": {}},
        {"kind": "Tablespace", "metadata": {"name": "without", "namespace": "demo"}},
    )
    assert observe_schedule(SCHEDULE, ClusterReader(cluster, None, None)).needed == {"a"}


def test_runs_are_seen_oldest_first_without_those_of_an_earlier_schedule_of_the_same_name():
    seen = runs(checkpoint("a", created="2026-05-11T03:00:00Z"), checkpoint("b"), checkpoint("c", owner="another"))
    assert [run.name for run in seen] == ["b", "a"]


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        ({"spec": {"verify": "Odd"}}, "the Checkpoint b can't be read: spec.tablespaceRef: Field required"),
        ({"status": {"phase": "Odd"}}, "the status of the Checkpoint b can't be read: status.phase"),
    ],
)
def test_one_run_that_can_not_be_read_makes_all_of_them_unknown(broken, told):
    assert runs(checkpoint("a"), checkpoint("b", **broken)) == Unknown(told)


def test_a_finished_run_whose_claim_has_a_name_that_no_object_can_have_stops_no_schedule():
    """An earlier version's schema let the name in."""
    old = checkpoint("b", status={"phase": "Failed", "completedAt": "2026-05-10T04:00:00Z"})
    old["spec"]["destination"] = {"persistentVolumeClaim": {"claimName": "Of_Checkpoints"}}
    schedule = with_metadata(SCHEDULE, creation_timestamp="2026-05-01T00:00:00Z")
    series = observe_schedule(schedule, ClusterReader(Cluster(checkpoint("a"), old), None, None))
    assert [(run.name, run.phase) for run in series.runs] == [("a", "Pending"), ("b", "Failed")]
    assert plan_schedule(series).wait is None


def with_a_password(name: str, **status: Any) -> dict[str, Any]:
    """A Checkpoint whose address an earlier version's schema let in, and which nobody can correct any more."""
    old = checkpoint(name, status=status)
    store = {"uri": "s3://backups", "endpoint": "https://me:secret@s3", "credentialsSecretRef": {"name": "s"}}
    old["spec"]["destination"] = {"objectStore": store}
    return old


ENDED = {"completedAt": "2026-05-10T04:00:00Z"}


def test_a_run_that_is_over_and_whose_spec_can_not_be_read_stops_no_schedule():
    made = {"phase": "Succeeded", "verified": "files re-read", "manifest": "an-instance/a-uuid/manifests/x.json"}
    failed, succeeded = runs(with_a_password("a", phase="Failed", failure="why", **ENDED), with_a_password("b", **made, **ENDED))
    assert (failed.phase, failed.message, text_of(failed.completed)) == ("Failed", "why", "2026-05-10T04:00:00Z")
    assert (succeeded.verified, succeeded.log, succeeded.restorable) == (True, LogIdentity("an-instance", "a-uuid"), False)


@pytest.mark.parametrize("status", [{}, {"phase": "Running", "job": "a-job"}, {"phase": "Failed", "rows": "many"}])
def test_a_run_that_may_go_on_and_can_not_be_read_stops_its_schedule(status):
    assert isinstance(runs(with_a_password("a", **status)), Unknown)


ARCHIVED = {
    "metadata": {"name": "flights", "namespace": "demo"},
    "spec": {"herdDBRef": {"name": "db"}, "log": {"archive": {"destination": {"persistentVolumeClaim": {"claimName": "c"}}}}},
}


def seen(tablespace: dict[str, Any] | None, *others: dict[str, Any]) -> Any:
    return observe_schedule(SCHEDULE, ClusterReader(Cluster(checkpoint("a"), others=others, tablespace=tablespace), None, None))


def of_another(name: str) -> dict[str, Any]:
    found = checkpoint(name)
    return {**found, "spec": {**found["spec"], "tablespaceRef": {"name": "another"}}}


def test_of_a_tablespace_whose_log_is_archived_all_checkpoints_are_seen_whoever_made_them():
    found = seen(ARCHIVED, checkpoint("by-hand", owner="nobody"), of_another("c"))
    assert [made.metadata.name for made in found.checkpoints] == ["a", "by-hand"]
    assert found.tablespace.metadata.name == "flights"
    assert (seen(None).tablespace, seen(None).checkpoints) == (None, ())


@pytest.mark.parametrize(
    ("clusters", "told"),
    [
        (BELOW, "an-instance"),
        ({}, Unknown("the HerdDBCluster db does not exist or can't be read, so the log's owner is unknown")),
        (
            {name: found for name, found in BELOW.items() if name.startswith("HerdDB")},
            Unknown("the BookKeeperCluster bk does not exist or can't be read, so the log's owner is unknown"),
        ),
        (
            {**BELOW, "BookKeeperCluster bk": ready(quickstart("BookKeeperCluster"))},
            Unknown("the BookKeeperCluster bk does not report its instanceId yet, so the log's owner is unknown"),
        ),
    ],
)
def test_whose_the_archived_log_is_follows_from_the_cluster_that_keeps_it(clusters, told):
    cluster = Cluster(checkpoint("a"), tablespace=ARCHIVED, clusters=clusters)
    assert observe_schedule(SCHEDULE, ClusterReader(cluster, None, None)).instance_id == told


def test_a_run_tells_of_which_log_its_checkpoint_is():
    (told, silent) = runs(
        checkpoint("a", status={"phase": "Succeeded", "manifest": "an-instance/a-uuid/manifests/x.json"}),
        checkpoint("b", status={"phase": "Succeeded", "manifest": "x.json"}),
    )
    assert (told.log, silent.log) == (LogIdentity("an-instance", "a-uuid"), None)


def test_a_run_tells_how_far_in_its_log_its_checkpoint_reaches():
    (told, silent) = runs(
        checkpoint("a", status={"phase": "Succeeded", "lsn": {"ledgerId": 7, "entryId": 5}}), checkpoint("b", status={"phase": "Succeeded"})
    )
    assert (told.lsn, silent.lsn) == ((7, 5), None)


def test_what_an_archive_may_need_is_unknown_while_a_checkpoint_or_the_tablespace_can_not_be_read():
    odd = checkpoint("odd", owner="nobody", status={"phase": "Odd"})
    assert seen(ARCHIVED, odd).checkpoints == Unknown("the status of the Checkpoint odd can't be read: status.phase")
    assert isinstance(seen(ARCHIVED, {**odd, "spec": {}}).checkpoints, Unknown), "nobody knows whose it is"
    assert seen(ARCHIVED, {**of_another("odd"), "status": {"phase": "Odd"}}).checkpoints, "one of another tablespace is not asked for"
    assert isinstance(seen({**ARCHIVED, "spec": {}}).tablespace, Unknown)


def test_an_archive_may_need_a_checkpoint_that_can_not_be_read_unless_it_failed():
    assert [made.metadata.name for made in seen(ARCHIVED, with_a_password("odd", phase="Failed")).checkpoints] == ["a"]
    assert isinstance(seen(ARCHIVED, with_a_password("odd", phase="Succeeded")).checkpoints, Unknown)


def test_a_removal_waits_for_a_checkpoint_that_can_not_be_read_unless_it_failed():
    def needing(*others: dict[str, Any]) -> Any:
        cluster = Cluster(others=others)
        going = with_metadata(stored(checkpoint("going")), deletion_timestamp="2026-05-10T05:00:00Z")
        cluster.owned, cluster.made_for, cluster.document = (lambda *_: Objects({})), (lambda *_: ()), (lambda *_: None)
        cluster.documents = lambda kind, _: others if kind is Checkpoint else ()
        return observe_checkpoint(going, ClusterReader(cluster, None, None)).removal.checkpoints

    assert [each.metadata.name for each in needing(checkpoint("b"), with_a_password("odd", phase="Failed"))] == ["b"]
    assert isinstance(needing(with_a_password("odd", phase="Succeeded")), Unknown)


class DrillingCluster(Cluster):
    """Has Jobs of drills besides, and a database."""

    def __init__(self, *made: dict[str, Any], jobs: Sequence[dict[str, Any]] = ()) -> None:
        super().__init__(*made, tablespace={**ARCHIVED, "spec": {"herdDBRef": {"name": "db"}}})
        self.jobs = jobs

    def owned(self, owner_kind, key, kinds):
        if kinds == DRILL_OBJECTS:
            return Objects({("Job", job["metadata"]["name"]): job for job in self.jobs})
        return super().owned(owner_kind, key, kinds)

    def readable(self, kind, key):
        assert (kind, key.name) == (HerdDBCluster, "db")
        return "the database"


def job(name: str, owner: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "ownerReferences": [{"uid": owner}]}}


def test_what_is_made_for_a_drill_is_seen_and_is_no_run_and_jobs_of_an_earlier_schedule_are_not_this_ones():
    for_a_drill = checkpoint("b-d")
    for_a_drill["metadata"]["labels"] = {names.COMPONENT_LABEL: names.DRILL_COMPONENT}
    cluster = DrillingCluster(checkpoint("a"), for_a_drill, jobs=(job("mine", "mine"), job("old", "another")))
    drilling = with_spec(SCHEDULE, drill=Drill(schedule="0 5 * * SUN"))
    seen = observe_schedule(drilling, ClusterReader(cluster, None, None))
    assert [run.name for run in seen.runs] == ["a"]
    assert [made.metadata.name for made in seen.drill.made_for_drills] == ["b-d"]
    assert [found["metadata"]["name"] for found in seen.drill.objects.of_kind("Job")] == ["mine"]
    assert seen.drill.herddb == "the database"


def test_jobs_are_looked_for_as_long_as_the_status_tells_of_drills():
    cluster = DrillingCluster(checkpoint("a"), jobs=(job("mine", "mine"),))
    once = with_status(SCHEDULE, drills_since="2026-05-01T00:00:00Z")
    assert len(observe_schedule(once, ClusterReader(cluster, None, None)).drill.objects.of_kind("Job")) == 1
    assert observe_schedule(SCHEDULE, ClusterReader(cluster, None, None)).drill.objects.of_kind("Job") == ()
