"""Each alert fires in a bad series and not in a good one, as promtool evaluates it. Times are in seconds since the series began."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from herdkeeper_e2e.monitoring.promtool import RefusedError, promtool
from herdkeeper_e2e.release.chart_files import MONITORING
from herdkeeper_e2e.release.chart_settings import spec_of

RULES = yaml.safe_load(spec_of("PrometheusRule", MONITORING.read_text()))
BY_NAME = {rule["alert"]: rule for group in RULES["groups"] for rule in group["rules"]}
Series = Mapping[str, str]
DAY = 86400
_MINUTES = 400
"""More than any alert waits."""
BOOKIE = 'kind="BookKeeperCluster", namespace="demo", name="bk", component="bookie", pod="bk-bookie-0-0"'
NODE = 'kind="HerdDBCluster", namespace="demo", name="db", component="herddb", pod="db-herddb-{}", tablespace="flights"'
MEMBER = 'kind="ZooKeeperCluster", namespace="demo", name="zk", component="zookeeper", pod="zk-zookeeper-{}"'
CLAIM = 'namespace="demo", persistentvolumeclaim="{}"'
READY = 'herdkeeper_resource_ready{{kind="{}", namespace="demo", name="{}"}}'


@dataclass(frozen=True)
class Case:
    """Series with their values minute by minute. `labels` are those of the alert that the first of the bad ones raises after `minutes`."""

    bad: tuple[Series, ...]
    good: tuple[Series, ...]
    labels: Mapping[str, str]
    minutes: int = 20
    value: str = ""
    """What `$value` is in its summary."""


def same(series: str, value: float) -> dict[str, str]:
    return {series: f"{value}+0x{_MINUTES}"}


def labels_of(text: str) -> dict[str, str]:
    return dict(re.findall(r'(\w+)="([^"]*)"', text))


def condition(kind: str, name: str, what: str, reason: str) -> str:
    return f'herdkeeper_resource_condition{{kind="{kind}", namespace="demo", name="{name}", type="{what}", reason="{reason}"}}'


def followed(ledgers: tuple[int, int], entries: tuple[int, int]) -> Series:
    """A leader and its follower: the ledger and the entry that each has applied."""
    found: dict[str, str] = {}
    for number in range(2):
        found |= same(f"herdkeeper_node_leads{{{NODE.format(number)}}}", 1 - number)
        found |= same(f"herdkeeper_node_log_ledger{{{NODE.format(number)}}}", ledgers[number])
        found |= same(f"herdkeeper_node_log_entry{{{NODE.format(number)}}}", entries[number])
    return found


def volume(claim: str, free: float, kind: str, name: str) -> Series:
    """What the kubelet says of a claim's volume, beside a resource of ours."""
    return {
        **same(f"kubelet_volume_stats_available_bytes{{{CLAIM.format(claim)}}}", free),
        **same(f"kubelet_volume_stats_capacity_bytes{{{CLAIM.format(claim)}}}", 100),
        **same(READY.format(kind, name), 1),
    }


def ensemble(*leader_uptimes: float) -> Series:
    """Members that are scraped; each says for how long it has led."""
    found: dict[str, str] = {}
    for number, uptime in enumerate(leader_uptimes):
        found |= same(f"up{{{MEMBER.format(number)}}}", 1)
        found |= same(f"leader_uptime{{{MEMBER.format(number)}}}", uptime)
    return found


def findings(severity: str, count: float) -> Series:
    return same(f'herdkeeper_audit_findings{{namespace="demo", bookkeeper="bk", depth="Deep", severity="{severity}"}}', count)


def of_audit(severity: str) -> dict[str, str]:
    return {"namespace": "demo", "bookkeeper": "bk", "depth": "Deep", "severity": severity}


NO_LEADER = condition("Tablespace", "flights", "Ready", "NoLeader")
DIFFERS = condition("Tablespace", "flights", "ReplicasVerified", "ReplicaDiffers")
LAGS = condition("Tablespace", "flights", "LogArchived", "ArchiveLags")
STARTING = condition("Tablespace", "flights", "LogArchived", "ArchiveStarting")
OVERDUE = condition("ScheduledCheckpoint", "nightly", "Current", "CheckpointOverdue")
TABLESPACE = '{namespace="demo", tablespace="flights"}'
ARCHIVED = f"herdkeeper_archive_last_entry_timestamp_seconds{TABLESPACE}"
WINDOW = "herdkeeper_recovery_window_{}_timestamp_seconds{{" + TABLESPACE[1:-1] + "}}"
OTHER_WINDOW = 'herdkeeper_recovery_window_begins_timestamp_seconds{namespace="demo", tablespace="trains"}'
RETENTION = 'herdkeeper_log_retention_ends_timestamp_seconds{namespace="demo", tablespace="flights", needed_by="stream"}'
DRILL = 'herdkeeper_restore_drill_failed{namespace="demo", schedule="nightly"}'
CERTIFICATE = 'herdkeeper_certificate_expires_timestamp_seconds{namespace="demo", herddb="db"}'
AUTHORITY = 'herdkeeper_authority_expires_timestamp_seconds{namespace="demo", zookeeper="zk"}'
AUDITED = 'herdkeeper_audit_last_complete_timestamp_seconds{namespace="demo", bookkeeper="bk", depth="Deep"}'
CREATED = 'herdkeeper_bookkeeper_created_timestamp_seconds{namespace="demo", bookkeeper="bk"}'
SINCE = 'herdkeeper_under_replicated_since_timestamp_seconds{namespace="demo", bookkeeper="bk"}'
USAGE = f"bookie_ledger_dir__ledgers_usage{{{BOOKIE}}}"
SECOND_USAGE = USAGE.replace("ledgers_usage", "ledgers_1_usage")
STATUS = f"bookie_SERVER_STATUS{{{BOOKIE}}}"
REFUSED = f"herdkeeper_refused_total{{{NODE.format(0)}, reason="
BLOCKED = f"herdkeeper_node_blocked_seconds{{{NODE.format(0)}}}"
FREE, SIZE = (f"herdkeeper_node_volume_{what}{{{NODE.format(0)}}}" for what in ("free_bytes", "bytes"))

CASES = {
    "HerdkeeperNobodyLeads": Case(
        bad=(same('herdkeeper_leading{pod="a"}', 0), {}, same(f"herdkeeper_leading{{{BOOKIE}}}", 1)),
        good=({**same('herdkeeper_leading{pod="a"}', 0), **same('herdkeeper_leading{pod="b"}', 1)},),
        labels={},
    ),
    "HerdkeeperReconcilesFail": Case(
        bad=({'herdkeeper_reconcile_total{kind="Tablespace", outcome="failed"}': "0+1x80"},),
        good=(
            {'herdkeeper_reconcile_total{kind="Tablespace", outcome="failed"}': "7+0x80"},
            {'herdkeeper_reconcile_total{kind="Tablespace", outcome="ok"}': "0+1x80"},
        ),
        labels={"kind": "Tablespace"},
        minutes=50,
    ),
    "HerdkeeperNotReady": Case(
        bad=(same(READY.format("HerdDBCluster", "db"), 0),),
        good=(same(READY.format("HerdDBCluster", "db"), 1), same(READY.format("Checkpoint", "run"), 0)),
        labels={"kind": "HerdDBCluster", "namespace": "demo", "name": "db"},
    ),
    "HerdkeeperNotScraped": Case(
        bad=(same(f"up{{{BOOKIE}}}", 0),),
        good=(same(f"up{{{BOOKIE}}}", 1), same('up{job="other", kind="HerdDBCluster"}', 0)),
        labels=labels_of(BOOKIE),
    ),
    "HerdkeeperBookieDiskFilling": Case(
        bad=({**same(USAGE, 86), **same(SECOND_USAGE, 90)}, same(USAGE, 86), same(SECOND_USAGE, 86)),
        good=(same(USAGE, 84),),
        labels=labels_of(BOOKIE),
    ),
    "HerdkeeperNodeDiskFilling": Case(
        bad=({**same(FREE, 14), **same(SIZE, 100)},), good=({**same(FREE, 16), **same(SIZE, 100)},), labels=labels_of(NODE.format(0))
    ),
    "HerdkeeperZooKeeperDiskFilling": Case(
        bad=(volume("data-zk-zookeeper-0", 14, "ZooKeeperCluster", "zk"),),
        good=(
            volume("data-zk-zookeeper-0", 16, "ZooKeeperCluster", "zk"),
            volume("data-foreign-zookeeper-0", 1, "ZooKeeperCluster", "zk"),
            volume("data-zk-zookeeper-0", 1, "BookKeeperCluster", "zk"),
        ),
        labels={**labels_of(CLAIM.format("data-zk-zookeeper-0")), "name": "zk"},
    ),
    "HerdkeeperJournalDiskFilling": Case(
        bad=(volume("bk-bookie-2-journal", 14, "BookKeeperCluster", "bk"),),
        good=(
            volume("bk-bookie-2-journal", 16, "BookKeeperCluster", "bk"),
            volume("foreign-bookie-2-journal", 1, "BookKeeperCluster", "bk"),
        ),
        labels={**labels_of(CLAIM.format("bk-bookie-2-journal")), "name": "bk"},
    ),
    "HerdkeeperNoLeader": Case(
        bad=(same(NO_LEADER, 0),), good=(same(condition("Tablespace", "flights", "Ready", "Ready"), 1),), labels=labels_of(NO_LEADER)
    ),
    "HerdkeeperStatementsBlocked": Case(
        bad=(same(BLOCKED, 61), {BLOCKED: "0+60x80"}),
        good=(same(BLOCKED, 0), same(BLOCKED, 60), {BLOCKED: "0 100 0 100 0 " + "0+0x75"}),
        labels=labels_of(NODE.format(0)),
    ),
    "HerdkeeperZooKeeperNoLeader": Case(bad=(ensemble(0, 0, 0),), good=(ensemble(0, 5, 0), {}), labels={"namespace": "demo", "name": "zk"}),
    "HerdkeeperFollowerBehind": Case(
        bad=(followed((5, 5), (200_000, 10)), followed((6, 5), (3, 400_000))),
        good=(followed((5, 5), (200_000, 199_000)), followed((5, 5), (10, 11))),
        labels=labels_of(NODE.format(1)),
    ),
    "HerdkeeperReplicaDiffers": Case(
        bad=(same(DIFFERS, 0),),
        good=(same(condition("Tablespace", "flights", "ReplicasVerified", "NotVerified"), -1),),
        labels=labels_of(DIFFERS),
    ),
    "HerdkeeperBookieReadOnly": Case(bad=(same(STATUS, 0),), good=(same(STATUS, 1),), labels=labels_of(BOOKIE), minutes=40),
    "HerdkeeperReplicationOverdue": Case(
        bad=(same(SINCE, -3600),), good=(same(SINCE, -1200), {}), labels={"namespace": "demo", "bookkeeper": "bk"}
    ),
    "HerdkeeperLogNotUsedInTime": Case(
        bad=(same(f"herdkeeper_log_used_in_time{TABLESPACE}", 0),),
        good=(same(f"herdkeeper_log_used_in_time{TABLESPACE}", 1),),
        labels=labels_of(TABLESPACE),
    ),
    "HerdkeeperLogKeptPastRetention": Case(
        bad=(same(RETENTION, -1),), good=(same(RETENTION, 2 * DAY),), labels=labels_of(RETENTION), minutes=70
    ),
    "HerdkeeperArchiveLags": Case(
        bad=(same(LAGS, 0), same(LAGS.replace("ArchiveLags", "ArchiveStands"), 0)),
        good=(
            same(LAGS.replace("ArchiveLags", "ArchiveStarting"), 0),
            same(LAGS.replace("ArchiveLags", "Archived"), 1),
            same(LAGS.replace("ArchiveLags", "Unreadable"), -1),
        ),
        labels=labels_of(LAGS),
    ),
    "HerdkeeperArchiveNotStarted": Case(
        bad=(same(STARTING, 0),), good=(same(LAGS, 0), {STARTING: "0+0x60"}), labels=labels_of(STARTING), minutes=370
    ),
    "HerdkeeperNoRecoveryWindow": Case(
        bad=(same(ARCHIVED, 0), {**same(ARCHIVED, 0), **same(WINDOW.format("ends"), 0)}, {**same(ARCHIVED, 0), **same(OTHER_WINDOW, 0)}),
        good=(
            {**same(ARCHIVED, 0), **same(WINDOW.format("begins"), -90 * DAY)},
            same(f"herdkeeper_archive_current_timestamp_seconds{TABLESPACE}", 0),  # nobody has written to it
            {ARCHIVED: "0+0x60"},
        ),
        labels=labels_of(TABLESPACE),
        minutes=370,
    ),
    "HerdkeeperCheckpointOverdue": Case(
        bad=(same(OVERDUE, 0),), good=(same(OVERDUE.replace("CheckpointOverdue", "Scheduled"), 1),), labels=labels_of(OVERDUE)
    ),
    "HerdkeeperDrillFailed": Case(bad=(same(DRILL, 1),), good=(same(DRILL, 0),), labels=labels_of(DRILL)),
    "HerdkeeperEntriesCritical": Case(
        bad=(findings("Critical", 1),), good=(findings("Critical", 0), findings("Low", 5)), labels=of_audit("Critical")
    ),
    "HerdkeeperUnderReplicated": Case(
        bad=(findings("UnderReplicated", 1),), good=(findings("UnderReplicated", 0),), labels=of_audit("UnderReplicated"), minutes=70
    ),
    "HerdkeeperAuditOverdue": Case(
        bad=(same(AUDITED, -15 * DAY), same(CREATED, -15 * DAY)),
        good=(
            {**same(AUDITED, -13 * DAY), **same(CREATED, -90 * DAY)},
            same(CREATED, -13 * DAY),
            {**same(CREATED, -90 * DAY), AUDITED: f"{-13 * DAY}+0x60 stale _x15 {-13 * DAY}+0x300"},  # a restart
        ),
        labels=labels_of(AUDITED),
        minutes=70,
    ),
    "HerdkeeperAuthorityExpires": Case(
        bad=(same(AUTHORITY, 100 * DAY + 1200),),
        good=(same(AUTHORITY, 400 * DAY),),
        labels=labels_of(AUTHORITY),
        value="100d 0h 0m 0s",
    ),
    "HerdkeeperCertificateExpires": Case(
        bad=(same(CERTIFICATE, DAY + 1200),), good=(same(CERTIFICATE, 15 * DAY),), labels=labels_of(CERTIFICATE), value="1d 0h 0m 0s"
    ),
    "HerdkeeperAccessRefused": Case(
        bad=({f'{REFUSED}"login"}}': "0+1x400"}, {f'{REFUSED}"token"}}': "0+0x5 1+1x400"}),
        good=({f'{REFUSED}"login"}}': "0+1x10 11+0x400"}, same(f'{REFUSED}"tls"}}', 7)),
        labels={"kind": "HerdDBCluster", "namespace": "demo", "name": "db", "pod": "db-herddb-0", "reason": "login"},
        minutes=80,
    ),
}


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rules in a file, as Prometheus itself reads them."""
    file = tmp_path_factory.mktemp("alerts") / "rules.yaml"
    file.write_text(yaml.safe_dump(RULES))
    return file


def alert_as_told(rule: dict[str, Any], case: Case) -> dict[str, Any]:
    """Its labels, and its annotations with them filled in."""

    def filled(text: str) -> str:
        text = re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda found: case.labels[found[1]], text)
        return re.sub(r"\{\{ \$value[^}]*\}\}", case.value, text)

    annotations = {name: filled(text) for name, text in rule["annotations"].items()}
    return {"exp_labels": {**case.labels, **rule["labels"]}, "exp_annotations": annotations}


def evaluated(groups: Path, folder: Path, alert: str, series: Series, expected: list[dict[str, Any]]) -> None:
    """RefusedError unless the alert is as expected after the minutes of its case."""
    minutes = CASES[alert].minutes
    story = {
        "interval": "1m",
        "input_series": [{"series": name, "values": value} for name, value in series.items()],
        "alert_rule_test": [{"eval_time": f"{minutes}m", "alertname": alert, "exp_alerts": expected}],
    }
    file = folder / "story.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(groups)], "evaluation_interval": "1m", "tests": [story]}))
    promtool("test", "rules", str(file))


def test_each_alert_has_a_case() -> None:
    assert CASES.keys() == BY_NAME.keys()


def test_prometheus_can_read_the_rules(groups: Path) -> None:
    promtool("check", "rules", str(groups))


@pytest.mark.parametrize("alert", CASES)
def test_an_alert_fires_in_its_bad_series_and_says_what_is_wrong(groups: Path, tmp_path: Path, alert: str) -> None:
    case = CASES[alert]
    evaluated(groups, tmp_path, alert, case.bad[0], [alert_as_told(BY_NAME[alert], case)])
    for series in case.bad[1:]:
        with pytest.raises(RefusedError, match="got:"):
            evaluated(groups, tmp_path, alert, series, [])


@pytest.mark.parametrize("alert", CASES)
def test_an_alert_does_not_fire_in_its_good_series(groups: Path, tmp_path: Path, alert: str) -> None:
    for series in CASES[alert].good:
        evaluated(groups, tmp_path, alert, series, [])
