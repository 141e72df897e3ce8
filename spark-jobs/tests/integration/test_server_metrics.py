"""The servers' metrics in docs/metrics.md and docs/metrics-of-servers.md, compared with those of real servers."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from waits import wait_until

from herdkeeper.sql.connection import Connection
from herdkeeper_e2e.free_ports import free_port
from herdkeeper_e2e.monitoring.metric import Metric
from herdkeeper_e2e.monitoring.own_metrics import node_metrics
from herdkeeper_e2e.monitoring.served import series_of, what_to_add
from herdkeeper_e2e.monitoring.server_metrics import SERVERS
from herdkeeper_e2e.server_processes import CREDENTIALS, GUARDED_HTTP, servers

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
PATIENCE_SECONDS = 120
Pages = Mapping[str, str]


def read(port: int) -> str:
    """A page of metrics; empty without a server."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


def read_whole(port: int, awaited: str) -> str:
    """A page once it has a line of what comes last."""
    pages: list[str] = []

    def there() -> bool:
        pages.append(read(port))
        return awaited in pages[-1]

    wait_until(f"{awaited} on port {port}", there, PATIENCE_SECONDS, lambda: pages[-1][-2000:])
    return pages[-1]


def with_mounted_folder(page: str) -> str:
    """Replaces the ledger folder in a metric's name of BookKeeper: in a pod it is mounted at /ledgers."""
    return re.sub(r"\bbookie_ledger_dir_\w+_usage\b", "bookie_ledger_dir__ledgers_usage", page)


@pytest.fixture(scope="module")
def pages() -> Iterator[Pages]:
    """The metrics of each kind of server, by its pods' component label, after SQL was written and read."""
    with servers() as started:
        of_zookeeper, of_bookie = free_port(), free_port()
        started.start_zookeeper(
            {
                # an ensemble of one, as the operator's: its member leads
                "standaloneEnabled": "false",
                "initLimit": 10,
                "syncLimit": 5,
                "server.1": f"127.0.0.1:{free_port()}:{free_port()}",
                # as in the image's entry point
                "metricsProvider.className": "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider",
                "metricsProvider.httpPort": of_zookeeper,
            }
        )
        started.start_bookies(1, {**GUARDED_HTTP, "httpServerPort": of_bookie})
        address = started.start_sql_node()
        with Connection.connect(address, CREDENTIALS) as connection:
            connection.execute("CREATE TABLE measured (k int primary key)")
            for number in range(20):
                connection.execute("INSERT INTO measured(k) VALUES(?)", [number])
        of_node = int(started.node_http.rpartition(":")[2])
        yield {
            "zookeeper": read_whole(of_zookeeper, "leader_uptime"),
            "bookie": with_mounted_folder(read_whole(of_bookie, "bookie_SERVER_STATUS")),
            "herddb": read_whole(of_node, "herdkeeper_node_leads"),
        }


def missing(metrics: tuple[Metric, ...], page: str) -> list[Any]:
    """Metrics that are not served as documented."""
    there = series_of(page)
    wrong = []
    for metric in metrics:
        extra = {"summary": {"quantile"}, "histogram": {"le"}}.get(metric.type, set())
        for series in metric.series:
            kind, labels = there.get(series, ("absent", frozenset()))
            if kind != metric.type or labels - extra != frozenset(metric.labels):
                wrong.append((series, kind, sorted(labels)))
    return wrong


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.title)
def test_a_server_serves_its_documented_metrics(server: Any, pages: Pages) -> None:
    assert missing(server.metrics, pages[server.component]) == []


@pytest.mark.parametrize("server", ["zookeeper", "bookie", "herddb"])
def test_each_metric_that_a_server_serves_is_listed(server: str, pages: Pages) -> None:
    assert what_to_add(server, pages[server]) == ""


def test_a_sql_node_serves_its_own_metrics_and_no_others(pages: Pages) -> None:
    assert missing(node_metrics(), pages["herddb"]) == []
    ours = {name for name in series_of(pages["herddb"]) if name.startswith("herdkeeper_")}
    assert ours == {series for metric in node_metrics() for series in metric.series}
