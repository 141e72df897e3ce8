"""The operator's counters, served at /metrics."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

RECONCILES = Counter("herdkeeper_reconcile", "Reconciles by kind and outcome (ok, refused, failed, gone).", ["kind", "outcome"])
RECONCILE_SECONDS = Histogram("herdkeeper_reconcile_seconds", "Duration of reconciles.", ["kind"])
LIVE_RECONCILES = Counter(
    "herdkeeper_live_looks", ("Reconciles that read live data because the cache showed something to do, by kind."), ["kind"]
)
WRITES = Counter("herdkeeper_writes", "Writes to Kubernetes, ZooKeeper and SQL nodes. A settled system needs none.", ["verb", "kind"])
QUEUED = Gauge("herdkeeper_queue_keys", "Keys in the queue, waiting for a worker or for their time.")
LEADING = Gauge("herdkeeper_leading", "1 while this process holds the Lease.")
READY = Gauge("herdkeeper_resource_ready", "1 while a resource is Ready, else 0.", ["kind", "namespace", "name"])
WATCH_BEHIND = Counter("herdkeeper_watch_behind", "Object changes that a list found but no watch had reported, by kind.", ["kind"])
