"""Metrics of third-party servers that alerts and dashboards use. A test compares them with real servers."""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper_e2e.monitoring.metric import Metric


@dataclass(frozen=True)
class Server:
    """A kind of server, by its pods' component label, and its metrics."""

    title: str
    component: str
    metrics: tuple[Metric, ...]


_REQUEST = ("success",)
_JVM = (
    Metric("jvm_memory_bytes_used", "gauge", ("area",), "Memory of the JVM in use: `heap` and `nonheap`."),
    Metric("jvm_memory_direct_bytes_used", "gauge", (), "Direct memory of the JVM in use: network buffers."),
)

SERVERS = (
    Server(
        "ZooKeeper members",
        "zookeeper",
        (
            Metric("avg_latency", "gauge", (), "Average milliseconds of a request."),
            Metric("leader_uptime", "gauge", (), "Milliseconds for which the member has led; only the member that leads has it."),
            Metric("outstanding_requests", "gauge", (), "Requests that wait."),
            Metric("znode_count", "gauge", (), "Znodes."),
        ),
    ),
    Server(
        "Bookies",
        "bookie",
        (
            Metric("bookie_READ_BYTES", "counter", (), "Bytes read for whoever asked."),
            Metric("bookie_SERVER_STATUS", "gauge", (), "1 writable, 0 read-only, -1 not registered."),
            Metric("bookie_WRITE_BYTES", "counter", (), "Bytes of entries added."),
            Metric("bookie_journal_JOURNAL_QUEUE_SIZE", "counter", ("journalIndex",), "Entries that wait for the journal. It falls, too."),
            Metric("bookie_journal_JOURNAL_SYNC", "summary", ("journalIndex", *_REQUEST), "Milliseconds of a forced write of the journal."),
            Metric(
                "bookie_ledger_dir__ledgers_usage",
                "gauge",
                (),
                "Percent of the ledger volume in use; of further volumes `bookie_ledger_dir__ledgers_1_usage` and so on.",
            ),
            Metric("bookie_ledger_writable_dirs", "gauge", (), "Ledger directories that take entries."),
            Metric("bookkeeper_server_ADD_ENTRY_REQUEST", "summary", _REQUEST, "Milliseconds of a request that adds an entry."),
            Metric("bookkeeper_server_READ_ENTRY_REQUEST", "summary", _REQUEST, "Milliseconds of a request that reads an entry."),
            Metric(
                "herdkeeper_refused_total",
                "counter",
                ("reason",),
                "Connections and requests that were not let in, also by autorecovery: `closed`, to an endpoint that is closed; "
                "`plaintext`, which did not ask for TLS where it is demanded; `token`, an order without a proof of the bookies' token.",
            ),
        ),
    ),
    Server("The JVM of SQL nodes", "herddb", _JVM),
)
