"""The gauges of audits show the newest one of a whole cluster, for each depth."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml
from prometheus_client import REGISTRY
from situations import EXAMPLES, with_status

from herdkeeper.api import BookKeeperCluster, ReplicationAudit
from herdkeeper.engine.gauges.audits import LastAudits
from herdkeeper.shared.names import ObjectKey
from herdkeeper_e2e.defaulting import stored

AUDIT: ReplicationAudit = stored(yaml.safe_load((EXAMPLES / "audit.yaml").read_text()), "metered")
CLUSTER = ObjectKey("metered", "bk")
DEEP = {"namespace": "metered", "bookkeeper": "bk", "depth": "Deep"}


@pytest.fixture
def audits() -> Iterator[LastAudits]:
    shown = LastAudits()
    yield shown
    shown.forget(CLUSTER)


def audit(**spec: object) -> ReplicationAudit:
    return AUDIT.model_copy(update={"spec": AUDIT.spec.model_copy(update=spec)})


def cluster_of(day: int) -> BookKeeperCluster:
    found: BookKeeperCluster = stored(yaml.safe_load((EXAMPLES / "bookkeeper-only.yaml").read_text().split("---")[-1]), "metered")
    metadata = found.metadata.model_copy(update={"name": "bk", "creation_timestamp": f"2026-05-{day:02}T04:00:00Z"})
    return found.model_copy(update={"metadata": metadata})


FIRST = cluster_of(1)


def ended(day: int, critical: int, **fields: object) -> dict[str, object]:
    counts = {"critical": critical, "underReplicated": 0, "atRisk": 0, "pending": 0, "unknown": 0}
    status = {"phase": "Succeeded", "completedAt": f"2026-05-{day:02}T04:00:00Z", "entries": 10 * day, "replicas": 30 * day}
    return {**status, "findingsBySeverity": counts, **fields}


def gauge(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(f"herdkeeper_audit_{name}", {**DEEP, **labels})


def test_the_newest_audit_is_shown_in_whatever_order_the_resources_are_seen(audits: LastAudits) -> None:
    for day, critical in ((3, 1), (9, 4), (5, 2)):
        audits.show(AUDIT, ended(day, critical), FIRST)
    assert (gauge("findings", severity="Critical"), gauge("findings", severity="AtRisk")) == (4, 0)
    assert (gauge("entries"), gauge("copies", state="verified")) == (90, 270)
    assert gauge("last_complete_timestamp_seconds") == 1778299200


def test_each_depth_has_its_own(audits: LastAudits) -> None:
    audits.show(AUDIT, ended(3, 1), FIRST)
    audits.show(audit(depth="Light"), ended(4, 0, replicasUnread=1000), FIRST)
    assert (gauge("findings", severity="Critical"), gauge("findings", severity="Critical", depth="Light")) == (1, 0)
    assert gauge("copies", state="unread", depth="Light") == 1000


def test_an_audit_that_could_not_look_at_a_bookie_is_shown_but_not_complete(audits: LastAudits) -> None:
    audits.show(AUDIT, ended(3, 0), FIRST)
    audits.show(AUDIT, ended(4, 2, replicasUnknown=7), FIRST)
    assert (gauge("findings", severity="Critical"), gauge("copies", state="unknown")) == (2, 7)
    assert gauge("last_complete_timestamp_seconds") == 1777780800


def test_an_audit_that_could_not_read_a_ledger_at_all_is_not_complete_though_no_copy_of_it_is_unknown(audits: LastAudits) -> None:
    audits.show(AUDIT, ended(3, 0), FIRST)
    audits.show(AUDIT, ended(4, 0, replicasUnknown=0, findingsBySeverity={"unknown": 1}), FIRST)
    assert gauge("findings", severity="Unknown") == 1
    assert gauge("last_complete_timestamp_seconds") == 1777780800


@pytest.mark.parametrize(
    ("seen", "status"),
    [
        (AUDIT, {"phase": "Running"}),
        (AUDIT, ended(3, 1, phase="Failed")),
        (AUDIT, {key: value for key, value in ended(3, 1).items() if key != "findingsBySeverity"}),
        (audit(ledgers=(7,)), ended(3, 1)),
    ],
    ids=["running", "failed", "of an earlier version", "chosen ledgers"],
)
def test_what_says_nothing_of_the_whole_cluster_is_not_shown(audits: LastAudits, seen: ReplicationAudit, status: dict[str, object]) -> None:
    audits.show(seen, status, FIRST)
    assert gauge("entries") is None


def test_a_cluster_that_is_no_more_has_no_gauges(audits: LastAudits) -> None:
    audits.show(AUDIT, ended(3, 1), FIRST)
    audits.forget(CLUSTER)
    assert [gauge("entries"), gauge("findings", severity="Critical"), gauge("last_complete_timestamp_seconds")] == [None] * 3


def test_an_audit_of_an_earlier_cluster_of_the_same_name_proves_nothing_of_this_one(audits: LastAudits) -> None:
    audits.show_cluster(FIRST)
    audits.show(AUDIT, ended(3, 1), FIRST)
    audits.show_cluster(cluster_of(5))
    audits.show(AUDIT, ended(4, 2), cluster_of(5))
    assert (gauge("findings", severity="Critical"), gauge("entries"), gauge("last_complete_timestamp_seconds")) == (None, None, None)
    audits.show(AUDIT, ended(6, 0), cluster_of(5))
    assert (gauge("findings", severity="Critical"), gauge("last_complete_timestamp_seconds")) == (0, 1778040000)


def test_an_audit_that_names_another_instance_is_not_shown_though_it_ended_after_this_cluster_was_made(audits: LastAudits) -> None:
    anew = with_status(cluster_of(5), instance_id="new")
    audits.show(AUDIT, ended(6, 1, instanceId="old"), anew)
    assert gauge("findings", severity="Critical") is None
    audits.show(AUDIT, ended(6, 2, instanceId="new"), anew)
    assert gauge("findings", severity="Critical") == 2


def test_a_cluster_that_took_its_bookies_over_keeps_what_was_found_on_them(audits: LastAudits) -> None:
    audits.show(AUDIT, ended(4, 1, instanceId="same"), with_status(cluster_of(5), instance_id="same"))
    assert gauge("findings", severity="Critical") == 1


def test_since_when_a_cluster_exists_is_shown_so_that_one_without_any_audit_is_noticed(audits: LastAudits) -> None:
    def created() -> float | None:
        return REGISTRY.get_sample_value("herdkeeper_bookkeeper_created_timestamp_seconds", {"namespace": "metered", "bookkeeper": "bk"})

    audits.show_cluster(cluster_of(5))
    assert created() == 1777953600
    audits.forget(CLUSTER)
    assert created() is None
