"""The gauges of what the status of a resource tells: its conditions with their reasons, times and counts."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import REGISTRY
from situations import quickstart

from herdkeeper.clients.deleted_resources import DeletedResources
from herdkeeper.engine.execute import Clients
from herdkeeper.engine.gauges.conditions import Conditions
from herdkeeper.engine.gauges.figures import show_figures
from herdkeeper.engine.key import Key
from herdkeeper.engine.kinds import steps_by_kind
from herdkeeper.engine.reconcile import reconcile
from herdkeeper.planning.refusal import Refusal
from herdkeeper.settings import Settings
from herdkeeper.shared.unknown import Unknown

OF = {"kind": "Tablespace", "namespace": "demo", "name": "flights"}


def condition(kind: str, status: str, reason: str) -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason}


def shown() -> dict[tuple[str, str], float]:
    """Type and reason of the conditions of the resource, with their values."""
    (family,) = [each for each in REGISTRY.collect() if each.name == "herdkeeper_resource_condition"]
    return {(s.labels["type"], s.labels["reason"]): s.value for s in family.samples if s.labels.items() >= OF.items()}


def test_a_condition_is_shown_with_the_reason_that_it_has_now_and_no_other() -> None:
    conditions = Conditions()
    conditions.show(*OF.values(), [condition("Ready", "False", "NoLeader"), condition("LogArchived", "Unknown", "Unreadable")])
    assert shown() == {("Ready", "NoLeader"): 0, ("LogArchived", "Unreadable"): -1}
    conditions.show(*OF.values(), [condition("Ready", "True", "Ready")])
    assert shown() == {("Ready", "Ready"): 1}
    conditions.show(*OF.values(), ())
    assert shown() == {}


NOON = "2026-05-10T12:00:00Z"
SECONDS = 1778414400.0


@pytest.mark.parametrize(
    ("kind", "label", "status", "told"),
    [
        (
            "BookKeeperCluster",
            "bookkeeper",
            {"underReplicatedLedgers": 7, "underReplicatedSince": NOON},
            {"under_replicated_ledgers": 7, "under_replicated_since_timestamp_seconds": SECONDS},
        ),
        ("ZooKeeperCluster", "zookeeper", {"authorityExpires": NOON}, {"authority_expires_timestamp_seconds": SECONDS}),
        ("HerdDBCluster", "herddb", {"certificateExpires": NOON}, {"certificate_expires_timestamp_seconds": SECONDS}),
        (
            "Tablespace",
            "tablespace",
            {"archive": {"currentAt": NOON, "lsnTimestamp": NOON}, "recoveryWindow": {"from": NOON, "to": NOON}},
            {
                "archive_last_entry_timestamp_seconds": SECONDS,
                "archive_current_timestamp_seconds": SECONDS,
                "recovery_window_begins_timestamp_seconds": SECONDS,
                "recovery_window_ends_timestamp_seconds": SECONDS,
            },
        ),
        ("ScheduledCheckpoint", "schedule", {"newestVerifiedTime": NOON}, {"checkpoint_last_verified_timestamp_seconds": SECONDS}),
    ],
)
def test_times_and_counts_are_shown_as_long_as_the_status_has_them(
    kind: str, label: str, status: dict[str, Any], told: dict[str, float]
) -> None:
    def values() -> dict[str, float | None]:
        return {name: REGISTRY.get_sample_value(f"herdkeeper_{name}", {"namespace": "demo", label: "flights"}) for name in told}

    show_figures(kind, "demo", "flights", status)
    assert values() == told
    show_figures(kind, "demo", "flights", {})
    assert set(values().values()) == {None}


def test_no_under_replicated_ledgers_are_zero_and_ones_that_nobody_could_count_are_absent() -> None:
    def value() -> float | None:
        return REGISTRY.get_sample_value("herdkeeper_under_replicated_ledgers", {"namespace": "demo", "bookkeeper": "bk"})

    show_figures("BookKeeperCluster", "demo", "bk", {"underReplicatedLedgers": 0})
    assert value() == 0
    show_figures("BookKeeperCluster", "demo", "bk", {"underReplicatedLedgers": None})
    assert value() is None


def test_of_a_resource_with_a_refused_spec_the_gauges_follow_what_is_seen() -> None:
    def in_time() -> float | None:
        return REGISTRY.get_sample_value("herdkeeper_log_used_in_time", {"namespace": "demo", "tablespace": "flights"})

    tablespace = quickstart("Tablespace")
    reader = SimpleNamespace(deleted=DeletedResources(), kubernetes=SimpleNamespace(resource=lambda *_: tablespace))
    writer = SimpleNamespace(write_status=lambda *_: None, event=lambda *_: None)
    steps = steps_by_kind(Settings.from_environment({}))["Tablespace"]

    def looked_at(standings: object) -> None:
        wrong = (Refusal("spec.x", "y", "wrong", "remove it"),)
        refused = replace(steps, observe=lambda *_: SimpleNamespace(tablespace=tablespace, standings=standings), refusals=lambda *_: wrong)
        reconcile(Key.of(tablespace), refused, Clients(writer, reader, None, lambda: True, None))

    looked_at((SimpleNamespace(need=SimpleNamespace(by=None), phase=None),))
    assert in_time() == 0
    looked_at(Unknown("ZooKeeper does not answer"))
    assert in_time() is None
