"""The list of the metrics of ZooKeeper, BookKeeper and HerdDB, from which docs/metrics-of-servers.md is made."""

from __future__ import annotations

import pytest

from herdkeeper_e2e.monitoring.served import Served, all_served, what_to_add
from herdkeeper_e2e.monitoring.served_parts import PARTS, part_of

TABLE = "shop_table_of_items_checkpoint_processed_dirty_records"
SYNC = 'bookie_journal_JOURNAL_SYNC{journalIndex="0",success="true",quantile="0.5"} 1\nbookie_journal_JOURNAL_SYNC_count{success="true"} 1'


def page(name: str, kind: str, series: str) -> str:
    return f"# TYPE {name} {kind}\n{series}\n"


def test_a_metric_that_the_list_lacks_is_named_as_a_line_to_add_with_the_command_to_run() -> None:
    served = page("bookie_unheard_of", "gauge", 'bookie_unheard_of{volume="0"} 1') + page("bookie_journal_JOURNAL_SYNC", "summary", SYNC)
    assert what_to_add("bookie", served) == (
        "add or correct these lines in e2e/src/herdkeeper_e2e/monitoring/served.txt, and run `make generate`:\n"
        "bookie bookie_unheard_of gauge volume"
    )


def test_a_metric_with_other_labels_or_of_another_type_is_to_be_corrected() -> None:
    labelled = SYNC.replace("journalIndex", "volume")
    assert what_to_add("bookie", page("bookie_journal_JOURNAL_SYNC", "summary", labelled)).endswith("SYNC summary success volume")
    assert what_to_add("bookie", page("bookie_SERVER_STATUS", "counter", "bookie_SERVER_STATUS 1")).endswith("STATUS counter")


@pytest.mark.parametrize(
    ("server", "name", "kind", "series"),
    [
        ("bookie", "bookie_ledger_dir__ledgers_7_usage", "gauge", "bookie_ledger_dir__ledgers_7_usage 1.5"),
        ("herddb", TABLE, "counter", f"{TABLE} 3"),
        ("herddb", "watcher_state_Expired", "counter", "watcher_state_Expired 1"),
        ("herddb", "jvm_threads_started", "counter", "jvm_threads_started_total{} 1.0"),
        ("zookeeper", "quota_exceeded_error_per_namespace", "counter", ""),
        ("zookeeper", "jvm_memory_pool_allocated_bytes_total", "counter", ""),
        ("herddb", "herdkeeper_unheard_of", "gauge", "herdkeeper_unheard_of 1"),
    ],
    ids=["folder", "table", "state", "ending", "no quota", "no collection", "ours"],
)
def test_what_varies_or_is_explained_elsewhere_is_not_missed(server: str, name: str, kind: str, series: str) -> None:
    assert what_to_add(server, page(name, kind, series)) == ""


def test_a_metric_of_no_part_is_named_with_what_to_extend() -> None:
    with pytest.raises(LookupError, match=r"unheard_of of bookie belongs to no part: extend a pattern of herdkeeper_e2e\."):
        part_of(Served("bookie", "unheard_of", "gauge"))


def test_each_part_has_metrics() -> None:
    assert {part for parts in PARTS.values() for part in parts} <= {part_of(metric) for metric in all_served()}
