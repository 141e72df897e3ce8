"""Generates docs/network.md from the table of the NetworkPolicies."""

from __future__ import annotations

from typing import assert_never

from herdkeeper.planning.network_access import ENTRANCES, Admitted, Declared, Entrance, Operator, Ours
from herdkeeper.shared import names

_INTRODUCTION = """# Who may connect to which port

The operator makes NetworkPolicies for ZooKeeperClusters, BookKeeperClusters, HerdDBClusters, and Spark jobs with executors. They admit
only the peers in this table. They are on by default. With `spec.networkPolicy: Disabled` the operator makes none for a resource, and
removes its own.

`make generate` makes this page from `operator/src/herdkeeper/planning/network_access.py`, which is also the source of the policies.

"""

_REST = f"""
The policies limit only incoming connections: jobs reach object stores, pods reach the DNS. Kubelets' probes and `kubectl port-forward`
pass. Jobs without executors, archivers and drains open no port, so they have no policy.

The operator's own pod listens only at 8080, for metrics and probes. The chart's policy for it admits the peers in its setting
`networkPolicy.scrapers`, and nobody if that is empty. `networkPolicy.create=false` leaves the policy out.

If your own policies limit the outgoing connections of a namespace, let jobs and archivers (`{names.MANAGED_BY_LABEL}: herdkeeper`) reach
the object store at its port. Without a Secret they must also reach the cloud's identity service:
[destinations.md](destinations.md#without-a-secret) has the addresses.

Policies have an effect only if the network enforces them (Calico, Cilium and others do). They identify the operator by the label
`{names.COMPONENT_LABEL}: {names.OPERATOR_COMPONENT}`, which the chart sets, and by its namespace.

## Let others in

`clients` and `scrapers` of a resource's spec select pods by their labels and by those of their namespace. Without `namespaceLabels` they
select pods in the resource's namespace.

| Who | Field |
|---|---|
| an application that connects by `leaderUrl`, or by `host` and `port` | none, unless the HerdDBCluster has `clients` |
| an application that connects by `url`: it finds the leader through ZooKeeper | `clients` of the ZooKeeperCluster |
| a reader of the log ([change-data-capture.md](change-data-capture.md)) | `clients` of the ZooKeeperCluster and of the BookKeeperCluster |
| a program with BookKeeper's own client | the same two |
| bookies and SQL nodes of another namespace, by `spec.zooKeeperAddress` | `clients` of the ZooKeeperCluster |
| Prometheus | `scrapers` of the ZooKeeperCluster, of the BookKeeperCluster (bookies and autorecovery) and of the HerdDBCluster |
| Prometheus, for the operator | `networkPolicy.scrapers` of the chart |

By default ZooKeeper and bookies also ask their clients for a certificate; [security.md](security.md#certificates-between-servers) says
which. Bookies and SQL nodes of another namespace can't show one, so they need an ensemble in plain text.

```
spec:
  clients:
    - podLabels: {{app: application}}
    - podLabels: {{{names.MANAGED_BY_LABEL}: {names.MANAGER}}}
      namespaceLabels: {{{names.NAMESPACE_NAME_LABEL}: other}}
```
NetworkPolicies add up. So for other needs (addresses outside of the cluster, a port that `spec.config` opens) write your own policy for the
same pods.
"""

_PODS = {
    names.ZOOKEEPER_COMPONENT: "ZooKeeper members",
    names.BOOKIE_COMPONENT: "bookies",
    names.AUTORECOVERY_COMPONENT: "autorecovery",
    names.DRAIN_COMPONENT: "drains",
    names.HERDDB_COMPONENT: "SQL nodes",
    names.CHECKPOINT_COMPONENT: "Checkpoints",
    names.AUDIT_COMPONENT: "ReplicationAudits",
    names.RESTORE_COMPONENT: "restores",
    names.ARCHIVE_COMPONENT: "archivers",
    names.EXECUTOR_COMPONENT: "executors",
}


def page() -> str:
    head = ["| Pods | Port | Who may connect | For what |", "|---|---|---|---|"]
    return _INTRODUCTION + "\n".join([*head, *map(_row, ENTRANCES)]) + "\n" + _REST


def _row(entrance: Entrance) -> str:
    ports = ", ".join(map(str, entrance.ports)) or "all"
    admitted = "; ".join(map(_described, entrance.admitted))
    return f"| {_listed(entrance.components)} | {ports} | {admitted} | {entrance.why} |"


def _described(admitted: Admitted) -> str:
    match admitted:
        case Operator():
            return "the operator"
        case Ours():
            return f"of the {admitted.reach.value}: {_listed(admitted.components)}"
        case Declared():
            return f"`spec.{admitted.value}`"
        case _:
            assert_never(admitted)


def _listed(components: tuple[str, ...]) -> str:
    return ", ".join(_PODS[component] for component in components)
