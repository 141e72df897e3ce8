"""Metrics of the servers that are not ours, which the alerts and dashboards use. A test compares them with what real servers serve."""

from __future__ import annotations

from dataclasses import dataclass

from herdkeeper_e2e.monitoring.metric import Metric


@dataclass(frozen=True)
class Server:
    """A kind of server, by the component that its pods are labelled with, and its metrics."""

    title: str
    component: str
    metrics: tuple[Metric, ...]


SERVERS = (
    Server(
        "ZooKeeper members",
        "zookeeper",
        (Metric("leader_uptime", "gauge", (), "Milliseconds for which the member has led; only the member that leads has it."),),
    ),
    Server(
        "Bookies",
        "bookie",
        (
            Metric("bookie_SERVER_STATUS", "gauge", (), "1 writable, 0 read-only, -1 not registered."),
            Metric(
                "bookie_ledger_dir__ledgers_usage",
                "gauge",
                (),
                "Percent of the ledger volume in use; of further volumes `bookie_ledger_dir__ledgers_1_usage` and so on.",
            ),
        ),
    ),
)
