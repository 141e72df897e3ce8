"""What the status of a BookKeeper cluster says of its bookies, in words that tell what to do."""

from __future__ import annotations

from dataclasses import replace

import pytest
from situations import live, objects, pods, with_spec, with_status
from test_plan_bookkeeper import CLUSTER, HEALTHY, IDENTITIES, PODS, STORE, TOKENS, claims, settled

from herdkeeper.api.bookkeeper_cluster import AutoRecovery
from herdkeeper.bookkeeper.build.bookies import build_autorecovery
from herdkeeper.bookkeeper.state.bookies import LedgerScan, Marks, MetadataAbsent, Naming
from herdkeeper.bookkeeper.state.fleet import BookieFleet
from herdkeeper.bookkeeper.status import summarize_bookkeeper
from herdkeeper.codecs.bookkeeper.underreplication import mark_time_ms
from herdkeeper.shared import names
from herdkeeper.shared.reason import Reason
from herdkeeper.shared.unknown import Unknown

FIRST = IDENTITIES[0].bookie_id
WITHOUT_FIRST = replace(HEALTHY, writable=HEALTHY.writable - {FIRST})
UNSCHEDULED = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node has 640Mi"}]}


def summary(metadata, *parts, ready_recovery=1, cluster=CLUSTER):
    recovery = live(build_autorecovery(CLUSTER, STORE.address, {}))
    for (kind, _), item in recovery.items():
        if kind == "Deployment":
            item["status"] = {"readyReplicas": ready_recovery, "observedGeneration": 1, "updatedReplicas": ready_recovery}
    seen = BookieFleet(cluster, objects(settled(), *claims(0, 1, 2, 3), pods(PODS), recovery, *parts), STORE, metadata, TOKENS)
    return summarize_bookkeeper(seen)


@pytest.mark.parametrize(
    ("metadata", "parts", "expected"),
    [
        (HEALTHY, (), ("True", Reason.READY, "4 bookies are writable")),
        (WITHOUT_FIRST, (), ("False", Reason.BOOKIES_NOT_READY, "3 of 4 bookies are writable (bk-bookie-0-0: not registered as writable)")),
        (
            replace(WITHOUT_FIRST, read_only=frozenset({FIRST})),
            (),
            ("False", Reason.BOOKIES_NOT_READY, "3 of 4 bookies are writable (bk-bookie-0-0: read-only: a volume is fuller than"),
        ),
        (
            WITHOUT_FIRST,
            (pods(["bk-bookie-0-0"], **UNSCHEDULED),),
            ("False", Reason.BOOKIES_NOT_READY, "3 of 4 bookies are writable (bk-bookie-0-0: Unschedulable: no node has 640Mi)"),
        ),
        (
            HEALTHY,
            (pods(["bk-bookie-3-0"], conditions=[]),),
            ("False", Reason.BOOKIES_NOT_READY, "3 of 4 bookies are writable (bk-bookie-3-0"),
        ),
        (Unknown("silence"), (), ("Unknown", Reason.UNREADABLE, "silence")),
        (MetadataAbsent(), (), ("False", Reason.BOOKIES_NOT_READY, "0 of 4 bookies are writable")),
    ],
)
def test_health_counts_writable_bookies_and_says_what_ails_each_other(metadata, parts, expected):
    health = summary(metadata, *parts).health
    assert (health.status, health.reason) == expected[:2]
    assert health.message.startswith(expected[2])


@pytest.mark.parametrize(
    ("time", "since"),
    [(b"1767225600000", "2026-01-01T00:00:00Z"), (b"99999999999999", "5138-11-16T09:46:39Z"), (b"9999999999999999", None)],
)
def test_a_mark_of_a_time_that_no_date_can_show_tells_none(time, since):
    marks = Marks(1, mark_time_ms(b'replica: "b0"\nctime: ' + time + b"\n"))
    assert summary(replace(HEALTHY, under_replicated=True, marks=marks)).fields["underReplicatedSince"] == since


def test_a_bookie_that_a_quota_refuses_is_told_from_one_that_does_not_serve():
    more = with_spec(CLUSTER, bookies=5)
    health = summary(HEALTHY, cluster=more).health
    assert (health.status, health.reason) == ("False", Reason.BOOKIES_MISSING)
    assert health.message.startswith("4 of 5 bookies are writable (bk-bookie-4-0: no pod")
    assert summary(WITHOUT_FIRST, cluster=more).health.reason is Reason.BOOKIES_NOT_READY


def test_bookies_whose_lost_copies_nobody_replaces_are_not_healthy_unless_their_resource_says_so():
    """BookKeeper's own tools disable it, such as for a maintenance, and nobody may remember."""
    disabled = replace(HEALTHY, replication_enabled=False)
    health = summary(disabled).health
    assert (health.status, health.reason) == ("False", Reason.AUTORECOVERY_DISABLED)
    assert f"kubectl exec -n {CLUSTER.metadata.namespace} bk-bookie-0-0 " in health.message
    assert "bk-bookie-0-0 -- /opt/bookkeeper/entrypoint.sh shell autorecovery -e" in health.message
    assert summary(disabled, cluster=with_spec(CLUSTER, auto_recovery=AutoRecovery(enabled=False))).health.status == "True"


def test_a_status_is_written_also_where_every_bookie_has_lost_its_volumes_and_autorecovery_is_disabled():
    recovery = live(build_autorecovery(CLUSTER, STORE.address, {}))
    recovery["Deployment", "bk-autorecovery"]["status"] = {"readyReplicas": 1}
    seen = BookieFleet(CLUSTER, objects(settled(), pods(PODS), recovery), STORE, replace(HEALTHY, replication_enabled=False), TOKENS)
    assert len(seen.numbers.lost) == len(PODS), "all of them are registered yet, so none is made instead"
    assert summarize_bookkeeper(seen).health.reason is Reason.AUTORECOVERY_DISABLED


def test_where_no_bookie_serves_more_is_wrong_than_that_some_are_not_made():
    """Rolls of others go on beside bookies that are missing."""
    none = BookieFleet(CLUSTER, objects(), STORE, replace(HEALTHY, writable=frozenset(), cookies=frozenset()), TOKENS)
    assert summarize_bookkeeper(none).health.reason is Reason.BOOKIES_NOT_READY


@pytest.mark.parametrize(("config", "told"), [({}, "(0.95)"), ({"diskUsageThreshold": "0.8"}, "(0.8)")])
def test_a_read_only_bookie_is_told_with_the_threshold_that_it_has(config, told):
    full = replace(WITHOUT_FIRST, read_only=frozenset({FIRST}))
    assert told in summary(full, cluster=with_spec(CLUSTER, config=config)).health.message


def test_bookies_that_leave_are_named():
    fewer = CLUSTER.model_copy(update={"spec": CLUSTER.spec.model_copy(update={"bookies": 3})})
    assert summary(HEALTHY, cluster=fewer).health.message == "3 bookies are writable; being drained: bk-bookie-3"


def test_how_many_bookies_are_writable_is_left_open_while_zookeeper_can_t_be_read():
    told = [summary(metadata).fields["readyBookies"] for metadata in (HEALTHY, WITHOUT_FIRST, MetadataAbsent(), Unknown("silence"))]
    assert told == [4, 3, 0, None]


@pytest.mark.parametrize(
    ("situation", "leaving", "metadata", "expected"),
    [
        ("its drain waits for a spare bookie", {"bookies": 2}, HEALTHY, 4),
        ("all leave, and the new ones do not serve yet", {"drain": (0, 1, 2, 3)}, HEALTHY, 4),
        ("its drain has begun", {"drain": (0,)}, replace(WITHOUT_FIRST, read_only=frozenset({FIRST})), 3),
    ],
)
def test_a_bookie_that_is_to_leave_counts_while_it_is_writable(situation, leaving, metadata, expected):
    """By this number SQL nodes tell whether a new leader could write."""
    assert summary(metadata, cluster=with_spec(CLUSTER, **leaving)).fields["readyBookies"] == expected, situation


@pytest.mark.parametrize(
    ("situation", "status", "expected"),
    [
        ("its probe fails, or nobody hears from its machine's kubelet", {"conditions": []}, 4),
        ("it has ended, and its session lives on", {"containerStatuses": [{"name": "bookie", "state": {"terminated": {}}}]}, 3),
        ("it was evicted", {"phase": "Failed"}, 3),
    ],
)
def test_a_bookie_counts_as_writable_while_its_process_runs_whatever_its_probe_says(situation, status, expected):
    """Else no lost leader would be replaced while a control plane does not hear from the machines, whose bookies take entries."""
    found = summary(HEALTHY, pods(["bk-bookie-0-0"], **status))
    assert found.fields["readyBookies"] == expected, situation


def test_bookies_without_autorecovery_are_not_healthy():
    health = summary(HEALTHY, ready_recovery=0).health
    assert (health.status, health.reason) == ("False", Reason.AUTORECOVERY_NOT_READY)


@pytest.mark.parametrize(
    ("situation", "made", "told"),
    [
        ("a quota refuses its pods", {}, "not all pods of bk-autorecovery are Ready (no pod, see its controller's events)"),
        ("no node has room", pods(["bk-autorecovery-x"], **UNSCHEDULED), "are Ready (Unschedulable: no node has 640Mi)"),
    ],
)
def test_why_autorecovery_does_not_run_is_told(situation, made, told):
    for pod in made.values():
        pod["metadata"]["labels"] = names.labels(names.AUTORECOVERY_COMPONENT, "BookKeeperCluster", "bk")
    assert told in summary(HEALTHY, made, ready_recovery=0).health.message, situation


def test_the_instance_id_is_remembered_when_the_metadata_is_gone_or_can_t_be_read():
    assert summary(HEALTHY).fields["instanceId"] == "an-instance"
    before = with_status(CLUSTER, instance_id="an-instance")
    for metadata in (Unknown("silence"), MetadataAbsent()):
        assert summary(metadata, cluster=before).fields["instanceId"] == "an-instance"


@pytest.mark.parametrize(
    ("scan", "left"),
    [(None, None), (LedgerScan(9, 3, 3, {}, {FIRST: Naming(4, 1, 3)}), 5), (LedgerScan(9, 3, 3, {}, {}), 0)],
    ids=["not looked at", "five name it", "none names it"],
)
def test_a_lost_bookie_is_shown_with_the_ledgers_that_still_name_it(scan, left):
    seen = BookieFleet(CLUSTER, objects(settled(), *claims(1, 2, 3), pods(PODS[1:])), STORE, WITHOUT_FIRST, TOKENS, scan=scan)
    (lost,) = [bookie for bookie in summarize_bookkeeper(seen).fields["bookies"] if bookie["number"] == 0]
    assert (lost["bookieId"], lost["state"], lost.get("ledgersLeft")) == (FIRST, "Lost", left)
