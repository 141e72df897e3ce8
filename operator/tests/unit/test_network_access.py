"""Who may connect to whom, by the built NetworkPolicies as Kubernetes reads them: over all pairs of pods of an example, exactly what the
table says. The pods are those of the built workloads, so that a label that no pod has admits nobody."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from situations import objects, with_status

from herdkeeper.api import BookKeeperCluster, Checkpoint, HerdDBCluster, ReplicationAudit, ScheduledCheckpoint, Tablespace, ZooKeeperCluster
from herdkeeper.api.default_images import SHIPPED_IMAGES
from herdkeeper.api.job import Destination
from herdkeeper.bookkeeper.build.bookies import BookieIdentity, Founded, build_autorecovery, build_bookie, build_bookies_shared
from herdkeeper.bookkeeper.drain.build import DrainSource, build_move, build_retirement
from herdkeeper.bookkeeper.state.racks import placement_of
from herdkeeper.herddb.build import LogStore, build_herddb
from herdkeeper.herddb.log.build_archive import build_archiver
from herdkeeper.planning.network_access import ENTRANCES, Declared, Operator, Ours, Reach, entrances_of
from herdkeeper.planning.network_policies import build_server_policies
from herdkeeper.shared import names
from herdkeeper.spark.build_job import build_audit, build_checkpoint, build_drill, build_removal, build_restore
from herdkeeper.spark.sources import AuditSource, CheckpointSource, DrillSource, Login, RestoreSource
from herdkeeper.zookeeper.build import build_zookeeper
from herdkeeper.zookeeper.state import Ensemble

Json = dict[str, Any]
CHART = Path(__file__).resolve().parents[3] / "charts/herdkeeper"
HOME, DEMO, ELSEWHERE, MONITORING = "herdkeeper-system", "demo", "elsewhere", "monitoring"
CLAIM = {"persistentVolumeClaim": {"claimName": "out"}}
EXECUTORS = {"executors": {"instances": 2}}
IMAGE = "herdkeeper/spark:0.2.0"
UNKNOWN_PORT = 5005
PORTS = (*sorted({port for entrance in ENTRANCES for port in entrance.ports}), UNKNOWN_PORT)
APPLICATION, PROMETHEUS = {"app": "application"}, {"app": "prometheus"}


@dataclass(frozen=True)
class Pod:
    """A pod, and who it is: its component and owner (kind and name), or which of the declared ones."""

    name: str
    namespace: str
    labels: Json = field(hash=False)
    component: str = ""
    owner: tuple[str, str] = ("", "")
    declared: frozenset[Declared] = frozenset()
    scraped_at: tuple[int, ...] = ()


@dataclass(frozen=True)
class Example:
    """Pods, and the policies of their namespaces."""

    pods: tuple[Pod, ...]
    policies: tuple[Json, ...]

    def pod(self, name: str, namespace: str = DEMO) -> Pod:
        return next(pod for pod in self.pods if (pod.name, pod.namespace) == (name, namespace))

    def admits(self, source: Pod, target: Pod, port: int) -> bool:
        """As Kubernetes decides on an incoming connection. Source: its page "Network Policies"."""
        concerning = [
            policy["spec"]
            for policy in self.policies
            if policy["metadata"]["namespace"] == target.namespace and matches(policy["spec"]["podSelector"], target.labels)
        ]
        rules = [rule for spec in concerning for rule in spec.get("ingress", [])]
        return not concerning or any(rule_admits(rule, source, target, port) for rule in rules)


def rule_admits(rule: Json, source: Pod, target: Pod, port: int) -> bool:
    ports, peers = rule.get("ports", []), rule.get("from", [])
    return (not ports or any(each["port"] == port for each in ports)) and (
        not peers or any(is_peer(each, source, target) for each in peers)
    )


def is_peer(peer: Json, source: Pod, target: Pod) -> bool:
    assert peer.keys() <= {"podSelector", "namespaceSelector"}
    namespaces = peer.get("namespaceSelector")
    near = source.namespace == target.namespace if namespaces is None else matches(namespaces, namespace_labels(source.namespace))
    return near and matches(peer["podSelector"], source.labels)


def namespace_labels(namespace: str) -> Json:
    return {"kubernetes.io/metadata.name": namespace}


def matches(selector: Json, labels: Json) -> bool:
    for expression in selector.get("matchExpressions", []):
        assert expression["operator"] == "In"
        if labels.get(expression["key"]) not in expression["values"]:
            return False
    return selector.get("matchLabels", {}).items() <= labels.items()


def read(kind: Any, name: str, namespace: str, **spec: Any) -> Any:
    return SHIPPED_IMAGES.completed(
        kind.model_validate({"metadata": {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}"}, "spec": spec})
    )


def templates(manifests: Iterable[Json]) -> Iterable[tuple[str, Json, tuple[int, ...]]]:
    """Name, labels and ports for metrics of the pods of these workloads, executors of Spark jobs included."""
    for manifest in manifests:
        if manifest["kind"] not in ("StatefulSet", "Deployment", "Job"):
            continue
        template, name = manifest["spec"]["template"], manifest["metadata"]["name"]
        ports = template["spec"]["containers"][0].get("ports", [])
        yield name, template["metadata"]["labels"], tuple(port["containerPort"] for port in ports if port["name"] == "metrics")
        arguments = template["spec"]["containers"][0].get("args", [])
        if "--executor-pod" in arguments:
            executor = json.loads(arguments[arguments.index("--executor-pod") + 1])
            yield f"{name}-executor", executor["metadata"]["labels"], ()


def stack(namespace: str, prefix: str, mode: str = "Insecure", **network: Any) -> Example:
    """ZooKeeper, bookies, SQL nodes and jobs of all kinds. `prefix` is before the names; `network` is of the servers' specs."""
    zookeeper = read(ZooKeeperCluster, f"{prefix}zk", namespace, security={"mode": mode}, **network)
    address = f"zk-0:{names.ZOOKEEPER_CLIENT_PORT}"
    if mode != "Insecure":
        needed_by = "nobody" if mode == "Permissive" else None
        zookeeper = with_status(zookeeper, authority_expires="2036-01-01T00:00:00Z", plaintext_needed_by=needed_by)
        address = f"{prefix}zk-zookeeper-0.{prefix}zk-zookeeper.{namespace}.svc:{names.ZOOKEEPER_SECURE_PORT}"
    bookkeeper = read(BookKeeperCluster, f"{prefix}bk", namespace, zooKeeperRef={"name": f"{prefix}zk"}, **network)
    herddb = read(HerdDBCluster, f"{prefix}db", namespace, bookKeeperRef={"name": f"{prefix}bk"}, **network)
    tablespace = read(
        Tablespace,
        f"{prefix}ts",
        namespace,
        herdDBRef={"name": f"{prefix}db"},
        log={"archive": {"destination": CLAIM}},
        bootstrap={"checkpoint": {"name": "c"}, "job": EXECUTORS},
    )
    checkpoint = read(Checkpoint, f"{prefix}run", namespace, tablespaceRef={"name": f"{prefix}ts"}, destination=CLAIM, job=EXECUTORS)
    alone = read(Checkpoint, f"{prefix}alone", namespace, tablespaceRef={"name": f"{prefix}ts"}, destination=CLAIM)
    audit = read(ReplicationAudit, f"{prefix}run", namespace, bookKeeperRef={"name": f"{prefix}bk"}, job=EXECUTORS)
    schedule = read(
        ScheduledCheckpoint,
        f"{prefix}nightly",
        namespace,
        schedule="0 3 * * *",
        template={"tablespaceRef": {"name": f"{prefix}ts"}, "destination": CLAIM},
        drill={"schedule": "0 5 * * SUN"},
    )
    log = LogStore(address, "/ledgers", placement_of(bookkeeper, {}), bookkeeper.key)
    bookie, place = BookieIdentity(0, f"{prefix}bk-bookie-0-abc123"), Destination.model_validate(CLAIM)
    source = CheckpointSource(address, "/ledgers", "/herd", "ts", "leader:9845", "follower:9845", "secret")
    manifests = (
        *build_zookeeper(Ensemble(zookeeper, objects())),
        *build_bookies_shared(bookkeeper, address, Founded("an-instance", frozenset(), frozenset())),
        build_bookie(bookkeeper, bookie, address),
        *build_autorecovery(bookkeeper, address, {}),
        build_move(bookkeeper, bookie, 1, DrainSource(address, IMAGE)),
        build_retirement(bookkeeper, bookie, DrainSource(address, "jobs")),
        *build_herddb(herddb, log, "credentials"),
        build_archiver(tablespace, log, "/herd", IMAGE),
        *build_restore(tablespace, RestoreSource(address, "/herd", place, "m.json", Login("credentials")), IMAGE),
        *build_checkpoint(checkpoint, source, IMAGE),
        *build_checkpoint(alone, source, IMAGE),
        build_removal(alone, "m.json", IMAGE),
        *build_audit(audit, AuditSource(address, "/ledgers"), IMAGE),
        build_drill(schedule, DrillSource(place, "m.json", "herddb:1", f"{prefix}nightly-drill"), IMAGE),
    )
    pods = [
        Pod(f"{name}/{number}", namespace, labels, labels[names.COMPONENT_LABEL], owner_of(labels), scraped_at=ports)
        for name, labels, ports in templates(manifests)
        for number in range(2)
    ]
    policies = [manifest for manifest in manifests if manifest["kind"] == "NetworkPolicy"]
    policies += [policy for cluster in (zookeeper, bookkeeper, herddb) for policy in build_server_policies(cluster, HOME)]
    return Example(tuple(pods), tuple(policies))


def owner_of(labels: Json) -> tuple[str, str]:
    return labels[names.OWNER_KIND_LABEL], labels[names.OWNER_NAME_LABEL]


def operator_labels() -> Json:
    """Those of the chart's pods."""
    selector = re.search(r'define "herdkeeper.selector" -}}\n(.*?){{- end }}', (CHART / "templates/_names.tpl").read_text(), re.DOTALL)
    assert selector is not None
    assert 'include "herdkeeper.selector"' in (CHART / "templates/deployment.yaml").read_text()
    return dict(line.split(": ") for line in selector[1].replace("{{ .Release.Name }}", "herdkeeper").strip().splitlines())


def example(mode: str = "Insecure", **network: Any) -> Example:
    """Two stacks in one namespace, one with the same names elsewhere, the operator, and pods that nobody of them made."""
    stacks = (stack(DEMO, "", mode, **network), stack(DEMO, "other-", mode), stack(ELSEWHERE, "", mode))
    others = (
        Pod("operator", HOME, operator_labels(), "operator"),
        Pod("not-the-operator", DEMO, operator_labels()),
        Pod("application", DEMO, APPLICATION, declared=frozenset({Declared.CLIENTS})),
        Pod("application", ELSEWHERE, APPLICATION),
        Pod("prometheus", MONITORING, PROMETHEUS, declared=frozenset({Declared.SCRAPERS})),
        Pod("prometheus", DEMO, PROMETHEUS),
        Pod("stranger", DEMO, {"app": "stranger"}),
        Pod("stranger", ELSEWHERE, {"app": "stranger"}),
    )
    return Example((*(pod for each in stacks for pod in each.pods), *others), tuple(policy for each in stacks for policy in each.policies))


WITH_PEERS = {
    "clients": [{"podLabels": APPLICATION}],
    "scrapers": [{"podLabels": PROMETHEUS, "namespaceLabels": {"kubernetes.io/metadata.name": MONITORING}}],
}
LISTENS_FOR_NOBODY = (
    *(names.DRAIN_COMPONENT, names.ARCHIVE_COMPONENT, names.REMOVAL_COMPONENT, names.DRILL_COMPONENT),
    "",
    "operator",
)


SILENT = {"Insecure": {names.ZOOKEEPER_SECURE_PORT}, "TLS": {names.ZOOKEEPER_CLIENT_PORT}, "Permissive": set[int]()}
"""The port for clients at which no member of a stack in this mode listens."""


def in_the_table(source: Pod, target: Pod, port: int, mode: str, *, declaring: bool) -> bool:
    """Whether a row admits it. `declaring`: the servers of the first stack name their clients and scrapers."""
    named = declaring and target.namespace == DEMO and not target.owner[1].startswith("other-")

    def is_admitted(admitted: Any) -> bool:
        match admitted:
            case Operator():
                return source.component == "operator"
            case Ours(Reach.SAME_RESOURCE, components):
                return source.component in components and (source.namespace, source.owner) == (target.namespace, target.owner)
            case Ours(Reach.NAMESPACE, components):
                return source.component in components and source.namespace == target.namespace
            case Declared():
                everybody = admitted is Declared.CLIENTS and target.component == names.HERDDB_COMPONENT and not named
                return everybody or (named and admitted in source.declared)
        raise AssertionError(admitted)

    return any(
        is_admitted(admitted)
        for entrance in entrances_of(target.component)
        if not entrance.ports or port in set(entrance.ports) - SILENT[mode]
        for admitted in entrance.admitted
    )


@pytest.mark.parametrize("mode", SILENT)
@pytest.mark.parametrize("declaring", [False, True])
def test_of_all_pairs_of_pods_exactly_those_of_the_table_can_connect(declaring: bool, mode: str) -> None:
    shown = example(mode, **(WITH_PEERS if declaring else {}))
    guarded = [pod for pod in shown.pods if pod.component not in LISTENS_FOR_NOBODY and not pod.owner[1].endswith("alone")]
    assert len(guarded) > 50
    wrong = [
        (f"{source.namespace}/{source.name}", f"{target.namespace}/{target.name}", port)
        for source, target, port in itertools.product(shown.pods, guarded, PORTS)
        if source is not target and shown.admits(source, target, port) != in_the_table(source, target, port, mode, declaring=declaring)
    ]
    assert wrong == []


ZOOKEEPER, BOOKIE, NODE = "zk-zookeeper/0", "bk-bookie-0/0", "db-herddb/0"
NEEDED = [
    ("operator", ZOOKEEPER, 2181),
    ("operator", ZOOKEEPER, 8080),
    ("operator", BOOKIE, 8080),
    ("operator", NODE, 7000),
    ("operator", NODE, 9845),
    ("zk-zookeeper/1", ZOOKEEPER, 2888),
    ("zk-zookeeper/1", ZOOKEEPER, 3888),
    (BOOKIE, ZOOKEEPER, 2181),
    ("bk-autorecovery/0", ZOOKEEPER, 2181),
    ("bk-autorecovery/0", BOOKIE, 3181),
    ("bk-bookie-0-drain-1/0", ZOOKEEPER, 2181),
    ("bk-bookie-0-drain-1/0", BOOKIE, 3181),
    ("bk-bookie-0-retire/0", ZOOKEEPER, 2181),
    (NODE, ZOOKEEPER, 2181),
    (NODE, BOOKIE, 3181),
    ("db-herddb/1", NODE, 7000),
    ("run-checkpoint/0", ZOOKEEPER, 2181),
    ("run-checkpoint/0", BOOKIE, 3181),
    ("run-checkpoint/0", NODE, 9845),
    ("alone-checkpoint/0", BOOKIE, 3181),
    ("run-checkpoint-executor/0", BOOKIE, 3181),
    ("run-checkpoint-executor/0", "run-checkpoint/0", 40000),
    ("run-checkpoint/0", "run-checkpoint-executor/0", 40000),
    ("run-checkpoint-executor/1", "run-checkpoint-executor/0", 40000),
    ("run-audit/0", ZOOKEEPER, 2181),
    ("run-audit/0", BOOKIE, 3181),
    ("run-audit-executor/0", BOOKIE, 3181),
    ("ts-restore/0", ZOOKEEPER, 2181),
    ("ts-restore/0", NODE, 7000),
    ("ts-restore-executor/0", ZOOKEEPER, 2181),
    ("ts-restore-executor/0", NODE, 7000),
    ("ts-archive/0", ZOOKEEPER, 2181),
    ("ts-archive/0", BOOKIE, 3181),
]
"""What the programs do, read in their code: policies that refuse one of these stop a cluster."""


@pytest.mark.parametrize(("source", "target", "port"), NEEDED)
def test_what_the_programs_connect_to_is_open_to_them(source: str, target: str, port: int) -> None:
    shown = example(clients=[])
    assert shown.admits(shown.pod(source, HOME if source == "operator" else DEMO), shown.pod(target), port)


@pytest.mark.parametrize("namespace", [DEMO, ELSEWHERE])
@pytest.mark.parametrize(
    ("target", "port"),
    [
        (ZOOKEEPER, 2181),
        (ZOOKEEPER, 2888),
        (ZOOKEEPER, 8080),
        (ZOOKEEPER, 7070),
        (BOOKIE, 3181),
        (BOOKIE, 8080),
        (NODE, 9845),
        ("run-checkpoint/0", 40000),
    ],
)
def test_a_stranger_reaches_neither_the_metadata_nor_the_log_nor_an_admin_port(namespace: str, target: str, port: int) -> None:
    shown = example()
    assert not shown.admits(shown.pod("stranger", namespace), shown.pod(target), port)


@pytest.mark.parametrize(("mode", "port", "silent"), [("Insecure", 2181, 2281), ("TLS", 2281, 2181)])
def test_an_ensemble_is_reached_at_the_one_port_that_its_clients_have(mode: str, port: int, silent: int) -> None:
    served = with_status(read(ZooKeeperCluster, "zk", DEMO, security={"mode": mode}), authority_expires="2036-01-01T00:00:00Z")
    (policy,) = build_server_policies(served, HOME)
    opened = {each["port"] for rule in policy["spec"]["ingress"] for each in rule["ports"]}
    assert port in opened
    assert silent not in opened


def test_the_sql_port_is_open_to_everybody_until_clients_are_named() -> None:
    for network, admitted in (({}, True), ({"clients": []}, False), ({"clients": [{"podLabels": APPLICATION}]}, False)):
        shown = example(**network)
        assert shown.admits(shown.pod("stranger", ELSEWHERE), shown.pod(NODE), 7000) is admitted


def test_a_stack_of_the_same_names_elsewhere_reaches_only_what_everybody_does() -> None:
    shown = example()
    servers = [pod for pod in shown.pods if pod.namespace == DEMO and entrances_of(pod.component) and not pod.owner[1].endswith("alone")]
    strangers = [pod for pod in shown.pods if pod.namespace == ELSEWHERE]
    reached = {
        (target.component, port) for target in servers for port in PORTS for source in strangers if shown.admits(source, target, port)
    }
    assert reached == {(names.HERDDB_COMPONENT, 7000)}


@pytest.mark.parametrize("declaring", [False, True])
def test_no_policy_of_a_stack_opens_the_operators_port(declaring: bool) -> None:
    """Policies add up: one that selected the operator's pod would admit whom the chart's policy does not name."""
    selecting = [
        policy["metadata"]["name"]
        for policy in example(**(WITH_PEERS if declaring else {})).policies
        if matches(policy["spec"]["podSelector"], operator_labels())
    ]
    assert selecting == []


@pytest.mark.parametrize(
    "component", [names.ZOOKEEPER_COMPONENT, names.BOOKIE_COMPONENT, names.AUTORECOVERY_COMPONENT, names.HERDDB_COMPONENT]
)
def test_each_server_has_one_named_port_for_metrics_which_its_scrapers_reach_and_clients_do_not(component: str) -> None:
    shown = example(**WITH_PEERS)
    servers = [pod for pod in shown.pods if (pod.component, pod.namespace) == (component, DEMO) and not pod.owner[1].startswith("other-")]
    assert servers
    for server in servers:
        (port,) = server.scraped_at
        assert shown.admits(shown.pod("prometheus", MONITORING), server, port)
        assert not shown.admits(shown.pod("application"), server, port)


def test_each_port_of_a_service_or_a_probe_is_in_the_table() -> None:
    named = {value for name, value in vars(names).items() if name.endswith("_PORT") and isinstance(value, int)}
    for_other_pods = named - {names.ZOOKEEPER_LOOPBACK_PORT}
    assert for_other_pods == set(PORTS) - {UNKNOWN_PORT}
