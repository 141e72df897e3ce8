"""A server that is away, or about to be restarted, is seen in the objects themselves."""

from __future__ import annotations

import pytest
from situations import objects, pods, quickstart, ready, with_metadata, with_spec

from herdkeeper.api import BookKeeperCluster, HerdDBCluster, ZooKeeperCluster
from herdkeeper.api.resource import Reference
from herdkeeper.clients.cluster_reader import ClusterReader
from herdkeeper.clients.stack import databases_disruption, dependents_disruption, ensemble_disruption, why_disrupted
from herdkeeper.shared import names
from herdkeeper.shared.names import ObjectKey
from herdkeeper.shared.objects import Objects

STOPPED = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}


def stateful_set(name: str, strategy: str, replicas: int = 1, seen: int = 2, revisions: tuple[str, str] = ("b", "b")):
    status = {"observedGeneration": seen, "currentRevision": revisions[0], "updateRevision": revisions[1]}
    spec = {"replicas": replicas, "updateStrategy": {"type": strategy}}
    return {("StatefulSet", name): {"metadata": {"name": name, "generation": 2}, "spec": spec, "status": status}}


@pytest.mark.parametrize(
    ("situation", "parts", "disrupted"),
    [
        ("all serve", (stateful_set("a", "RollingUpdate"), pods(["a-0"])), False),
        ("its change was not seen by Kubernetes yet", (stateful_set("a", "RollingUpdate", seen=1), pods(["a-0"])), True),
        ("its old pod still serves", (stateful_set("a", "RollingUpdate", revisions=("a", "b")), pods(["a-0"])), True),
        ("its outdated pods wait until they are deleted", (stateful_set("a", "OnDelete", revisions=("a", "b")), pods(["a-0"])), False),
        ("its pod does not serve", (stateful_set("a", "RollingUpdate"), pods(["a-0"], **STOPPED)), True),
        ("the second pod is gone", (stateful_set("a", "OnDelete", replicas=2), pods(["a-0"])), True),
        ("a pod that nobody wants any more stops", (stateful_set("a", "OnDelete"), pods(["a-0"]), pods(["a-1"], **STOPPED)), False),
        ("it was stopped for good", (stateful_set("a", "RollingUpdate", replicas=0),), False),
        ("the second of two StatefulSets", (stateful_set("a", "OnDelete"), pods(["a-0"]), stateful_set("b", "OnDelete")), True),
    ],
)
def test_servers_are_disturbed_when_one_is_away_or_about_to_go(situation, parts, disrupted):
    assert (why_disrupted(objects(*parts)) is not None) is disrupted, situation


class Cluster:
    """The quickstart; servers of which one is away are named by their kinds."""

    def __init__(self, *away: str, **changed):
        stack = {kind: ready(quickstart(kind.KIND)) for kind in (ZooKeeperCluster, BookKeeperCluster, HerdDBCluster)}
        self.stack = {kind: changed.get(kind.KIND, resource) for kind, resource in stack.items()}
        self.away = away

    def resources(self, kind, namespace):
        return (self.stack[kind],)

    def readable(self, kind, key):
        return self.stack[kind]

    def owned(self, owner_kind, key, kinds) -> Objects:
        return objects(stateful_set("a", "OnDelete"), {} if owner_kind in self.away else pods(["a-0"]))


def seen_by(*away: str, **changed) -> list[str]:
    """Which of the three kinds must not be disrupted further."""
    cluster = Cluster(*away, **changed)
    world, bookkeeper = ClusterReader(cluster, None, None), cluster.stack[BookKeeperCluster]  # type: ignore[arg-type]
    by_kind = {
        "ZooKeeperCluster": dependents_disruption(ObjectKey("demo", "zk"), world),
        "BookKeeperCluster": ensemble_disruption(bookkeeper, world) or databases_disruption(ObjectKey("demo", "bk"), world),
        "HerdDBCluster": ensemble_disruption(bookkeeper, world),
    }
    return [kind for kind, why in by_kind.items() if why is not None]


def test_each_kind_sees_what_is_disturbed_of_the_others():
    assert seen_by() == []
    assert seen_by("HerdDBCluster") == ["ZooKeeperCluster", "BookKeeperCluster"]
    assert seen_by("BookKeeperCluster") == ["ZooKeeperCluster"]
    assert seen_by("ZooKeeperCluster") == ["BookKeeperCluster", "HerdDBCluster"]


@pytest.mark.parametrize(
    ("situation", "database"),
    [
        ("it is paused", with_metadata(quickstart("HerdDBCluster"), annotations={names.PAUSED_ANNOTATION: "true"})),
        ("it is being deleted", with_metadata(quickstart("HerdDBCluster"), deletion_timestamp="2026-01-01T00:00:00Z")),
        ("it belongs to other bookies", with_spec(quickstart("HerdDBCluster"), book_keeper_ref=Reference(name="other"))),
    ],
)
def test_nobody_waits_for_sql_nodes_in_vain(situation, database):
    assert seen_by("HerdDBCluster", HerdDBCluster=database) == [], situation


def test_bookies_that_are_not_ready_hold_the_ensemble_up_unless_they_wait_for_it():
    unready = quickstart("BookKeeperCluster")
    assert seen_by(BookKeeperCluster=unready) == ["ZooKeeperCluster"]
    waiting = not_ready_for("WaitingForZooKeeper")
    assert seen_by("BookKeeperCluster", "HerdDBCluster", BookKeeperCluster=waiting) == ["BookKeeperCluster"]


def not_ready_for(reason: str):
    bookies = ready(quickstart("BookKeeperCluster"))
    condition = bookies.status.conditions[0].model_copy(update={"status": "False", "reason": reason})
    return bookies.model_copy(update={"status": bookies.status.model_copy(update={"conditions": (condition,)})})


def test_the_ensemble_waits_for_no_bookie_that_is_not_made_but_for_those_that_are():
    """A quota may refuse it for ever."""
    assert seen_by(BookKeeperCluster=not_ready_for("BookiesMissing")) == []
    assert seen_by("BookKeeperCluster", BookKeeperCluster=not_ready_for("BookiesMissing")) == ["ZooKeeperCluster"]
    assert seen_by("HerdDBCluster", BookKeeperCluster=not_ready_for("BookiesMissing")) == ["ZooKeeperCluster", "BookKeeperCluster"]
    assert seen_by(BookKeeperCluster=not_ready_for("BookiesNotReady")) == ["ZooKeeperCluster"]


def test_the_ensemble_does_not_wait_until_somebody_enables_autorecovery_again():
    """BookKeeper's tools disable it for a maintenance, which may be this very roll. All bookies serve."""
    assert seen_by(BookKeeperCluster=not_ready_for("AutorecoveryDisabled")) == []
    assert seen_by("BookKeeperCluster", BookKeeperCluster=not_ready_for("AutorecoveryDisabled")) == ["ZooKeeperCluster"]
    assert seen_by(BookKeeperCluster=not_ready_for("AutorecoveryOff")) == ["ZooKeeperCluster"], "a drain says so, too, beside any trouble"
